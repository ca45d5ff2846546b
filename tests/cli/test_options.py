"""Flags, environment twins, config file: one value, one precedence, one line for every mistake."""

import argparse
from collections.abc import Sequence
from pathlib import Path

import pytest

from drakit.cli import main, options


def parse(words: Sequence[str], environment: dict[str, str] | None = None) -> argparse.Namespace:
    parser = options.Parser(prog="drakit test")
    options.add(parser, "--node-name", help="name of the node", required=True)
    options.add(parser, "--metrics-port", help="port", type=int, default=8080)
    options.add(parser, "--log-format", help="format", default="auto", choices=("auto", "json", "console"))
    options.add(parser, "--verify", help="check", type=options.boolean, default=False)
    options.add_config_file(parser)
    arguments = parser.parse_args(list(words))
    assert isinstance(arguments, argparse.Namespace)
    options.resolve(arguments, environment or {})
    return arguments


def test_flag_wins_over_environment_over_config_over_default(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("node-name: from-config\nmetrics-port: 1\n")
    environment = {"CONFIG": str(config)}
    assert parse([], environment).node_name == "from-config"
    assert parse([], {**environment, "NODE_NAME": "from-env"}).node_name == "from-env"
    assert parse(["--node-name", "flag"], {**environment, "NODE_NAME": "from-env"}).node_name == "flag"
    assert parse([], environment).metrics_port == 1
    assert parse([], environment).log_format == "auto"


def test_an_empty_environment_variable_counts_as_unset() -> None:
    assert parse(["--node-name", "n"], {"METRICS_PORT": ""}).metrics_port == 8080


@pytest.mark.parametrize(("words", "expected"), [([], False), (["--verify"], True), (["--verify=false"], False)])
def test_boolean_flags_stand_alone_or_take_a_value(words: list[str], expected: bool) -> None:
    assert parse(["--node-name", "n", *words]).verify is expected


@pytest.mark.parametrize(
    ("words", "environment", "message"),
    [
        ([], {}, "--node-name is missing: give it, or set NODE_NAME"),
        (["--node-name", "n", "--metrics-port", "x"], {}, "--metrics-port: invalid literal"),
        (["--node-name", "n"], {"METRICS_PORT": "x"}, "environment variable METRICS_PORT: invalid literal"),
        (["--node-name", "n", "--log-format", "xml"], {}, "'xml' is not one of auto, json, console"),
        (["--node-name", "n", "--verify=maybe"], {}, "'maybe' is neither true nor false"),
        (["--node-nam3", "n"], {}, "unknown argument --node-nam3: did you mean --node-name?"),
    ],
)
def test_every_mistake_is_one_line_that_names_its_place(
    words: list[str], environment: dict[str, str], message: str
) -> None:
    with pytest.raises(options.UsageError, match=r"^[^\n]+$") as caught:
        parse(words, environment)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("nodename: x\n", "unknown key 'nodename': did you mean node-name?"),
        ("- a\n", "must hold a mapping"),
        ("a: [", "is not YAML"),
        ("node-name: [a]\n", "node-name must be a single value"),
    ],
)
def test_config_file_mistakes(tmp_path: Path, content: str, message: str) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(content)
    with pytest.raises(options.UsageError) as caught:
        parse(["--config", str(config)])
    assert message in str(caught.value)
    assert str(config) in str(caught.value)


def test_an_unreadable_config_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(options.UsageError, match=r"cannot read config file .*missing"):
        parse(["--config", str(tmp_path / "missing")])


def test_an_unknown_subcommand_exits_2_with_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["frobnicate"]) == 2
    assert capsys.readouterr().err.startswith("drakit: ")


def test_no_subcommand_shows_the_help_and_exits_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "COMMAND" in capsys.readouterr().out
