"""Values of resource.k8s.io and the core/v1 parts that DRA needs: quantities, versions, names, limits, objects.

No I/O and no policy live here. Structs are the frozen read model (msgspec); the field tables say, once, what every kind
and version looks like on the wire.
"""

from drakit.api import conversion, core, fields, limits, meta, names, resource
from drakit.api.codec import GROUP, Object, decode, decode_list, encode, losses, shape, struct_for
from drakit.api.names import QualifiedName
from drakit.api.quantity import Quantity, QuantityError
from drakit.api.semver import Semver, SemverError

__all__ = [
    "GROUP",
    "Object",
    "QualifiedName",
    "Quantity",
    "QuantityError",
    "Semver",
    "SemverError",
    "conversion",
    "core",
    "decode",
    "decode_list",
    "encode",
    "fields",
    "limits",
    "losses",
    "meta",
    "names",
    "resource",
    "shape",
    "struct_for",
]
