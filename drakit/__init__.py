"""Kubernetes Dynamic Resource Allocation (DRA) for Python: node driver, allocator, admission, simulator."""
