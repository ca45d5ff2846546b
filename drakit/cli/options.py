"""Flags with an environment twin and a config-file key: flag > environment > config file > default.

All three spellings of `--node-name` (NODE_NAME, and `node-name` in the YAML file that --config names) go through the
same type and choices, and every mistake is one line that names where it was made.
"""

import argparse
import difflib
import itertools
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

__all__ = ["Parser", "UsageError", "add", "add_config_file", "boolean", "resolve"]


_BOOLEANS = {
    "true": True,
    "1": True,
    "yes": True,
    "on": True,
    "false": False,
    "0": False,
    "no": False,
    "off": False,
}


class UsageError(Exception):
    """Wrong use of the command: one line for the user, exit code 2."""


class Parser(argparse.ArgumentParser):
    """An ArgumentParser that raises UsageError with a suggestion instead of printing its usage."""

    def error(self, message: str) -> NoReturn:
        """Raise UsageError; an unknown flag gets the nearest known one."""
        if message.startswith("unrecognized arguments: "):
            word = message.removeprefix("unrecognized arguments: ").split()[0]
            message = f"unknown argument {word}{_suggestion(word.split('=')[0], self.flags())}"
        raise UsageError(f"{message} (see {self.prog} --help)")

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Like argparse, but unknown words are reported by the subcommand that got them."""
        arguments, unknown = self.parse_known_args(args, namespace)
        if unknown:
            reporter = getattr(arguments, "options_parser", self)
            reporter.error(f"unrecognized arguments: {' '.join(unknown)}")
        return arguments

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Like argparse, but a boolean flag without a value does not swallow the word that follows it."""
        words = list(sys.argv[1:] if args is None else args)
        switches = {flag for action in self._actions if action.const == "true" for flag in action.option_strings}
        completed = [
            f"{word}=true" if word in switches and follower.lower() not in _BOOLEANS else word
            for word, follower in itertools.zip_longest(words, words[1:], fillvalue="")
        ]
        return super().parse_known_args(completed, namespace)

    def flags(self) -> list[str]:
        """All long flags of this parser."""
        return [flag for action in self._actions for flag in action.option_strings if flag.startswith("--")]


def boolean(text: str) -> bool:
    """true/false in the spellings that YAML, Go flags and shells use."""
    value = _BOOLEANS.get(text.lower())
    if value is None:
        raise ValueError(f"{text!r} is neither true nor false")
    return value


def add(
    parser: argparse.ArgumentParser,
    flag: str,
    *,
    help: str,
    type: Callable[[str], Any] = str,
    default: Any = None,
    required: bool = False,
    choices: Iterable[Any] | None = None,
    env: str | None = None,
    metavar: str | None = None,
) -> None:
    """Declare `flag` (kebab case) with its environment twin (default: the flag in UPPER_SNAKE)."""
    twin = env or flag.removeprefix("--").replace("-", "_").upper()
    shown = "" if default is None else f", default {default}"
    extra: dict[str, Any] = {"nargs": "?", "const": "true"} if type is boolean else {}
    action = parser.add_argument(flag, default=None, metavar=metavar, help=f"{help} [env {twin}{shown}]", **extra)
    declared = parser.get_default("declared_options") or {}
    allowed = None if choices is None else tuple(choices)
    declared[action.dest] = _Option(flag, twin, type, default, required, allowed)
    parser.set_defaults(declared_options=declared)


def add_config_file(parser: argparse.ArgumentParser) -> None:
    """Declare --config FILE: a YAML mapping of flag names without their dashes."""
    parser.add_argument(
        "--config", default=None, metavar="FILE", help="YAML file with the same keys as flags [env CONFIG]"
    )
    parser.set_defaults(reads_config=True)


@dataclass(frozen=True)
class _Option:
    flag: str
    twin: str
    parse: Callable[[str], Any]
    default: Any
    required: bool
    choices: tuple[Any, ...] | None

    def value(self, given: str | None, environment: Mapping[str, str], config: Mapping[str, str], source: str) -> Any:
        key = self.flag.removeprefix("--")
        if given is not None:
            return self._convert(given, self.flag)
        if environment.get(self.twin, "") != "":
            return self._convert(environment[self.twin], f"environment variable {self.twin}")
        if key in config:
            return self._convert(config[key], f"{source}: {key}")
        if self.required:
            raise UsageError(f"{self.flag} is missing: give it, or set {self.twin}")
        return self.default

    def _convert(self, text: str, where: str) -> Any:
        try:
            value = self.parse(text)
        except (ValueError, TypeError) as error:
            raise UsageError(f"{where}: {error}") from error
        if self.choices is not None and value not in self.choices:
            raise UsageError(f"{where}: {text!r} is not one of {', '.join(map(str, self.choices))}")
        return value


def resolve(arguments: argparse.Namespace, environment: Mapping[str, str] | None = None) -> None:
    """Fill every declared option of `arguments` from flag, environment, config file or default.

    Raises:
        UsageError: a value does not parse, a required one is missing, the config file has an unknown key.
    """
    declared: dict[str, _Option] = getattr(arguments, "declared_options", None) or {}
    env = os.environ if environment is None else environment
    path = (
        (getattr(arguments, "config", None) or env.get("CONFIG")) if getattr(arguments, "reads_config", False) else None
    )
    config = _read_config(path, [option.flag.removeprefix("--") for option in declared.values()]) if path else {}
    for name, option in declared.items():
        setattr(arguments, name, option.value(getattr(arguments, name), env, config, path or ""))


def _read_config(path: str, known: list[str]) -> dict[str, str]:
    import yaml

    try:
        content = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"cannot read config file {path}: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UsageError(f"config file {path} is not YAML: {' '.join(str(error).split())}") from error
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise UsageError(f"config file {path} must hold a mapping of option names to values")
    for key in content:
        if key not in known:
            raise UsageError(f"config file {path}: unknown key {key!r}{_suggestion(str(key), known)}")
    return {key: _text(path, key, value) for key, value in content.items()}


def _text(path: str, key: str, value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (str, int, float)):
        return str(value)
    raise UsageError(f"config file {path}: {key} must be a single value")


def _suggestion(word: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(word, list(known), n=1)
    return f": did you mean {near[0]}?" if near else ""
