"""Bytes to a normalised object, as strict as the API server: unknown and duplicate fields, types, nulls, raw bytes.

The result has only known fields. Plain zero values are left out unless the API always writes them; absent lists differ
from empty ones; quantities and times are in canonical form; a pointer to the zero time is None. Raw fields (opaque
parameters, driver data) are plain JSON values when they were sent in compact form and `msgspec.Raw` otherwise. Plans
are compiled once per type, version and minor from the field tables. Source: spec/apiserver.md, Decoding.
"""

from __future__ import annotations

import datetime as dt
import functools
import json
import re
from collections.abc import Callable
from typing import Any, Final

import msgspec

from drakit.api import Quantity, QuantityError, fields, wire

__all__ = ["DecodingError", "Strictness", "decode", "parse"]

_MIN_INT64: Final = -(2**63)
_MAX_INT64: Final = 2**63 - 1
_SURROGATE: Final = re.compile(r"[\ud800-\udfff]")
_ESCAPED_SURROGATE: Final = re.compile(rb"\\u[dD][89abcdefABCDEF]")
_TIME: Final = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:[.,]\d+)?(Z|([+-])(\d\d):(\d\d))", re.ASCII)
_ZERO_TIME: Final = dt.datetime(1, 1, 1, tzinfo=dt.UTC)

Decoder = Callable[[Any, str, "Strictness"], Any]


class DecodingError(ValueError):
    """The body cannot be an object of this kind; the server answers 400."""


class Strictness:
    """What strict decoding complains about, collected on the way, and the raw bytes by path."""

    __slots__ = ("complaints", "raws")

    def __init__(self) -> None:
        self.complaints: list[str] = []
        self.raws: dict[str, msgspec.Raw] = {}


class _Repeated(dict[str, Any]):
    """An object of which some members came more than once; the last one counts."""

    repeated: tuple[str, ...] = ()


class _Float(float):
    """A number with a fraction or an exponent; quantities need its text."""

    text: str = ""


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) == len(pairs):
        return members
    seen: set[str] = set()
    repeated = [name for name, _ in pairs if name in seen or seen.add(name)]  # type: ignore[func-returns-value]
    marked = _Repeated(members)
    marked.repeated = tuple(dict.fromkeys(repeated))
    return marked


def _float(text: str) -> _Float:
    number = _Float(text)
    number.text = text
    return number


def _constant(name: str) -> Any:
    raise DecodingError(f"invalid character '{name[0]}' looking for beginning of value")


def parse(body: bytes) -> Any:
    """Parse JSON as the server does, remembering repeated members and the text of numbers.

    Raises:
        DecodingError: Not JSON.
    """
    text = body.decode("utf-8", "replace")
    try:
        parsed = json.loads(text, object_pairs_hook=_pairs, parse_float=_float, parse_constant=_constant)
    except json.JSONDecodeError as error:
        raise DecodingError(str(error)) from error
    except (ValueError, RecursionError) as error:
        raise DecodingError(str(error)) from error
    return _replace_surrogates(parsed) if _ESCAPED_SURROGATE.search(body) else parsed


def _replace_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return [_replace_surrogates(item) for item in value]
    if isinstance(value, dict):
        cleaned = {_replace_surrogates(name): _replace_surrogates(item) for name, item in value.items()}
        if isinstance(value, _Repeated):
            marked = _Repeated(cleaned)
            marked.repeated = value.repeated
            return marked
        return cleaned
    return value


def decode(
    value: Any, kind: str, version: str, minor: str, body: bytes | None = None
) -> tuple[dict[str, Any], list[str]]:
    """Turn parsed JSON into a normalised object of that version, and tell what strict decoding dislikes.

    `body` gives the exact bytes of raw fields; without it they count as compact.

    Raises:
        DecodingError: A field has a value of a wrong type.
    """
    strictness = Strictness()
    if body is not None and (b'"parameters"' in body or b'"data"' in body):
        strictness.raws = _raw_bytes(body, kind, version)
    try:
        decoded: dict[str, Any] = _plan(kind, version, minor)(value, "", strictness)
    except RecursionError as error:
        raise DecodingError("exceeded max depth") from error
    return decoded, strictness.complaints


def _raw_bytes(body: bytes, kind: str, version: str) -> dict[str, msgspec.Raw]:
    found: dict[str, msgspec.Raw] = {}
    try:
        _collect_raw(wire.parse(body, kind, version), "", found)
    except (ValueError, RecursionError):
        return {}
    return found


def _collect_raw(value: Any, path: str, found: dict[str, msgspec.Raw]) -> None:
    if isinstance(value, msgspec.Raw):
        found[path] = value
    elif isinstance(value, dict):
        for name, member in value.items():
            _collect_raw(member, f"{path}.{name}" if path else name, found)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _collect_raw(item, f"{path}[{index}]", found)


@functools.cache
def _plan(name: str, version: str, minor: str) -> Decoder:
    """The decoder of an object type."""
    described = [field for field in fields.table(name, version) if fields.carried(field, minor)]
    decoders = {field.name: (field, _decoder(field, version, minor)) for field in described}
    always = [(field, _decoder(field, version, minor)) for field in described if field.required and not field.pointer]

    def decode_object(value: Any, path: str, strictness: Strictness) -> dict[str, Any]:
        members = value if value is not None else {}
        if not isinstance(members, dict):
            raise _mismatch(members, path, name)
        if isinstance(members, _Repeated):
            strictness.complaints += [f'duplicate field "{_join(path, each)}"' for each in members.repeated]
        decoded: dict[str, Any] = {}
        for key, member in members.items():
            found = decoders.get(key)
            if found is None:
                strictness.complaints.append(f'unknown field "{_join(path, key)}"')
                continue
            field, decoder = found
            if member is None and not field.required:
                continue
            result = decoder(member, f"{path}.{key}" if path else key, strictness)
            if result or field.pointer or field.required or field.type.item:
                decoded[key] = result
        for field, decoder in always:
            if field.name not in decoded:
                decoded[field.name] = decoder(None, _join(path, field.name), strictness)
        return decoded

    return decode_object


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _decoder(field: fields.Field, version: str, minor: str) -> Decoder:
    shape, name = field.type.shape, field.type.name
    if shape == "object":
        return _lazy(name, version, minor)
    item = _SCALARS[name] if name in _SCALARS else _lazy(name, version, minor)
    if shape == "list":
        return _list_decoder(item, name)
    if shape == "map":
        return _map_decoder(item, name)
    return item if not field.pointer else _pointer(item)


def _lazy(name: str, version: str, minor: str) -> Decoder:
    plans: list[Decoder] = []

    def decode_lazily(value: Any, path: str, strictness: Strictness) -> Any:
        if not plans:
            plans.append(_plan(name, version, minor))
        return plans[0](value, path, strictness)

    return decode_lazily


def _pointer(item: Decoder) -> Decoder:
    def decode_pointer(value: Any, path: str, strictness: Strictness) -> Any:
        return None if value is None else item(value, path, strictness)

    return decode_pointer


def _list_decoder(item: Decoder, name: str) -> Decoder:
    def decode_list(value: Any, path: str, strictness: Strictness) -> list[Any] | None:
        if value is None:
            return None
        if not isinstance(value, list):
            raise _mismatch(value, path, f"[]{name}")
        return [item(each, f"{path}[{index}]", strictness) for index, each in enumerate(value)]

    return decode_list


def _map_decoder(item: Decoder, name: str) -> Decoder:
    def decode_map(value: Any, path: str, strictness: Strictness) -> dict[str, Any] | None:
        if value is None:
            return None
        if not isinstance(value, dict):
            raise _mismatch(value, path, f"map[string]{name}")
        if isinstance(value, _Repeated):
            strictness.complaints += [f'duplicate field "{path}.{each}"' for each in value.repeated]
        return {key: item(each, f"{path}.{key}", strictness) for key, each in value.items()}

    return decode_map


_JSON_TYPES: Final = {str: "string", bool: "bool", int: "number", _Float: "number", float: "number", list: "array"}


def _mismatch(value: Any, path: str, wanted: str) -> DecodingError:
    sort = _JSON_TYPES.get(type(value), "object")
    if sort == "number" and wanted == "int64":
        sort = f"number {getattr(value, 'text', value)}"
    return DecodingError(f"json: cannot unmarshal {sort} into Go struct field {path} of type {wanted}")


def _string(value: Any, path: str, strictness: Strictness) -> str:  # noqa: ARG001
    if type(value) is str:
        return value
    if value is None:
        return ""
    raise _mismatch(value, path, "string")


def _integer(value: Any, path: str, strictness: Strictness) -> int:  # noqa: ARG001
    if type(value) is int and _MIN_INT64 <= value <= _MAX_INT64:
        return value
    if value is None:
        return 0
    raise _mismatch(value, path, "int64")


def _boolean(value: Any, path: str, strictness: Strictness) -> bool:  # noqa: ARG001
    if type(value) is bool:
        return value
    if value is None:
        return False
    raise _mismatch(value, path, "bool")


def _quantity(value: Any, path: str, strictness: Strictness) -> str:  # noqa: ARG001
    if value is None:
        return "0"
    if isinstance(value, str):
        text = value.strip()
    elif type(value) is bool or isinstance(value, dict | list):
        text = json.dumps(value)
    else:
        text = getattr(value, "text", None) or str(value)
    try:
        return str(Quantity.parse(text))
    except QuantityError as error:
        raise DecodingError(str(error)) from error


def _time(value: Any, path: str, strictness: Strictness) -> str | None:  # noqa: ARG001
    if not isinstance(value, str):
        raise _mismatch(value, path, "string")
    moment = _moment(value)
    return None if moment == _ZERO_TIME else moment.strftime("%Y-%m-%dT%H:%M:%SZ").rjust(20, "0")


def _moment(text: str) -> dt.datetime:
    match = _TIME.fullmatch(text)
    if match is None:
        raise DecodingError(f'parsing time "{text}" as "2006-01-02T15:04:05Z07:00": cannot parse it')
    *numbers, _, sign, hours, minutes = match.groups()
    try:
        year, month, day, hour, minute, second = (int(number) for number in numbers)
        moment = dt.datetime(year, month, day, hour, minute, second, tzinfo=dt.UTC)
        if sign:
            offset = dt.timedelta(hours=int(hours), minutes=int(minutes))
            moment = moment - offset if sign == "+" else moment + offset
    except (ValueError, OverflowError) as error:
        raise DecodingError(f'parsing time "{text}": {error}') from error
    return moment


def _raw(value: Any, path: str, strictness: Strictness) -> Any:
    """Plain JSON when the bytes are what we would write ourselves, otherwise the bytes."""
    if isinstance(value, msgspec.Raw):
        return value
    plain = _plain(value)
    raw = strictness.raws.get(path)
    if raw is not None and bytes(raw) != msgspec.json.encode(plain):
        return raw
    return plain


def _plain(value: Any) -> Any:
    """Without the marks that parsing left."""
    if isinstance(value, dict):
        return {name: _plain(member) for name, member in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return float(value) if isinstance(value, _Float) else value


def _any(value: Any, path: str, strictness: Strictness) -> Any:  # noqa: ARG001
    return _plain(value)


_SCALARS: Final[dict[str, Decoder]] = {
    "string": _string,
    "integer": _integer,
    "boolean": _boolean,
    "quantity": _quantity,
    "time": _time,
    "raw": _raw,
    "any": _any,
}
