"""The CDI Spec of one prepared claim: a device for each one prepared, named after the claim, so that no id repeats."""

from collections.abc import Mapping
from typing import TypeVar

import msgspec

from drakit.cdi.model import ContainerEdits, Device, Spec
from drakit.cdi.names import device_name, qualified_name, vendor_of_driver
from drakit.cdi.store import SpecFile
from drakit.cdi.versions import minimum_version

__all__ = ["CLAIM", "claim_file", "claim_spec"]

CLAIM = "claim"

Key = TypeVar("Key", bound=tuple[str, ...])


def claim_file(uid: str) -> SpecFile:
    """The file that holds the Spec of claim `uid`."""
    return SpecFile(CLAIM, uid)


def claim_spec(
    driver: str, uid: str, devices: Mapping[Key, ContainerEdits], common: ContainerEdits | None = None
) -> tuple[Spec | None, dict[Key, tuple[str, ...]]]:
    """The Spec of a claim (None when nothing is to be edited), and the CDI ids of each of its devices.

    Args:
        driver: the driver's name.
        uid: the claim's UID.
        devices: what each prepared device needs, by its identity, e.g. (pool, device) or (pool, device, share).
        common: what a container of any of them needs: a CDI device of its own whose id comes first with every device.
            Runtimes apply an id once, however many devices carry it.

    Raises:
        ValueError: `driver` is not a driver name.
    """
    vendor = vendor_of_driver(driver)
    shared = {device_name(uid): common} if common else {}
    own = {key: device_name(uid, *key) for key, edits in devices.items() if edits}
    edits = shared | {name: devices[key] for key, name in own.items()}
    ids = {
        key: tuple(qualified_name(vendor, CLAIM, name) for name in (*shared, *([own[key]] if key in own else [])))
        for key in devices
    }
    if not edits:
        return None, ids
    spec = Spec(
        "", f"{vendor}/{CLAIM}", devices=tuple(Device(name, container_edits=edit) for name, edit in edits.items())
    )
    return msgspec.structs.replace(spec, cdi_version=minimum_version(spec)), ids
