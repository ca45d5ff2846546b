"""The rules: one module per kind or idea, each adding to a `Faults` in the server's order; inputs are decoded v1 objects."""
