"""The recorded exchanges with kube-apiserver 1.36.2 (spec/apiserver.md, HTTP) replay against the fake one."""

from typing import Any

import yaml

READ_BY_CLIENTS = ("Content-Type", "Warning", "Retry-After", "Cache-Control", "X-Content-Type-Options")


TEXTS_DIFFER = {
    "create-400-json": "the JSON parser's words",
    "create-400-type": "the name of the Go struct",
    "update-add-finalizer-while-deleting-422": "a list in Go's notation",
    "blanks-claim-patch-label-422": "the value in Go's notation",
    "blanks-claim-jsonpatch-422": "the value in Go's notation",
    "blanks-claim-apply": "the value in Go's notation",
    "blanks-claim-put-compact-422": "the value in Go's notation",
}
"""Refusals whose texts repeat something of Go; docs/simulator.md names them. Status, reason and fields are the same."""


def _without_texts(body: Any) -> Any:
    details = {**body.get("details", {})}
    details["causes"] = [{**cause, "message": ""} for cause in details.get("causes", [])]
    return {**body, "message": "", "details": details}


def _body(answer: Any, recorded: Any) -> tuple[Any, Any]:
    if "body_lines" in recorded:
        return _lines(answer.lines), _lines(recorded["body_lines"])
    media = answer.headers["Content-Type"]
    if media == "application/yaml":
        return yaml.safe_load(answer.content), yaml.safe_load(recorded["body"])
    if media.startswith("text/plain"):
        return answer.content.decode(), recorded["body"]
    return answer.body, recorded["body"]


def _lines(lines: list[Any]) -> list[Any]:
    """Events without the bookmarks between them, whose number depends on the time that passes."""
    return [line for line in lines if line["type"] != "BOOKMARK" or "annotations" in line["object"]["metadata"]]


async def test_recorded_exchanges_replay(replay: Any, recorded: Any) -> None:
    different: list[tuple[Any, ...]] = []
    for exchange in recorded["exchanges"]:
        answer = await replay.send(exchange)
        response = exchange["response"]
        if answer.status != response["status"]:
            different.append((exchange["name"], "status", response["status"], answer.status, answer.content[:300]))
            continue
        headers = dict(response["headers"])
        different.extend(
            (exchange["name"], header, headers.get(header), answer.headers.get(header))
            for header in READ_BY_CLIENTS
            if headers.get(header) != answer.headers.get(header)
        )
        actual, expected = _body(answer, response)
        actual, expected = replay.comparable(actual, recorded=False), replay.comparable(expected, recorded=True)
        if exchange["name"] in TEXTS_DIFFER:
            actual, expected = _without_texts(actual), _without_texts(expected)
        elif exchange["name"] == "create-generateName":
            actual["metadata"]["name"] = expected["metadata"]["name"]
        if actual != expected:
            different.append((exchange["name"], "body", expected, actual))

    assert different == []
