"""For tests of your own receivers: `assert_once`, a pytest fixture, and hypothesis strategies."""
