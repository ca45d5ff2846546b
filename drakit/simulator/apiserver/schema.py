"""The shape of any kind that is served."""

import msgspec

from drakit.simulator.apiserver.core_shapes import CORE_SHAPES
from drakit.simulator.apiserver.field_shapes import kind_fields, object_shape
from drakit.simulator.apiserver.resources import RESOURCE, Kind
from drakit.simulator.apiserver.shapes import OPEN, Shape

__all__ = ["shape_of"]


def shape_of(kind: Kind, version: str, minor: str) -> Shape:
    """The shape of `kind` in an API version, with the fields that Kubernetes `minor` has."""
    if kind.group == RESOURCE:
        return object_shape(kind.kind, version, minor)
    return CORE_SHAPES.get((kind.group, version, kind.kind)) or msgspec.structs.replace(OPEN, fields=kind_fields())
