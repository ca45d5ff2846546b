"""The spec of claims and templates. Source: spec/resourceslice.md 2.8 and 4.3, spec/apiserver.md 8, 9, 11, 12."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from drakit.admission.validation import adminaccess, configuration, expressions, formats, selectors, taints
from drakit.api import limits

if TYPE_CHECKING:
    from drakit.admission.faults import Faults
    from drakit.admission.policy import Policy

__all__ = ["Names", "admin_access", "claim", "request_names", "request_reference", "request_references"]

Json = dict[str, Any]
Names = dict[str, frozenset[str]]

_MODES: Final = ("All", "ExactCount")
_UNKNOWN_REQUEST: Final = (
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
)


def claim(faults: Faults, path: str, spec: Json, server: Policy) -> None:
    """A claim spec at `spec` or, in templates, `spec.spec`."""
    devices = spec["devices"]
    where = f"{path}.devices"
    known = request_names(devices)
    constraints, requests = devices.get("constraints"), devices.get("requests")
    derived = _Derived(constraints or ())
    if formats.items(
        faults,
        f"{where}.requests",
        requests,
        limits.REQUESTS,
        lambda spot, request: _request(faults, spot, request, derived, server),
    ):
        formats.unique(faults, f"{where}.requests", (request["name"] for request in requests or ()))
    formats.items(
        faults,
        f"{where}.constraints",
        constraints,
        limits.CONSTRAINTS,
        lambda spot, constraint: _constraint(faults, spot, constraint, known, server),
    )

    def check_config(spot: str, config: Json) -> None:
        request_references(faults, f"{spot}.requests", config.get("requests"), known)
        configuration.opaque(faults, spot, config)

    formats.items(faults, f"{where}.config", devices.get("config"), limits.CLAIM_CONFIGS, check_config)
    if derived.cost > limits.CEL_COST:
        faults.forbidden(
            where, "too complex, total cost of derived attribute CEL expressions in the claim exceeds cost limit"
        )


def request_names(devices: Json) -> Names:
    """The names of requests, each with the names of its alternatives."""
    return {
        request["name"]: frozenset(each["name"] for each in request.get("firstAvailable") or ())
        for request in devices.get("requests") or ()
    }


def request_references(faults: Faults, path: str, references: list[str] | None, known: Names) -> None:
    """A set of references to requests (`name`) or alternatives (`name/alternative`)."""
    if formats.items(
        faults,
        path,
        references,
        limits.REQUEST_REFERENCES,
        lambda spot, reference: request_reference(faults, spot, reference, known),
    ):
        formats.unique(faults, path, references or ())


def request_reference(faults: Faults, path: str, reference: str, known: Names) -> None:
    """One reference to a request or an alternative."""
    segments = reference.split("/")
    if len(segments) > 2:
        faults.invalid(path, reference, _UNKNOWN_REQUEST)
        return
    for segment in segments:
        formats.label(faults, path, segment)
    alternatives = known.get(segments[0])
    if alternatives is None or (len(segments) == 2 and segments[1] not in alternatives):
        faults.invalid(path, reference, _UNKNOWN_REQUEST)


class _Derived:
    """Which attributes the constraints name for which requests, and what derived attributes cost together."""

    def __init__(self, constraints: Any) -> None:
        self.cost = 0
        self.used: set[tuple[str, str]] = set()
        for constraint in constraints:
            name = constraint.get("matchAttribute")
            name = constraint.get("distinctAttribute") if name is None else name
            if name is not None:
                self.used |= {(request, name) for request in constraint.get("requests") or ("",)}

    def is_used(self, name: str, request: str) -> bool:
        """Whether a constraint on that request (or alternative, or all) names the attribute."""
        return bool({("", name), (request, name), (request.partition("/")[0], name)} & self.used)


class _For(NamedTuple):
    """The derived attributes of a claim, seen by one request (or `request/alternative`)."""

    claim: _Derived
    request: str


def _request(faults: Faults, path: str, request: Json, derived: _Derived, server: Policy) -> None:
    name = request["name"]
    formats.label(faults, f"{path}.name", name)
    exactly, alternatives = request.get("exactly"), request.get("firstAvailable")
    if exactly is None and not alternatives:
        faults.required(path, "exactly one of `exactly` or `firstAvailable` is required")
    elif exactly is not None and alternatives:
        faults.invalid(
            path, None, "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set"
        )
    elif exactly is not None:
        _body(faults, f"{path}.exactly", exactly, _For(derived, name), server)
    else:
        where = f"{path}.firstAvailable"

        def check(spot: str, alternative: Json) -> None:
            formats.label(faults, f"{spot}.name", alternative["name"])
            _body(faults, spot, alternative, _For(derived, f"{name}/{alternative['name']}"), server)

        if formats.items(faults, where, alternatives, limits.SUBREQUESTS, check):
            formats.unique(faults, where, (each["name"] for each in alternatives or ()))


def _body(faults: Faults, path: str, body: Json, derived: _For, server: Policy) -> None:
    if body["deviceClassName"]:
        formats.subdomain(faults, f"{path}.deviceClassName", body["deviceClassName"])
    else:
        faults.required(f"{path}.deviceClassName")
    selectors.selectors(faults, f"{path}.selectors", body.get("selectors"), server)
    _derived_attributes(faults, f"{path}.derivedAttributes", body.get("derivedAttributes"), derived, server)
    mode, count = body.get("allocationMode", ""), body.get("count", 0)
    if mode == "All":
        if count != 0:
            faults.invalid(f"{path}.count", count, "must not be specified when allocationMode is 'All'")
    elif mode == "ExactCount":
        if count <= 0:
            faults.invalid(f"{path}.count", count, "must be greater than zero")
    else:
        faults.unsupported(f"{path}.allocationMode", mode, _MODES)
    for index, each in enumerate(body.get("tolerations") or ()):
        taints.toleration(faults, f"{path}.tolerations[{index}]", each, server)


def _derived_attributes(
    faults: Faults, path: str, attributes: list[Json] | None, derived: _For, server: Policy
) -> None:
    if not attributes:
        return

    def check(spot: str, attribute: Json) -> None:
        label = attribute["name"]
        if not label:
            faults.required(f"{spot}.name")
        else:
            formats.fully_qualified_name(faults, f"{spot}.name", label, one_slash=True)
            if not derived.claim.is_used(label, derived.request):
                faults.invalid(
                    f"{spot}.name",
                    label,
                    "must be referenced by at least one matchAttribute or distinctAttribute constraint targeting this "
                    "request",
                )
        if not attribute["expression"]:
            faults.required(f"{spot}.expression")
        else:
            derived.claim.cost += expressions.expression(
                faults, f"{spot}.expression", attribute["expression"], server, derived=True
            )

    if formats.items(faults, path, attributes, limits.DERIVED_ATTRIBUTES, check):
        formats.unique(faults, path, (each["name"] for each in attributes))


def _constraint(faults: Faults, path: str, constraint: Json, known: Names, server: Policy) -> None:
    request_references(faults, f"{path}.requests", constraint.get("requests"), known)
    for name in ("matchAttribute", "distinctAttribute"):
        if constraint.get(name) is not None:
            one_slash = server.since("1.37")
            formats.fully_qualified_name(faults, f"{path}.{name}", constraint[name], one_slash=one_slash)
            return
    if server.on("DRAConsumableCapacity"):
        faults.required(
            path,
            'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set',
        )
    else:
        faults.required(f"{path}.matchAttribute")


def admin_access(faults: Faults, devices: Json, labels: Any, server: Policy) -> None:
    """Requests with adminAccess need a labelled namespace; only the first is reported, at the path of a claim."""
    label = server.admin_access_label
    if not label:
        return
    for index, request in enumerate(devices.get("requests") or ()):
        if not (request.get("exactly") or {}).get("adminAccess"):
            continue
        path = f"spec.devices.requests[{index}].adminAccess"
        if not adminaccess.namespace_allows(faults, path, labels, label):
            return
