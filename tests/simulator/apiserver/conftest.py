"""A server, a plain HTTP client for it, and the recorded exchanges with a replayer."""

import asyncio
import contextlib
import gzip
import io
import json
import re
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from yarl import URL

from drakit import admission
from drakit.simulator.apiserver import FakeAPIServer
from drakit.simulator.apiserver.resources import Kind
from drakit.simulator.clock import ManualClock

VECTORS = Path(__file__).parents[2] / "vectors"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"


class Answered:
    """One answer, read to its end."""

    def __init__(self, status: int, headers: Any, text: bytes) -> None:
        self.status, self.headers, self.content = status, headers, text

    @property
    def body(self) -> Any:
        return json.loads(self.content) if self.content else None

    @property
    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.content.splitlines()]

    @property
    def message(self) -> str:
        return str(self.body["message"])


class Http:
    """Requests to one server over real sockets."""

    def __init__(self, server: FakeAPIServer, session: aiohttp.ClientSession) -> None:
        self.server, self.session = server, session
        self.context = ssl.create_default_context(cadata=server.ca.decode()) if server.ca else None
        self.token = server.token()

    def open(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        sent = {"Authorization": f"Bearer {self.token}", **{name.replace("_", "-"): v for name, v in headers.items()}}
        data = (
            body
            if body is None or isinstance(body, (bytes, io.BytesIO))
            else json.dumps(body, separators=(",", ":")).encode()
        )
        if data is not None and "Content-Type" not in sent:
            sent["Content-Type"] = "application/json"
        url = URL(self.server.url + path, encoded=True)
        sent = {name: value for name, value in sent.items() if value}
        return self.session.request(method, url, data=data, headers=sent, ssl=self.context or True)

    async def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> Answered:
        async with self.open(method, path, body, **headers) as response:
            return Answered(response.status, response.headers, await response.read())

    async def get(self, path: str, **headers: str) -> Any:
        return (await self("GET", path, **headers)).body

    async def patch(self, path: str, body: Any, kind: str = "merge-patch+json") -> Answered:
        return await self("PATCH", path, body, Content_Type=f"application/{kind}")


@pytest.fixture
async def server() -> AsyncIterator[FakeAPIServer]:
    """A server of the newest version."""
    async with FakeAPIServer() as server:
        yield server


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    """A session that accepts large lines."""
    async with aiohttp.ClientSession(read_bufsize=2**20, skip_auto_headers={"User-Agent"}) as session:
        yield session


@pytest.fixture
def http(server: FakeAPIServer, session: aiohttp.ClientSession) -> Http:
    """Requests to `server`."""
    return Http(server, session)


async def _until(condition: Callable[[], Any]) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110  (the condition is another task's, with no event of its own)
            await asyncio.sleep(0.001)


@pytest.fixture
def until() -> Callable[[Callable[[], Any]], Awaitable[None]]:
    """Wait until a condition holds."""
    return _until


@pytest.fixture
def bare() -> Any:
    """The client's class, for tests that configure the server themselves: `bare(server, session)`."""
    return Http


def a_slice(name: str = "slice", driver: str = "x.example.com", **spec: Any) -> dict[str, Any]:
    pool = {"name": "pool", "generation": 1, "resourceSliceCount": 1}
    whole = {"driver": driver, "nodeName": "node-a", "pool": pool, "devices": [{"name": "dev-0"}], **spec}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": name}, "spec": whole}


def a_claim(name: str = "claim", namespace: str = "default") -> dict[str, Any]:
    requests = [{"name": "r1", "exactly": {"deviceClassName": "cls"}}]
    metadata = {"name": name, "namespace": namespace}
    spec = {"devices": {"requests": requests}}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": metadata, "spec": spec}


def a_pod(name: str = "pod", namespace: str = "default", **spec: Any) -> dict[str, Any]:
    whole = {"containers": [{"name": "c", "image": "example.com/image:1"}], **spec}
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": whole}


@pytest.fixture
def make_slice() -> Any:
    return a_slice


@pytest.fixture
def make_claim() -> Any:
    return a_claim


@pytest.fixture
def make_pod() -> Any:
    return a_pod


# -- the recording ----------------------------------------------------------------------------------------------------

RECORDED: dict[str, Any] = json.loads(gzip.decompress((VECTORS / "http.json.gz").read_bytes()))
READ_BY_CLIENTS = ("Content-Type", "Warning", "Retry-After", "Cache-Control", "X-Content-Type-Options")


def started() -> datetime:
    return datetime(2026, 11, 29, 13, 20, 2, tzinfo=UTC)


class RecordedClock(ManualClock):
    """Shows the dates of the recording; waiting is driven by `advance`."""

    date = started()

    def now(self) -> datetime:
        return self.date


class Replay:
    """Sends the recorded requests to a server of the recorded version, at the recorded times and revisions."""

    def __init__(self, server: FakeAPIServer, http: Http, clock: RecordedClock) -> None:
        self.server, self.http, self.clock = server, http, clock
        self.uids: dict[str, str] = {}

    def exchange(self, name: str) -> dict[str, Any]:
        return next(exchange for exchange in RECORDED["exchanges"] if exchange["name"] == name)

    async def send(self, exchange: dict[str, Any]) -> Answered:
        """Send one request; what the recorder did beside (moved on time and revision, added a finalizer) is done first."""
        request = exchange["request"]
        headers = {name.replace("-", "_"): value for name, value in request["headers"].items()}
        if exchange["name"] == "401":
            headers["Authorization"] = ""
        await self._prepare(exchange)
        raw = _raw_body(exchange)
        body = self._known(raw) if raw is not None else None
        path = self._known(request["path"].encode()).decode()
        if "meanwhile" not in request:
            answer = await self.http(request["method"], path, body, **headers)
            self._learn(exchange["response"].get("body"), answer)
            return answer
        return await self._watch(exchange, path, headers)

    async def _watch(self, exchange: dict[str, Any], path: str, headers: dict[str, str]) -> Answered:
        """Open the watch, do what was done meanwhile, read until the recorded changes are there, then let it expire."""
        expected = [line for line in exchange["response"]["body_lines"] if line["type"] != "BOOKMARK"]
        async with self.http.open("GET", path, **headers) as response:
            for method, target, body in exchange["request"]["meanwhile"]:
                kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
                await self.http(method, target, body, Content_Type=kind, User_Agent="apivec-record")
            lines: list[bytes] = []
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(5):
                    while sum(b'"BOOKMARK"' not in line for line in lines) < len(expected):
                        lines.append(await response.content.readline())
            self._learn_lines(expected, lines)
            reading = asyncio.ensure_future(response.content.read())
            while not reading.done():
                await self.clock.advance(1)
                await asyncio.wait({reading}, timeout=0.01)
            return Answered(response.status, response.headers, b"".join(lines) + reading.result())

    async def _prepare(self, exchange: dict[str, Any]) -> None:
        if exchange["name"] == "delete-with-finalizer":
            self.clock.date = datetime.fromisoformat(_deletion_time(exchange))
            self.server.storage.next_revision(12720)
            await self.http(
                "PATCH",
                SLICES + "/rec-x0",
                {"metadata": {"finalizers": ["example.com/hold"]}},
                Content_Type="application/merge-patch+json",
                User_Agent="apivec-record",
            )
        revision = _revision_before(exchange)
        if revision is not None:
            self.server.storage.next_revision(revision)
        date = dict(exchange["response"]["headers"]).get("Date")
        deleted = _deletion_time(exchange)
        if deleted:
            self.clock.date = datetime.fromisoformat(deleted)
        elif date:
            self.clock.date = parsedate_to_datetime(date)

    def _known(self, text: bytes) -> bytes:
        for recorded, actual in self.uids.items():
            text = text.replace(recorded.encode(), actual.encode())
        return text

    def _learn(self, recorded: Any, answer: Answered) -> None:
        if isinstance(recorded, dict) and "metadata" in recorded and answer.content.startswith(b"{"):
            old, new = recorded["metadata"].get("uid"), (answer.body.get("metadata") or {}).get("uid")
            if old and new:
                self.uids[old] = new

    def _learn_lines(self, expected: list[Any], lines: list[bytes]) -> None:
        changes = [line for line in lines if b'"BOOKMARK"' not in line]
        for recorded, line in zip(expected, changes, strict=False):
            self._learn(recorded["object"], Answered(200, {}, json.dumps(json.loads(line)["object"]).encode()))

    def comparable(self, value: Any, *, recorded: bool) -> Any:
        """A body without what differs by design: uids, column descriptions."""
        text = json.dumps(value)
        if recorded:
            text = self._known(text.encode()).decode()
        value = json.loads(text)
        if isinstance(value, dict) and value.get("kind") == "Table":
            for column in value.get("columnDefinitions") or []:
                column["description"] = ""
        return value


def _deletion_time(exchange: dict[str, Any]) -> str:
    body = exchange["response"].get("body")
    metadata = body.get("metadata") if isinstance(body, dict) else None
    return str((metadata or {}).get("deletionTimestamp") or "")


def _raw_body(exchange: dict[str, Any]) -> bytes | None:
    body = exchange["request"].get("body")
    if body is None:
        return None
    if exchange["name"] == "put-409-uid":  # the recording lost the uid that the answer tells of
        body = {**body, "metadata": {**body["metadata"], "uid": "11111111-2222-4333-8444-555555555555"}}
    return body.encode() if isinstance(body, str) else json.dumps(body, separators=(",", ":")).encode()


def _revision_before(exchange: dict[str, Any]) -> int | None:
    """Where the recorded server's revision stood when the request came."""
    body = exchange["response"].get("body")
    lines = exchange["response"].get("body_lines")
    if lines:
        marks = [line for line in lines if line["object"]["metadata"].get("annotations")]
        if marks:
            return int(marks[0]["object"]["metadata"]["resourceVersion"])
        changes = exchange["request"]["meanwhile"]
        return int(lines[0]["object"]["metadata"]["resourceVersion"]) - 1 if changes else None
    if not isinstance(body, dict):
        return None
    if exchange["name"] == "list-rv-future-504":
        return int(re.findall(r"current: (\d+)", body["message"])[0])
    revision = int((body.get("metadata") or {}).get("resourceVersion") or 0)
    if not revision:
        return None
    return revision if exchange["request"]["method"] == "GET" or body["kind"].endswith("List") else revision - 1


@pytest.fixture
async def replay(session: aiohttp.ClientSession) -> AsyncIterator[Replay]:
    """A server of the recorded version with what the recorded one held before the first exchange."""
    clock = RecordedClock()
    clock.date = started()
    async with FakeAPIServer(
        "1.36",
        gates=ALL_GATES,
        clock=clock,
        authorizer=lambda call: call.user != "rec-user-none",
        future_wait=0,
        namespaces=("default", "rec", "kt19", "kt20"),
    ) as server:
        seed(server)
        yield Replay(server, Http(server, session), clock)


ALL_GATES = admission.profile("1.36", all_gates=True)


def seed(server: FakeAPIServer) -> None:
    """The objects that the recorded lists show besides those of the exchanges."""

    def put(kind: Kind, obj: dict[str, Any]) -> None:
        key = (obj["metadata"].get("namespace", ""), obj["metadata"]["name"])
        revision = int(obj["metadata"]["resourceVersion"])
        server.storage.revision = revision - 1
        whole = {"kind": kind.kind, "apiVersion": "resource.k8s.io/v1", **obj}
        server.storage.put(kind, key, whole)

    found: dict[str, dict[tuple[str, str], dict[str, Any]]] = {}
    for exchange in RECORDED["exchanges"][:48]:
        if exchange["request"]["method"] != "GET":
            continue
        body, plural = exchange["response"].get("body"), exchange["request"]["path"].partition("?")[0].split("/")[-1]
        if not isinstance(body, dict):
            continue
        for item in body.get("items") or []:
            add(found, plural, item)
        for row in body.get("rows") or []:
            metadata = (row.get("object") or {}).get("metadata") or {
                "name": row["cells"][0],
                "resourceVersion": "5000",
                "creationTimestamp": "2026-11-29T13:07:55Z",
            }
            add(found, plural, {"metadata": metadata, **_spec_of_row(plural, row["cells"])})
    for number in range(13):
        name, revision = f"other-{number:02}", str(4000 + number)
        metadata = {"name": name, "namespace": "kt20", "resourceVersion": revision, "uid": name}
        add(found, "resourceclaims", {"metadata": metadata, "spec": {"devices": {}}, "status": {}})
    for number in range(2):
        metadata = {"name": f"rec-z{number}", "namespace": "rec", "resourceVersion": f"410{number}", "uid": "z"}
        add(found, "resourceclaims", {"metadata": metadata, "spec": {"devices": {}}, "status": {}})
    for plural, objects in found.items():
        for _, obj in sorted(objects.items(), key=lambda entry: int(entry[1]["metadata"]["resourceVersion"])):
            if not obj["metadata"]["name"].startswith(("rec-x", "rec-ap")):
                put(server.registry.by_plural(plural), obj)
    server.compact(6086)
    server.storage.revision = 12690


def add(found: dict[str, Any], plural: str, item: dict[str, Any]) -> None:
    if plural not in {
        "resourceslices",
        "resourceclaims",
        "resourceclaimtemplates",
        "deviceclasses",
        "devicetaintrules",
    }:
        return
    key = (item["metadata"].get("namespace", ""), item["metadata"]["name"])
    known = found.setdefault(plural, {})
    if key not in known or "spec" not in known[key] or len(str(item)) > len(str(known[key])):
        known[key] = {name: value for name, value in item.items() if name not in {"kind", "apiVersion"}}


def _spec_of_row(plural: str, cells: list[Any]) -> dict[str, Any]:
    if plural == "resourceslices":
        return {"spec": {"nodeName": cells[1], "driver": cells[2], "pool": {"name": cells[3]}}}
    if plural == "resourceclaims":
        status: dict[str, Any] = {"allocation": {"devices": {}}} if cells[1] == "allocated" else {}
        return {"spec": {"devices": {}}, "status": status}
    if plural == "devicetaintrules":
        taint = {"key": cells[1], "value": cells[2], "effect": cells[3], "timeAdded": "2026-01-02T03:04:05Z"}
        return {"spec": {"taint": taint}}
    return {"spec": {}}


@pytest.fixture(scope="session")
def recorded() -> dict[str, Any]:
    """The whole recording."""
    return RECORDED
