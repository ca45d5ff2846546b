"""Simulated devices: the documentation's gpu.example.com and other profiles, without hardware.

What lives here: profiles (what a node has) as data, and the driver that serves them.
"""

from drakit.devices.simulated.driver import GpuConfig, SimulatedDriver, TimeSlicing
from drakit.devices.simulated.profiles import DEFAULT, PROFILES, Profile

__all__ = ["DEFAULT", "PROFILES", "GpuConfig", "Profile", "SimulatedDriver", "TimeSlicing"]
