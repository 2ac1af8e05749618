"""Where effects land. One engine a file; the witness watches from inside it."""
