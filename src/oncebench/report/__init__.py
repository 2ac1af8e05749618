"""What a person reads: of a result, never of a race itself."""
