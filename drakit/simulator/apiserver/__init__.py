"""A fake API server over real HTTP(S), standing on drakit.admission.

Requests go down this way: `server` (listens), `endpoint` (HTTP), `objects` (rules of the registry), `gatekeeper`
(admission), `storage` (revisions and history). Everything below `endpoint` is synchronous and knows no HTTP.
"""

from drakit.simulator.apiserver.access import User
from drakit.simulator.apiserver.errors import Refused
from drakit.simulator.apiserver.faults import Call, Fault, Faults, Requests
from drakit.simulator.apiserver.server import FakeAPIServer

__all__ = ["Call", "FakeAPIServer", "Fault", "Faults", "Refused", "Requests", "User"]
