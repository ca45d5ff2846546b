"""The CEL dialect of DRA device selectors: parse, check, cost, compile, evaluate.

Everything that an expression can be asked lives here, for every served Kubernetes version; nothing here knows slices,
claims or nodes. An `Environment` compiles, a `Program` evaluates views of devices.
"""

from drakit.cel.device import DeviceView, device_view
from drakit.cel.environment import ADMISSION_VARIABLES, DEFAULT_FEATURES, Environment
from drakit.cel.errors import CompileError, EvaluationError, Issue, Position
from drakit.cel.program import Program

__all__ = [
    "ADMISSION_VARIABLES",
    "DEFAULT_FEATURES",
    "CompileError",
    "DeviceView",
    "Environment",
    "EvaluationError",
    "Issue",
    "Position",
    "Program",
    "device_view",
]
