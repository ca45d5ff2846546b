"""The rules themselves: one module per kind, each adding to a `Faults` in the server's order. Inputs are decoded v1 objects."""
