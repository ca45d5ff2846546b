"""Kubernetes Dynamic Resource Allocation (DRA) for Python: node driver, allocator, admission, simulator."""

__all__ = ["__version__"]

__version__ = "0.1.0"
"""Equal to pyproject.toml's (a test compares them): looking it up in the installed metadata costs 0.7 MiB and 20 ms."""
