"""KEP-5304 device metadata: paths, model, writer, reader. A workload container imports this with msgspec alone.

What lives here: where metadata is, what it says, how drivers write it and containers read it. Reading (`read`) imports
nothing but msgspec and the standard library; `Writer`, `validate` and their kin are loaded when first asked for.
"""

from typing import TYPE_CHECKING, Any

from drakit.metadata import paths
from drakit.metadata.model import (
    GROUP,
    VERSIONS,
    Attribute,
    Device,
    DeviceMetadata,
    MetadataError,
    NetworkData,
    ObjectMeta,
    Request,
    decode_stream,
    encode_stream,
)
from drakit.metadata.reader import read, read_file

if TYPE_CHECKING:
    from drakit.metadata.validation import Fault, validate
    from drakit.metadata.writer import POD_CLAIM_NAME, Claim, PreparedDevice, Writer

__all__ = [
    "GROUP",
    "POD_CLAIM_NAME",
    "VERSIONS",
    "Attribute",
    "Claim",
    "Device",
    "DeviceMetadata",
    "Fault",
    "MetadataError",
    "NetworkData",
    "ObjectMeta",
    "PreparedDevice",
    "Request",
    "Writer",
    "decode_stream",
    "encode_stream",
    "paths",
    "read",
    "read_file",
    "validate",
]


def __getattr__(name: str) -> Any:
    if name in {"Fault", "validate"}:
        from drakit.metadata import validation

        return getattr(validation, name)
    if name in {"POD_CLAIM_NAME", "Claim", "PreparedDevice", "Writer"}:
        from drakit.metadata import writer

        return getattr(writer, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
