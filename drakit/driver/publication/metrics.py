"""What the publisher counts; one registry for each app object, so that tests and instances do not share numbers."""

from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

__all__ = ["Metrics"]


class Metrics:
    """Prometheus metrics of publication."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = registry or CollectorRegistry()
        self.syncs = Counter(
            "drakit_resourceslice_sync",
            "Passes over one pool, by result.",
            ["result"],
            registry=self.registry,
        )
        self.writes = Counter(
            "drakit_resourceslice_writes",
            "ResourceSlices written, by operation.",
            ["operation"],
            registry=self.registry,
        )
        self.refusals = Counter(
            "drakit_resourceslice_refusals",
            "Pools refused for good, by reason of the API server or of our own check.",
            ["reason"],
            registry=self.registry,
        )
        self.dropped = Counter(
            "drakit_resourceslice_dropped_fields",
            "Slices whose fields the API server dropped, by feature gate.",
            ["gate"],
            registry=self.registry,
        )
        self.normalised = Counter(
            "drakit_device_normalised",
            "Attributes changed or left out before publication, by action.",
            ["action"],
            registry=self.registry,
        )
        self.devices = Gauge("drakit_resourceslice_devices", "Devices in published pools.", registry=self.registry)
        self.last = Gauge(
            "drakit_last_publish_timestamp_seconds",
            "When a pool was last found or made complete.",
            registry=self.registry,
        )
        for result in ("unchanged", "written", "failed", "refused", "standby"):
            self.syncs.labels(result)
        for operation in ("create", "update", "delete"):
            self.writes.labels(operation)

    def exposition(self) -> tuple[bytes, str]:
        """All metrics of the registry in Prometheus' text format, and its content type."""
        return generate_latest(self.registry), CONTENT_TYPE_LATEST
