"""Kubernetes' own libraries: lists, regex, URL, IP, CIDR, quantity, semver, format, authorization, `includes`."""

from __future__ import annotations

from typing import Final

from drakit.cel.declarations import Overload, member, overload
from drakit.cel.declarations.extensions import COMPARABLE
from drakit.cel.types import (
    BOOL,
    CIDR,
    DOUBLE,
    DURATION,
    DYN,
    FORMAT,
    INT,
    IP,
    QUANTITY,
    SEMVER,
    STRING,
    UINT,
    URL,
    Type,
    list_of,
    map_of,
    optional_of,
    parameter,
    struct,
)

__all__ = [
    "AUTHORIZATION", "AUTHORIZATION_SELECTORS", "AUTHORIZER", "CIDRS", "DRA_INCLUDES", "FORMATS", "FORMAT_NAMES",
    "IPS", "LISTS", "LIST_INCLUDES", "QUANTITIES", "REGEX", "SEMVERS_0", "SEMVERS_1", "URLS",
]  # fmt: skip

_A: Final = parameter("A")
_TEXTS: Final = list_of(STRING)


def _short(type: Type) -> str:
    return type.text


def _lists() -> list[Overload]:
    summable = (INT, UINT, DOUBLE, DURATION)
    return [
        *(member("isSorted", f"list_{_short(each)}_is_sorted_bool", list_of(each), BOOL) for each in COMPARABLE),
        *(member("sum", f"list_{_short(each)}_sum_{_short(each)}", list_of(each), each) for each in summable),
        *(member("max", f"list_{_short(each)}_max_{_short(each)}", list_of(each), each) for each in COMPARABLE),
        *(member("min", f"list_{_short(each)}_min_{_short(each)}", list_of(each), each) for each in COMPARABLE),
        member("indexOf", "list_a_index_of_int", list_of(_A), _A, INT),
        member("lastIndexOf", "list_a_last_index_of_int", list_of(_A), _A, INT),
    ]


LISTS: Final = tuple(_lists())
LIST_INCLUDES: Final = (member("includes", "list_includes_dyn_dyn", DYN, DYN, BOOL),)
DRA_INCLUDES: Final = (member("includes", "dra_includes_dyn_dyn", DYN, DYN, BOOL),)
REGEX: Final = (
    member("find", "string_find_string", STRING, STRING, STRING),
    member("findAll", "string_find_all_string", STRING, STRING, _TEXTS),
    member("findAll", "string_find_all_string_int", STRING, STRING, INT, _TEXTS),
)
URLS: Final = (
    overload("url", "string_to_url", STRING, URL),
    member("getScheme", "url_get_scheme", URL, STRING),
    member("getHost", "url_get_host", URL, STRING),
    member("getHostname", "url_get_hostname", URL, STRING),
    member("getPort", "url_get_port", URL, STRING),
    member("getEscapedPath", "url_get_escaped_path", URL, STRING),
    member("getQuery", "url_get_query", URL, map_of(STRING, _TEXTS)),
    overload("isURL", "is_url_string", STRING, BOOL),
)
QUANTITIES: Final = (
    overload("quantity", "string_to_quantity", STRING, QUANTITY),
    overload("isQuantity", "is_quantity_string", STRING, BOOL),
    overload("sign", "quantity_sign", QUANTITY, INT),
    member("isGreaterThan", "quantity_is_greater_than", QUANTITY, QUANTITY, BOOL),
    member("isLessThan", "quantity_is_less_than", QUANTITY, QUANTITY, BOOL),
    member("compareTo", "quantity_compare_to", QUANTITY, QUANTITY, INT),
    member("asApproximateFloat", "quantity_get_float", QUANTITY, DOUBLE),
    member("asInteger", "quantity_get_int", QUANTITY, INT),
    member("isInteger", "quantity_is_integer", QUANTITY, BOOL),
    member("add", "quantity_add", QUANTITY, QUANTITY, QUANTITY),
    member("add", "quantity_add_int", QUANTITY, INT, QUANTITY),
    member("sub", "quantity_sub", QUANTITY, QUANTITY, QUANTITY),
    member("sub", "quantity_sub_int", QUANTITY, INT, QUANTITY),
)
SEMVERS_0: Final = (
    overload("semver", "string_to_semver", STRING, SEMVER),
    overload("isSemver", "is_semver_string", STRING, BOOL),
    member("isGreaterThan", "semver_is_greater_than", SEMVER, SEMVER, BOOL),
    member("isLessThan", "semver_is_less_than", SEMVER, SEMVER, BOOL),
    member("compareTo", "semver_compare_to", SEMVER, SEMVER, INT),
    member("major", "semver_major", SEMVER, INT),
    member("minor", "semver_minor", SEMVER, INT),
    member("patch", "semver_patch", SEMVER, INT),
)
SEMVERS_1: Final = (
    *SEMVERS_0,
    overload("semver", "string_bool_to_semver", STRING, BOOL, SEMVER),
    overload("isSemver", "is_semver_string_bool", STRING, BOOL, BOOL),
)
IPS: Final = (
    overload("ip", "string_to_ip", STRING, IP),
    member("family", "ip_family", IP, INT),
    overload("ip.isCanonical", "ip_is_canonical", STRING, BOOL),
    member("isUnspecified", "ip_is_unspecified", IP, BOOL),
    member("isLoopback", "ip_is_loopback", IP, BOOL),
    member("isLinkLocalMulticast", "ip_is_link_local_multicast", IP, BOOL),
    member("isLinkLocalUnicast", "ip_is_link_local_unicast", IP, BOOL),
    member("isGlobalUnicast", "ip_is_global_unicast", IP, BOOL),
    overload("isIP", "is_ip", STRING, BOOL),
    overload("string", "ip_to_string", IP, STRING),
)
CIDRS: Final = (
    overload("cidr", "string_to_cidr", STRING, CIDR),
    member("containsIP", "cidr_contains_ip_string", CIDR, STRING, BOOL),
    member("containsIP", "cidr_contains_ip_ip", CIDR, IP, BOOL),
    member("containsCIDR", "cidr_contains_cidr_string", CIDR, STRING, BOOL),
    member("containsCIDR", "cidr_contains_cidr", CIDR, CIDR, BOOL),
    member("ip", "cidr_ip", CIDR, IP),
    member("prefixLength", "cidr_prefix_length", CIDR, INT),
    member("masked", "cidr_masked", CIDR, CIDR),
    overload("isCIDR", "is_cidr", STRING, BOOL),
    overload("string", "cidr_to_string", CIDR, STRING),
)
FORMAT_NAMES: Final = [
    "dns1123Label",
    "dns1123Subdomain",
    "dns1035Label",
    "qualifiedName",
    "dns1123LabelPrefix",
    "dns1123SubdomainPrefix",
    "dns1035LabelPrefix",
    "labelValue",
    "uri",
    "uuid",
    "byte",
    "date",
    "datetime",
]
FORMATS: Final = (
    member("validate", "format-validate", FORMAT, STRING, optional_of(_TEXTS)),
    overload("format.named", "format-named", STRING, optional_of(FORMAT)),
    *(overload(f"format.{name}", f"format.{name}", FORMAT) for name in FORMAT_NAMES),
)
AUTHORIZER: Final = struct("kubernetes.authorization.Authorizer")
_PATH: Final = struct("kubernetes.authorization.PathCheck")
_GROUP: Final = struct("kubernetes.authorization.GroupCheck")
_RESOURCE: Final = struct("kubernetes.authorization.ResourceCheck")
_DECISION: Final = struct("kubernetes.authorization.Decision")
AUTHORIZATION: Final = (
    member("path", "authorizer_path", AUTHORIZER, STRING, _PATH),
    member("group", "authorizer_group", AUTHORIZER, STRING, _GROUP),
    member("serviceAccount", "authorizer_serviceaccount", AUTHORIZER, STRING, STRING, AUTHORIZER),
    member("resource", "groupcheck_resource", _GROUP, STRING, _RESOURCE),
    member("subresource", "resourcecheck_subresource", _RESOURCE, STRING, _RESOURCE),
    member("namespace", "resourcecheck_namespace", _RESOURCE, STRING, _RESOURCE),
    member("name", "resourcecheck_name", _RESOURCE, STRING, _RESOURCE),
    member("check", "pathcheck_check", _PATH, STRING, _DECISION),
    member("check", "resourcecheck_check", _RESOURCE, STRING, _DECISION),
    member("errored", "decision_errored", _DECISION, BOOL),
    member("error", "decision_error", _DECISION, STRING),
    member("allowed", "decision_allowed", _DECISION, BOOL),
    member("reason", "decision_reason", _DECISION, STRING),
)
AUTHORIZATION_SELECTORS: Final = (
    member("fieldSelector", "authorizer_fieldselector", _RESOURCE, STRING, _RESOURCE),
    member("labelSelector", "authorizer_labelselector", _RESOURCE, STRING, _RESOURCE),
)
