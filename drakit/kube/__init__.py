"""The API client: credentials, raw-JSON requests, list/watch reflector. The only room that talks to an API server.

aiohttp and `kubernetes.config` live here and nowhere above. Objects are plain v1 dicts; nothing is
read-modified-written through typed models. What may be repeated after which failure is decided here, once.
"""

from drakit.kube.backoff import Backoff
from drakit.kube.client import APPLY_PATCH, JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH, Client, Event
from drakit.kube.credentials import Credentials, Grant, find, from_kubeconfig, in_cluster
from drakit.kube.election import Election, LostLeadershipError, identity, running_holder
from drakit.kube.errors import (
    ApiError,
    Cause,
    Conflict,
    CredentialsError,
    Forbidden,
    Gone,
    Invalid,
    NotFound,
    NotServed,
    ServerError,
    TooManyRequests,
    Unanswered,
    Unauthorized,
    Unreachable,
)
from drakit.kube.recorder import Recorder
from drakit.kube.reflector import Change, Reflector
from drakit.kube.resources import (
    DEVICE_CLASSES,
    DEVICE_TAINT_RULES,
    EVENTS,
    LEASES,
    NAMESPACES,
    NODES,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Resource,
)

__all__ = [
    "APPLY_PATCH",
    "DEVICE_CLASSES",
    "DEVICE_TAINT_RULES",
    "EVENTS",
    "JSON_PATCH",
    "LEASES",
    "MERGE_PATCH",
    "NAMESPACES",
    "NODES",
    "PODS",
    "RESOURCE_CLAIMS",
    "RESOURCE_CLAIM_TEMPLATES",
    "RESOURCE_SLICES",
    "STRATEGIC_MERGE_PATCH",
    "ApiError",
    "Backoff",
    "Cause",
    "Change",
    "Client",
    "Conflict",
    "Credentials",
    "CredentialsError",
    "Election",
    "Event",
    "Forbidden",
    "Gone",
    "Grant",
    "Invalid",
    "LostLeadershipError",
    "NotFound",
    "NotServed",
    "Recorder",
    "Reflector",
    "Resource",
    "ServerError",
    "TooManyRequests",
    "Unanswered",
    "Unauthorized",
    "Unreachable",
    "find",
    "from_kubeconfig",
    "identity",
    "in_cluster",
    "running_holder",
]
