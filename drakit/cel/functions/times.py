"""Timestamps and durations: arithmetic, parsing and printing as Go does it, accessors with time zones."""

from __future__ import annotations

import re
from datetime import UTC
from typing import TYPE_CHECKING, Any, Final

from drakit.cel.errors import EvaluationError
from drakit.cel.functions.numbers import conversion_error, fixed
from drakit.cel.values import MAX_INT, MIN_INT, Duration, Timestamp, no_overload

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["OVERLOADS", "add", "duration_text", "subtract", "timestamp_text"]

_SECOND: Final = 1_000_000_000
_MIN_UNIX: Final = -62135596800
_MAX_UNIX: Final = 253402300799
_UNITS: Final = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,
    "ms": 1_000_000,
    "s": _SECOND,
    "m": 60 * _SECOND,
    "h": 3600 * _SECOND,
}
_DURATION_PART: Final = re.compile(r"([0-9]*)(?:\.([0-9]*))?(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
_RFC3339: Final = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{1,2}):([0-9]{2}):([0-9]{2})(?:[.,]([0-9]+))?(Z|[+-][0-9]{2}:[0-9]{2})",
    re.ASCII,
)
_ATOI: Final = re.compile(r"[+-]?[0-9]{1,9}", re.ASCII)
_DAYS: Final = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def _whole(value: int) -> int:
    if not MIN_INT <= value <= MAX_INT:
        raise EvaluationError("integer overflow")
    return value


def add(left: Any, right: Any) -> Any:
    """Duration + duration, duration + timestamp, timestamp + duration."""
    kinds = left.__class__, right.__class__
    if kinds == (Duration, Duration):
        return Duration(_whole(left.nanos + right.nanos))
    if kinds == (Duration, Timestamp):
        return _shift(right, left.nanos)
    if kinds == (Timestamp, Duration):
        return _shift(left, right.nanos)
    raise no_overload()


def subtract(left: Any, right: Any) -> Any:
    """Duration - duration, timestamp - duration, timestamp - timestamp."""
    kinds = left.__class__, right.__class__
    if kinds == (Duration, Duration):
        return Duration(_whole(left.nanos - right.nanos))
    if kinds == (Timestamp, Duration):
        return _shift(left, _whole(-right.nanos))
    if kinds == (Timestamp, Timestamp):
        return Duration(_whole(_whole(left.seconds - right.seconds) * _SECOND + left.nanos - right.nanos))
    raise no_overload()


def _shift(moment: Timestamp, nanos: int) -> Timestamp:
    seconds, rest = divmod(moment.seconds * _SECOND + moment.nanos + nanos, _SECOND)
    if not _MIN_UNIX <= seconds <= _MAX_UNIX:
        raise EvaluationError("timestamp overflow")
    return Timestamp(seconds, rest, moment.offset)


# --- parsing and printing


def _string_to_duration(text: str) -> Duration:
    sign, rest = (-1, text[1:]) if text.startswith("-") else (1, text.removeprefix("+"))
    if rest == "0":
        return Duration(0)
    total = position = 0
    while position < len(rest):
        match = _DURATION_PART.match(rest, position)
        if match is None or not (match[1] or match[2]):
            raise conversion_error("string", "google.protobuf.Duration")
        unit = _UNITS[match[3]]
        fraction = (match[2] or "")[:18]
        total += int(match[1] or "0"[:40]) * unit
        if fraction:
            total += int(int(fraction) * (float(unit) / 10.0 ** len(fraction)))
        if total > 2**63 or len(match[1]) > 40:
            raise conversion_error("string", "google.protobuf.Duration")
        position = match.end()
    total *= sign
    if not rest or not MIN_INT <= total <= MAX_INT:
        raise conversion_error("string", "google.protobuf.Duration")
    return Duration(total)


def duration_text(value: Duration) -> str:
    """Seconds with as many decimals as needed."""
    seconds = value.nanos // _SECOND if value.nanos >= 0 else -(-value.nanos // _SECOND)
    return fixed(float(seconds) + float(value.nanos - seconds * _SECOND) / 1e9) + "s"


def _string_to_timestamp(text: str) -> Timestamp:
    match = _RFC3339.fullmatch(text)
    if match is None:
        raise conversion_error("string", "google.protobuf.Timestamp")
    year, month, day, hour, minute, second = (int(each) for each in match.groups()[:6])
    offset = 0
    if match[8] != "Z":
        hours, minutes = int(match[8][1:3]), int(match[8][4:])
        if hours > 24 or minutes > 60:
            raise conversion_error("string", "google.protobuf.Timestamp")
        offset = (hours * 3600 + minutes * 60) * (-1 if match[8][0] == "-" else 1)
    leap = month == 2 and year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    valid = 1 <= month <= 12 and hour < 24 and minute < 60 and second < 60
    if not valid or not 1 <= day <= _DAYS[month - 1] + leap:
        raise conversion_error("string", "google.protobuf.Timestamp")
    seconds = _days(year, month, day) * 86400 + hour * 3600 + minute * 60 + second - offset
    if not _MIN_UNIX <= seconds <= _MAX_UNIX:
        raise EvaluationError("timestamp overflow")
    return Timestamp(seconds, int(((match[7] or "") + "0" * 9)[:9]), offset)


def timestamp_text(value: Timestamp) -> str:
    """RFC 3339 with as many decimals as needed, in the zone it was written in."""
    year, month, day, _, rest = _civil(value.seconds + value.offset)
    fraction = f".{value.nanos:09d}".rstrip("0") if value.nanos else ""
    zone = "Z"
    if value.offset:
        hours, minutes = divmod(abs(value.offset) // 60, 60)
        zone = f"{'-' if value.offset < 0 else '+'}{hours:02d}:{minutes:02d}"
    clock = f"{rest // 3600:02d}:{rest // 60 % 60:02d}:{rest % 60:02d}"
    return f"{year:04d}-{month:02d}-{day:02d}T{clock}{fraction}{zone}"


def _int_to_timestamp(value: int) -> Timestamp:
    if not _MIN_UNIX <= value <= _MAX_UNIX:
        raise EvaluationError("timestamp overflow")
    return Timestamp(value)


def _days(year: int, month: int, day: int) -> int:
    """Days since 1970 in the proleptic Gregorian calendar."""
    year -= month <= 2
    era, year_of_era = divmod(year, 400)
    day_of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return era * 146097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - 719468


def _civil(seconds: int) -> tuple[int, int, int, int, int]:
    """Year, month, day, day of the year from 0, second of the day."""
    days, rest = divmod(seconds, 86400)
    era, day_of_era = divmod(days + 719468, 146097)
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36524 - day_of_era // 146096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * shifted + 2) // 5 + 1
    month = shifted + 3 if shifted < 10 else shifted - 9
    year = year_of_era + era * 400 + (month <= 2)
    return year, month, day, days - _days(year, 1, 1), rest


# --- accessors

_PARTS: Final[dict[str, Callable[[tuple[int, int, int, int, int], Timestamp, int], int]]] = {
    "year": lambda civil, *_: civil[0],
    "month": lambda civil, *_: civil[1] - 1,
    "day_of_year": lambda civil, *_: civil[3],
    "day_of_month": lambda civil, *_: civil[2] - 1,
    "day_of_month_1_based": lambda civil, *_: civil[2],
    "day_of_week": lambda _, moment, offset: ((moment.seconds + offset) // 86400 + 4) % 7,
    "hours": lambda civil, *_: civil[4] // 3600,
    "minutes": lambda civil, *_: civil[4] // 60 % 60,
    "seconds": lambda civil, *_: civil[4] % 60,
    "milliseconds": lambda _, moment, __: moment.nanos // 1_000_000,
}


def _accessor(part: str) -> Callable[..., int]:
    read = _PARTS[part]

    def call(moment: Timestamp, zone: str = "UTC") -> int:
        offset = 0 if zone == "UTC" else _offset(moment, zone)
        return read(_civil(moment.seconds + offset), moment, offset)

    return call


def _offset(moment: Timestamp, zone: str) -> int:
    """Seconds east of UTC of a zone (IANA name or `±hh:mm`) at a moment."""
    hours, colon, minutes = zone.partition(":")
    if not colon:
        return _named_offset(moment, zone)
    for part in (hours, minutes):
        if not _ATOI.fullmatch(part):
            raise EvaluationError(f'strconv.Atoi: parsing "{part}": invalid syntax')
    offset = int(hours) * 60 + (-int(minutes) if zone.startswith("-") else int(minutes))
    return offset * 60


def _named_offset(moment: Timestamp, zone: str) -> int:
    import zoneinfo
    from datetime import datetime, timedelta

    if not zone:
        return 0
    try:
        place = zoneinfo.ZoneInfo(zone)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise EvaluationError(f"unknown time zone {zone}") from None
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    seconds = min(max(moment.seconds, _MIN_UNIX + 2 * 86400), _MAX_UNIX - 2 * 86400)
    offset = (epoch + timedelta(seconds=seconds)).astimezone(place).utcoffset()
    return 0 if offset is None else int(offset.total_seconds())


def _truncated(unit: int) -> Callable[[Duration], int]:
    def call(value: Duration) -> int:
        whole = abs(value.nanos) // unit
        return whole if value.nanos >= 0 else -whole

    return call


OVERLOADS: Final[dict[str, Any]] = {
    "duration_to_duration": lambda value: value,
    "string_to_duration": _string_to_duration,
    "duration_to_int64": lambda value: value.nanos,
    "duration_to_string": duration_text,
    "timestamp_to_timestamp": lambda value: value,
    "string_to_timestamp": _string_to_timestamp,
    "int64_to_timestamp": _int_to_timestamp,
    "timestamp_to_int64": lambda value: value.seconds,
    "timestamp_to_string": timestamp_text,
    "duration_to_hours": _truncated(3600 * _SECOND),
    "duration_to_minutes": _truncated(60 * _SECOND),
    "duration_to_seconds": _truncated(_SECOND),
    "duration_to_milliseconds": _truncated(1_000_000),
    "timestamp_to_seconds_tz": _accessor("seconds"),
    **{f"timestamp_to_{part}": _accessor(part) for part in _PARTS},
    **{f"timestamp_to_{part}_with_tz": _accessor(part) for part in _PARTS if part != "seconds"},
}
