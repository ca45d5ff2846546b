"""Structured logs: JSON lines, or text on a terminal; grpc's and other libraries' records get the same shape."""

import json
import logging
import sys
from typing import Any, TextIO

import structlog

__all__ = ["FORMATS", "LEVELS", "configure"]

FORMATS = ("auto", "json", "console")
LEVELS = ("debug", "info", "warning", "error")


def configure(level: str, form: str, stream: TextIO | None = None) -> None:
    """Send all records of at least `level` to `stream` (default: stderr).

    Args:
        level: one of LEVELS.
        form: json, console, or auto: console on a terminal.
        stream: where to.
    """
    stream = stream or sys.stderr
    console = form == "console" or (form == "auto" and stream.isatty())
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="ts"),
    ]
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.PositionalArgumentsFormatter(),
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *_rendering(console)],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    logging.getLogger("asyncio").setLevel("WARNING")


def _rendering(console: bool) -> list[Any]:
    if console:
        plain = structlog.dev.plain_traceback  # the others print local variables, and those may be secrets
        return [structlog.dev.ConsoleRenderer(colors=False, exception_formatter=plain, timestamp_key="ts")]
    traceback = structlog.processors.ExceptionRenderer(structlog.tracebacks.ExceptionDictTransformer(show_locals=False))
    return [
        traceback,
        structlog.processors.EventRenamer("msg"),
        structlog.processors.JSONRenderer(serializer=_json, separators=None),
    ]


def _json(record: Any, **_: Any) -> str:
    import msgspec

    try:
        return msgspec.json.encode(record, enc_hook=str).decode()
    except ValueError:  # a file name that is no text: escaped, not lost
        return json.dumps(record, default=str)
