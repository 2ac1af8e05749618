"""The code under test: one variant a file, the list of them, and the loader for anybody's own."""
