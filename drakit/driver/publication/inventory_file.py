"""An inventory in a file: pools in YAML or JSON, read again when it changes; the last good one holds."""

from pathlib import Path
from typing import Any

import yaml

from drakit import admission
from drakit.driver.publication.resources import DriverResources

__all__ = ["InventoryError", "InventoryFile"]

_ALL_GATES = admission.profile("1.37", all_gates=True)


class InventoryError(Exception):
    """The file does not say what to publish; one line with file, place and cause."""


class InventoryFile:
    """Pools as a file says.

        pools:
          licences:
            allNodes: true
            devices:
            - name: licence-0

    Fields are those of a ResourceSlice's spec; the cut into slices is made by drakit.

    Args:
        path: of the file.
        driver: the driver's name.
    """

    def __init__(self, path: Path, driver: str) -> None:
        self.path, self._driver = path, driver
        self._seen: bytes | None = None

    def read(self) -> DriverResources | None:
        """The pools; None when the file is as it was at the last call.

        An empty file is an error, not an empty inventory: say `pools: {}` to withdraw everything.

        Raises:
            InventoryError: it cannot be read or has a fault; told again only when the file has changed.
        """
        try:
            data = self.path.read_bytes()
        except OSError as error:
            self._seen = None
            raise InventoryError(f"cannot read {self.path}: {error.strerror or error}") from error
        if data == self._seen:
            return None
        self._seen = data
        return self._parse(data)

    def _parse(self, data: bytes) -> DriverResources:
        try:
            value = yaml.safe_load(data)
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            raise InventoryError(f"{self.path} is not YAML: {' '.join(str(error).split())}") from error
        if not isinstance(value, dict) or not isinstance(value.get("pools"), dict):
            raise InventoryError(f'{self.path} must hold a mapping "pools"; `pools: {{}}` withdraws all pools')
        for name, pool in value["pools"].items():
            self._check_fields(name, pool if isinstance(pool, dict) else {})
        try:
            return DriverResources.parse(value)
        except ValueError as error:
            raise InventoryError(f"{self.path}: {error}") from error

    def _check_fields(self, name: str, pool: dict[str, Any]) -> None:
        """A misspelt field of a device must not be published as if it were not there."""
        for part in ("devices", "sharedCounters"):
            spec = {
                "driver": self._driver,
                "pool": {"name": str(name), "generation": 1, "resourceSliceCount": 1},
                "allNodes": True,
                part: pool.get(part),
            }
            obj = {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceSlice",
                "metadata": {"name": "check"},
                "spec": spec,
            }
            request = admission.Request(
                verb="create", resource="resourceslices", version="v1", body=obj, field_validation="Strict"
            )
            answer = admission.admit(request, "1.37", _ALL_GATES)
            if answer.status == 400:
                raise InventoryError(f"{self.path}: pool {name}: {answer.message}")
