"""The format library: named formats and what is wrong with a string."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from drakit.cel.functions.urls import UrlError, parse_request_uri
from drakit.cel.values import EQUALITY, GO_NAMES, NONE, TYPE_NAMES, Opaque, Optional, no_overload

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["OVERLOADS", "Format"]

_LOWER: Final = frozenset("abcdefghijklmnopqrstuvwxyz")
_ALNUM: Final = _LOWER | frozenset("0123456789")
_NAME: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
_LABEL_FORMAT: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN_FORMAT: Final = f"{_LABEL_FORMAT}(\\.{_LABEL_FORMAT})*"
_LABEL_1035_FORMAT: Final = "[a-z]([-a-z0-9]*[a-z0-9])?"
_NAME_FORMAT: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_UUID: Final = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", re.IGNORECASE | re.ASCII)
_BASE64: Final = re.compile(
    r"(?:[A-Za-z0-9+\\/]{4})*(?:[A-Za-z0-9+\\/]{2}==|[A-Za-z0-9+\\/]{3}=|[A-Za-z0-9+\\/]{4})", re.ASCII
)
_DATE: Final = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})", re.ASCII)
_TIME: Final = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))", re.ASCII)
_DAYS: Final = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


class Format(Opaque):
    """A named format; `size` stands for the length of its regular expression in costs."""

    __slots__ = ("check", "name", "size")

    def __init__(self, name: str, size: int, check: Callable[[str], list[str]]) -> None:
        self.name = name
        self.size = size
        self.check = check

    def __str__(self) -> str:
        return self.name


def _too_long(limit: int) -> str:
    return f"must be no more than {limit} bytes"


def _regex_error(message: str, form: str, *examples: str) -> str:
    shown = " or ".join(f"'{each}', " for each in examples)
    return f"{message} (e.g. {shown}regex used for validation is '{form}')"


def _is_label(text: str, first: frozenset[str] = _ALNUM) -> bool:
    inner = all(char in _ALNUM or char == "-" for char in text)
    return bool(text) and inner and text[0] in first and text[-1] in _ALNUM


def _is_subdomain(text: str) -> bool:
    return all(map(_is_label, text.split(".")))


def _masked(text: str) -> str:
    """A prefix may end in a dash."""
    return text[:-2] + "a" if len(text) > 1 and text.endswith("-") else text


def _label(text: str) -> list[str]:
    faults = [_too_long(63)] if len(text.encode()) > 63 else []
    if not _is_label(text):
        faults.append(
            "must not contain dots"
            if _is_subdomain(text)
            else _regex_error(
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start "
                "and end with an alphanumeric character",
                _LABEL_FORMAT,
                "my-name",
                "123-abc",
            )
        )
    return faults


def _subdomain(text: str) -> list[str]:
    faults = [_too_long(253)] if len(text.encode()) > 253 else []
    if not _is_subdomain(text):
        faults.append(
            _regex_error(
                "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and "
                "must start and end with an alphanumeric character",
                _SUBDOMAIN_FORMAT,
                "example.com",
            )
        )
    return faults


def _label_1035(text: str) -> list[str]:
    faults = [_too_long(63)] if len(text.encode()) > 63 else []
    if not _is_label(text, _LOWER):
        faults.append(
            _regex_error(
                "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic "
                "character, and end with an alphanumeric character",
                _LABEL_1035_FORMAT,
                "my-name",
                "abc-123",
            )
        )
    return faults


def _is_name(text: str) -> bool:
    return (
        bool(text) and text[0] in _NAME and text[-1] in _NAME and all(char in _NAME or char in "-_." for char in text)
    )


_NAME_MESSAGE: Final = _regex_error(
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
    _NAME_FORMAT,
    "MyName",
    "my.name",
    "123-abc",
)


def _qualified(text: str) -> list[str]:
    parts = text.split("/")
    faults: list[str] = []
    if len(parts) > 2:
        message = _NAME_MESSAGE.removeprefix("must")
        return [
            f"a qualified name must{message} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        ]
    name = parts[-1]
    if len(parts) == 2:
        if not parts[0]:
            faults.append("prefix part must be non-empty")
        else:
            faults += [f"prefix part {fault}" for fault in _subdomain(parts[0])]
    if not name:
        faults.append("name part must be non-empty")
    elif len(name.encode()) > 63:
        faults.append(f"name part {_too_long(63)}")
    if not _is_name(name):
        faults.append(f"name part {_NAME_MESSAGE}")
    return faults


def _label_value(text: str) -> list[str]:
    faults = [_too_long(63)] if len(text.encode()) > 63 else []
    if text and not _is_name(text):
        faults.append(
            _regex_error(
                "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and "
                "must start and end with an alphanumeric character",
                "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?",
                "MyValue",
                "my_value",
                "12345",
            )
        )
    return faults


def _uri(text: str) -> list[str]:
    try:
        parse_request_uri(text)
    except UrlError as error:
        return [str(error)]
    return []


def _is_date(text: str) -> bool:
    match = _DATE.fullmatch(text)
    if match is None:
        return False
    year, month, day = map(int, match.groups())
    leap = month == 2 and year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return 1 <= month <= 12 and 1 <= day <= _DAYS[month - 1] + leap


def _is_datetime(text: str) -> bool:
    parts = text.lower().split("t")
    if len(parts) < 2 or not _is_date(parts[0]):
        return False
    match = _TIME.fullmatch(parts[1])
    return match is not None and match[1] <= "23" and match[2] <= "59" and match[3] <= "59"


def _when(valid: Callable[[str], Any], message: str) -> Callable[[str], list[str]]:
    return lambda text: [] if valid(text) else [message]


def _prefix(check: Callable[[str], list[str]]) -> Callable[[str], list[str]]:
    return lambda text: check(_masked(text))


_DATETIME_SIZE: Final = 70
_URI_SIZE: Final = 1103
FORMATS: Final[dict[str, Format]] = {
    "dns1123Label": Format("DNS1123Label", 30, _label),
    "dns1123Subdomain": Format("DNS1123Subdomain", 60, _subdomain),
    "dns1035Label": Format("DNS1035Label", 30, _label_1035),
    "qualifiedName": Format("QualifiedName", 60, _qualified),
    "dns1123LabelPrefix": Format("DNS1123LabelPrefix", 30, _prefix(_label)),
    "dns1123SubdomainPrefix": Format("DNS1123SubdomainPrefix", 60, _prefix(_subdomain)),
    "dns1035LabelPrefix": Format("DNS1035LabelPrefix", 30, _prefix(_label_1035)),
    "labelValue": Format("LabelValue", 40, _label_value),
    "uri": Format("URI", _URI_SIZE, _uri),
    "uuid": Format("uuid", 82, _when(_UUID.fullmatch, "does not match the UUID format")),
    "byte": Format("byte", 84, _when(_BASE64.fullmatch, "invalid base64")),
    "date": Format("date", _DATETIME_SIZE, _when(_is_date, "invalid date")),
    "datetime": Format("datetime", _DATETIME_SIZE, _when(_is_datetime, "invalid datetime")),
}


def _validate(form: Format, text: str) -> Optional:
    faults = form.check(text)
    return Optional(faults) if faults else NONE


def _named(name: str) -> Optional:
    form = FORMATS.get(name)
    return NONE if form is None else Optional(form)


def _giver(form: Format) -> Callable[[], Format]:
    return lambda: form


def _equal(left: Format, right: Any) -> bool:
    if right.__class__ is not Format:
        raise no_overload()
    return bool(left.name == right.name)


TYPE_NAMES[Format] = "kubernetes.NamedFormat"
GO_NAMES[Format] = "cel.Format"
EQUALITY[Format] = _equal
OVERLOADS: Final[dict[str, Any]] = {
    "format-validate": _validate,
    "format-named": _named,
    **{f"format.{name}": _giver(form) for name, form in FORMATS.items()},
}
