"""Values of resource.k8s.io and the core/v1 parts that DRA needs: quantities, versions, names, limits, objects.

No I/O and no policy live here. Structs are the frozen read model (msgspec); the field tables say, once, what every kind
and version looks like on the wire.
"""
