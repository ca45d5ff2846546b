"""What the API server would answer: decode, convert, default, prune, validate, immutability. Pure."""
