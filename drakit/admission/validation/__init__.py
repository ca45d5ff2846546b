"""The rules, a module per idea. Each adds to a `Faults` in the server's order; inputs are decoded v1 objects."""
