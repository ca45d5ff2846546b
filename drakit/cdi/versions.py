"""Which CDI version a Spec needs: runtimes refuse a file with a field newer than the version it declares (P32)."""

from collections.abc import Callable, Iterator

from drakit.cdi.model import ContainerEdits, Spec

__all__ = ["CURRENT_VERSION", "RELEASED_VERSIONS", "minimum_version", "parse_version"]

CURRENT_VERSION = "1.1.0"
RELEASED_VERSIONS = ("0.1.0", "0.2.0", "0.3.0", "0.4.0", "0.5.0", "0.6.0", "0.7.0", "0.8.0", "1.0.0", "1.1.0")

_EARLIEST = "0.3.0"


def minimum_version(spec: Spec) -> str:
    """The lowest version that allows everything in `spec`; its own `cdi_version` plays no part."""
    return next((version for version, needed in _FEATURES if needed(spec)), _EARLIEST)


def parse_version(text: str) -> tuple[int, ...] | None:
    """A released version in comparable form (`0.6.0` and `v0.6.0` alike), None for any other text."""
    number = text.removeprefix("v")
    return tuple(map(int, number.split("."))) if number in RELEASED_VERSIONS else None


def _edits(spec: Spec) -> Iterator[ContainerEdits]:
    yield spec.container_edits
    for device in spec.devices:
        yield device.container_edits


def _needs_1_1_0(spec: Spec) -> bool:
    return any(
        edit.net_devices
        or (edit.intel_rdt is not None and (edit.intel_rdt.schemata is not None or edit.intel_rdt.enable_monitoring))
        for edit in _edits(spec)
    )


def _needs_0_7_0(spec: Spec) -> bool:
    return any(edit.intel_rdt is not None or edit.additional_gids for edit in _edits(spec))


def _needs_0_6_0(spec: Spec) -> bool:
    annotated = bool(spec.annotations) or any(device.annotations for device in spec.devices)
    return annotated or "." in spec.kind.partition("/")[2]


def _needs_0_5_0(spec: Spec) -> bool:
    if any(device.name[:1].isdigit() for device in spec.devices):
        return True
    return any(node.host_path for edit in _edits(spec) for node in edit.device_nodes)


def _needs_0_4_0(spec: Spec) -> bool:
    return any(mount.type for edit in _edits(spec) for mount in edit.mounts)


_FEATURES: tuple[tuple[str, Callable[[Spec], bool]], ...] = (
    ("1.1.0", _needs_1_1_0),
    ("0.7.0", _needs_0_7_0),
    ("0.6.0", _needs_0_6_0),
    ("0.5.0", _needs_0_5_0),
    ("0.4.0", _needs_0_4_0),
)
