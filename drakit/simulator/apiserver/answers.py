"""A complete answer, before it becomes an HTTP response."""

import msgspec

__all__ = ["Answer"]


class Answer(msgspec.Struct):
    """Body and status, and what goes into the headers; `warnings` become Warning headers."""

    body: bytes
    status: int = 200
    media: str = "application/json"
    warnings: tuple[str, ...] = ()
    headers: dict[str, str] = {}
