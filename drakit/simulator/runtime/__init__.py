"""A container runtime that only resolves CDI: what a container would get."""
