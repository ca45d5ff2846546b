"""What the driver counts. One registry per application, so that tests and several drivers do not mix."""

import contextlib
import time
from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

__all__ = ["Metrics"]

_OPERATIONS = ("prepare", "unprepare")
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 45.0)


class Metrics:
    """The driver's metrics; `registry` may be given more by the publisher."""

    def __init__(self, driver: str, version: str) -> None:
        """Declare all metrics, with zeros where a series is expected."""
        self.registry = registry = CollectorRegistry()
        self.content_type = CONTENT_TYPE_LATEST
        self._requests = Counter("drakit_requests", "Calls of the kubelet.", ["operation"], registry=registry)
        self._duration = Histogram(
            "drakit_request_duration_seconds",
            "Time that calls of the kubelet took.",
            ["operation"],
            buckets=_BUCKETS,
            registry=registry,
        )
        self._inflight = Gauge("drakit_requests_inflight", "Calls being served.", ["operation"], registry=registry)
        self._errors = Counter(
            "drakit_claim_errors", "Claims that failed, by kind of error.", ["operation", "type"], registry=registry
        )
        self.prepared_claims = Gauge("drakit_prepared_claims", "Claims prepared on this node.", registry=registry)
        self.prepared_devices = Gauge("drakit_prepared_devices", "Devices prepared on this node.", registry=registry)
        self.hooks_running = Gauge("drakit_hooks_running", "Hooks of the device driver at work.", registry=registry)
        self.quarantined = Counter("drakit_quarantined_records", "Broken claim records set aside.", registry=registry)
        self.restored = Counter("drakit_restored_files", "CDI and metadata files written again.", registry=registry)
        self.reconciled = Counter(
            "drakit_reconciled_claims", "Claims unprepared because the API no longer has them.", registry=registry
        )
        self.registered = Gauge("drakit_registered", "1 while the kubelet accepts the driver.", registry=registry)
        self.refusals = Counter("drakit_registration_refusals", "Refusals by the kubelet.", registry=registry)
        self.restarts = Counter(
            "drakit_part_restarts", "Restarts of parts of the driver after an error.", ["part"], registry=registry
        )
        info = Gauge("drakit_build_info", "Always 1.", ["version", "driver"], registry=registry)
        info.labels(version, driver).set(1)
        for operation in _OPERATIONS:
            self._requests.labels(operation)
            self._duration.labels(operation)
            self._inflight.labels(operation)

    @contextlib.contextmanager
    def request(self, operation: str) -> Iterator[None]:
        """Count one call and its duration."""
        self._requests.labels(operation).inc()
        started = time.perf_counter()
        with self._inflight.labels(operation).track_inprogress():
            try:
                yield
            finally:
                self._duration.labels(operation).observe(time.perf_counter() - started)

    def failed(self, operation: str, kind: str) -> None:
        """Count one claim that failed."""
        self._errors.labels(operation, kind).inc()

    def exposition(self) -> bytes:
        """All metrics in Prometheus' text format."""
        return generate_latest(self.registry)
