"""Shapes of the kinds outside resource.k8s.io, as far as DRA touches them (all open)."""

from typing import Final

from drakit.simulator.apiserver.field_shapes import kind_fields
from drakit.simulator.apiserver.shapes import (
    BOOLEAN,
    INT32,
    INTEGER,
    OPEN,
    QUANTITY,
    STRING,
    TIME,
    Shape,
    atomic,
    keyed,
    listed,
    mapping,
    struct,
    unique,
)

__all__ = ["CORE_SHAPES"]

_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1."
_V1: Final = "io.k8s.api.core.v1."


def _kind(reference: str, **fields: Shape) -> Shape:
    return Shape("object", fields={**kind_fields(), **fields}, is_open=True, reference=reference)


def _condition(reference: str) -> Shape:
    return struct(
        reference,
        is_open=True,
        required=("type", "status"),
        lastTransitionTime=TIME,
        message=STRING,
        reason=STRING,
        status=STRING,
        type=STRING,
    )


_RESOURCES = struct(
    _V1 + "ResourceRequirements",
    claims=keyed(
        struct(_V1 + "ResourceClaim", required=("name",), name=STRING, request=STRING), "name", patch_key=None
    ),
    limits=mapping(QUANTITY),
    requests=mapping(QUANTITY),
)
_ENV = struct(_V1 + "EnvVar", is_open=True, required=("name",), name=STRING, value=STRING)
_PORT = struct(
    _V1 + "ContainerPort",
    is_open=True,
    required=("containerPort",),
    containerPort=INT32,
    hostPort=INT32,
    name=STRING,
    protocol=STRING,
)
_MOUNT = struct(
    _V1 + "VolumeMount", is_open=True, required=("name", "mountPath"), mountPath=STRING, name=STRING, readOnly=BOOLEAN
)
_CONTAINER = struct(
    _V1 + "Container",
    is_open=True,
    required=("name",),
    args=listed(STRING),
    command=listed(STRING),
    env=keyed(_ENV, "name"),
    image=STRING,
    imagePullPolicy=STRING,
    name=STRING,
    ports=keyed(_PORT, "containerPort", "protocol"),
    resources=_RESOURCES,
    restartPolicy=STRING,
    volumeDevices=keyed(OPEN, "devicePath"),
    volumeMounts=keyed(_MOUNT, "mountPath"),
    workingDir=STRING,
)
_POD_CLAIM = struct(
    _V1 + "PodResourceClaim",
    required=("name",),
    name=STRING,
    podGroupResourceClaim=STRING,
    resourceClaimName=STRING,
    resourceClaimTemplateName=STRING,
)
_TOLERATION = struct(
    _V1 + "Toleration", effect=STRING, key=STRING, operator=STRING, tolerationSeconds=INTEGER, value=STRING
)
_NAMED = struct(_V1 + "LocalObjectReference", name=STRING)
_POD_SPEC = struct(
    _V1 + "PodSpec",
    is_open=True,
    required=("containers",),
    containers=keyed(_CONTAINER, "name"),
    ephemeralContainers=keyed(OPEN, "name"),
    hostAliases=keyed(OPEN, "ip"),
    hostNetwork=BOOLEAN,
    imagePullSecrets=keyed(_NAMED, "name"),
    initContainers=keyed(_CONTAINER, "name"),
    nodeName=STRING,
    nodeSelector=mapping(is_atomic=True),
    overhead=mapping(QUANTITY),
    priority=INT32,
    priorityClassName=STRING,
    resourceClaims=keyed(_POD_CLAIM, "name"),
    restartPolicy=STRING,
    schedulerName=STRING,
    schedulingGates=keyed(struct(_V1 + "PodSchedulingGate", name=STRING), "name"),
    serviceAccountName=STRING,
    terminationGracePeriodSeconds=INTEGER,
    tolerations=listed(_TOLERATION),
    topologySpreadConstraints=keyed(OPEN, "topologyKey", "whenUnsatisfiable"),
    volumes=keyed(struct(_V1 + "Volume", is_open=True, required=("name",), name=STRING), "name"),
)
_POD_STATUS = struct(
    _V1 + "PodStatus",
    is_open=True,
    conditions=keyed(_condition(_V1 + "PodCondition"), "type"),
    containerStatuses=listed(OPEN),
    hostIP=STRING,
    hostIPs=atomic(keyed(OPEN, "ip")),
    initContainerStatuses=listed(OPEN),
    message=STRING,
    nominatedNodeName=STRING,
    phase=STRING,
    podIP=STRING,
    podIPs=keyed(OPEN, "ip"),
    qosClass=STRING,
    reason=STRING,
    resourceClaimStatuses=keyed(
        struct(_V1 + "PodResourceClaimStatus", required=("name",), name=STRING, resourceClaimName=STRING), "name"
    ),
    startTime=TIME,
)
_TAINT = struct(_V1 + "Taint", required=("key", "effect"), effect=STRING, key=STRING, timeAdded=TIME, value=STRING)
_NODE = _kind(
    _V1 + "Node",
    spec=struct(
        _V1 + "NodeSpec",
        is_open=True,
        podCIDR=STRING,
        podCIDRs=unique(),
        providerID=STRING,
        taints=listed(_TAINT),
        unschedulable=BOOLEAN,
    ),
    status=struct(
        _V1 + "NodeStatus",
        is_open=True,
        addresses=keyed(struct(_V1 + "NodeAddress", address=STRING, type=STRING), "type"),
        allocatable=mapping(QUANTITY),
        capacity=mapping(QUANTITY),
        conditions=keyed(_condition(_V1 + "NodeCondition"), "type"),
        images=listed(OPEN),
        nodeInfo=OPEN,
    ),
)
_NAMESPACE = _kind(
    _V1 + "Namespace",
    spec=struct(_V1 + "NamespaceSpec", finalizers=listed(STRING)),
    status=struct(
        _V1 + "NamespaceStatus", conditions=keyed(_condition(_V1 + "NamespaceCondition"), "type"), phase=STRING
    ),
)
_OBJECT_REFERENCE = struct(
    _V1 + "ObjectReference",
    apiVersion=STRING,
    fieldPath=STRING,
    kind=STRING,
    name=STRING,
    namespace=STRING,
    resourceVersion=STRING,
    uid=STRING,
)
_EVENT = _kind(
    _V1 + "Event",
    action=STRING,
    count=INT32,
    eventTime=TIME,
    firstTimestamp=TIME,
    involvedObject=_OBJECT_REFERENCE,
    lastTimestamp=TIME,
    message=STRING,
    reason=STRING,
    related=_OBJECT_REFERENCE,
    reportingComponent=STRING,
    reportingInstance=STRING,
    series=OPEN,
    source=struct(_V1 + "EventSource", component=STRING, host=STRING),
    type=STRING,
)
_LEASE = _kind(
    "io.k8s.api.coordination.v1.Lease",
    spec=struct(
        "io.k8s.api.coordination.v1.LeaseSpec",
        is_open=True,
        acquireTime=TIME,
        holderIdentity=STRING,
        leaseDurationSeconds=INT32,
        leaseTransitions=INT32,
        renewTime=TIME,
    ),
)


def _pod_group(version: str) -> Shape:
    package = f"io.k8s.api.scheduling.{version}."
    claim = struct(
        package + "PodGroupResourceClaim",
        required=("name",),
        name=STRING,
        resourceClaimName=STRING,
        resourceClaimTemplateName=STRING,
    )
    status = struct(package + "PodGroupResourceClaimStatus", required=("name",), name=STRING, resourceClaimName=STRING)
    return _kind(
        package + "PodGroup",
        spec=struct(package + "PodGroupSpec", is_open=True, resourceClaims=keyed(claim, "name")),
        status=struct(
            package + "PodGroupStatus",
            is_open=True,
            conditions=keyed(_condition(_META + "Condition"), "type"),
            resourceClaimStatuses=keyed(status, "name"),
        ),
    )


CORE_SHAPES: Final[dict[tuple[str, str, str], Shape]] = {
    ("", "v1", "Namespace"): _NAMESPACE,
    ("", "v1", "Node"): _NODE,
    ("", "v1", "Pod"): _kind(_V1 + "Pod", spec=_POD_SPEC, status=_POD_STATUS),
    ("", "v1", "ConfigMap"): _kind(_V1 + "ConfigMap", binaryData=mapping(), data=mapping(), immutable=BOOLEAN),
    ("", "v1", "Event"): _EVENT,
    ("", "v1", "Secret"): _kind(_V1 + "Secret", data=mapping(), immutable=BOOLEAN, stringData=mapping(), type=STRING),
    ("", "v1", "ServiceAccount"): _kind(
        _V1 + "ServiceAccount",
        automountServiceAccountToken=BOOLEAN,
        imagePullSecrets=listed(_NAMED),
        secrets=keyed(_OBJECT_REFERENCE, "name"),
    ),
    ("coordination.k8s.io", "v1", "Lease"): _LEASE,
    ("scheduling.k8s.io", "v1", "PriorityClass"): _kind(
        "io.k8s.api.scheduling.v1.PriorityClass",
        description=STRING,
        globalDefault=BOOLEAN,
        preemptionPolicy=STRING,
        value=INT32,
    ),
    ("scheduling.k8s.io", "v1beta1", "PodGroup"): _pod_group("v1beta1"),
    ("scheduling.k8s.io", "v1alpha2", "PodGroup"): _pod_group("v1alpha2"),
}
"""Shapes by group, version and kind."""
