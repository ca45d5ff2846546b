"""Container Device Interface specs: model, minimum version, validation, store, resolver.

What lives here: the CDI file format as values (`Spec` and its parts), rules about it, a driver's own files in a shared
directory (`Store`), and what a runtime makes of the files (`resolve`). Nothing here knows Kubernetes objects.
"""

from drakit.cdi.claims import CLAIM, claim_file, claim_spec
from drakit.cdi.model import (
    ContainerEdits,
    Device,
    DeviceNode,
    Hook,
    IntelRdt,
    Mount,
    NetDevice,
    Spec,
    encode,
    merge,
)
from drakit.cdi.names import (
    device_name,
    device_parts,
    driver_of_vendor,
    is_class,
    is_device_name,
    is_vendor,
    parse_qualified_name,
    qualified_name,
    vendor_of_driver,
)
from drakit.cdi.parsing import as_strings, load, parse
from drakit.cdi.resolver import DEFAULT_DIRECTORIES, HostNode, Inventory, ResolveError, apply, resolve, scan
from drakit.cdi.store import DEFAULT_ROOT, SpecFile, Store, StoreError
from drakit.cdi.validation import Fault, SpecError, decode, validate
from drakit.cdi.versions import CURRENT_VERSION, RELEASED_VERSIONS, minimum_version

__all__ = [
    "CLAIM",
    "CURRENT_VERSION",
    "DEFAULT_DIRECTORIES",
    "DEFAULT_ROOT",
    "RELEASED_VERSIONS",
    "ContainerEdits",
    "Device",
    "DeviceNode",
    "Fault",
    "Hook",
    "HostNode",
    "IntelRdt",
    "Inventory",
    "Mount",
    "NetDevice",
    "ResolveError",
    "Spec",
    "SpecError",
    "SpecFile",
    "Store",
    "StoreError",
    "apply",
    "as_strings",
    "claim_file",
    "claim_spec",
    "decode",
    "device_name",
    "device_parts",
    "driver_of_vendor",
    "encode",
    "is_class",
    "is_device_name",
    "is_vendor",
    "load",
    "merge",
    "minimum_version",
    "parse",
    "parse_qualified_name",
    "qualified_name",
    "resolve",
    "scan",
    "validate",
    "vendor_of_driver",
]
