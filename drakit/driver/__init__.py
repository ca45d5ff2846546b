"""The node service and SDK: sockets, registration, DRAPlugin, claim tasks, state, publisher.

What lives here: everything between a device driver and the kubelet. A device team subclasses `Driver` and calls `run`.
Decisions about records and slices are pure functions; file operations go through `drakit.files`.
"""

from drakit.driver.claims import AllocatedDevice, Claim, ClaimRef, Preparation, Prepared
from drakit.driver.configuration import Configuration
from drakit.driver.devicestatus import DeviceStatus
from drakit.driver.errors import ClaimError, PermanentError
from drakit.driver.plugin import Device, Driver, HealthReport
from drakit.driver.running import run
from drakit.driver.settings import Settings, SettingsError

__all__ = [
    "AllocatedDevice",
    "Claim",
    "ClaimError",
    "ClaimRef",
    "Configuration",
    "Device",
    "DeviceStatus",
    "Driver",
    "HealthReport",
    "PermanentError",
    "Preparation",
    "Prepared",
    "Settings",
    "SettingsError",
    "run",
]
