"""The drakit command.

Each subcommand is a module of this package with HELP, add_arguments(parser) and execute(arguments) -> exit code. It
imports the rooms it needs inside execute, so that `drakit lint` does not pay for gRPC and works without that extra.
Exit codes: 0 fine, 1 the answer is no, 2 wrong use.
"""

import argparse
import importlib
import sys
from collections.abc import Sequence

import drakit
from drakit.cli import options

__all__ = ["SUBCOMMANDS", "main"]

SUBCOMMANDS: tuple[str, ...] = ("run", "demo", "publish", "uninstall-slices", "lint")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `argv` (default: the process's own) and return its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        parser = _parser(words)
        arguments = parser.parse_args(words)
        if arguments.subcommand is None:
            parser.print_help()
            return 2
        options.resolve(arguments)
        return int(arguments.execute(arguments))
    except options.UsageError as error:
        print(f"drakit: {error}", file=sys.stderr)
        return 2
    except ModuleNotFoundError as error:
        extra = _EXTRAS.get((error.name or "").split(".")[0])
        if extra is None:
            raise
        print(f"drakit: this needs {error.name}: pip install 'drakit[{extra}]'", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


_EXTRAS = {
    "aiohttp": "kube",
    "kubernetes": "kube",
    "grpc": "driver",
    "grpc_health": "driver",
    "google": "driver",
    "structlog": "driver",
    "prometheus_client": "driver",
    "cryptography": "simulator",
}


def _parser(words: Sequence[str]) -> argparse.ArgumentParser:
    parser = options.Parser(prog="drakit", description="Kubernetes Dynamic Resource Allocation for Python.")
    parser.add_argument("--version", action="version", version=f"drakit {drakit.__version__}")
    commands = parser.add_subparsers(dest="subcommand", metavar="COMMAND", parser_class=options.Parser)
    wanted = next((word for word in words if not word.startswith("-")), None)
    for name in SUBCOMMANDS:
        module = importlib.import_module(f"drakit.cli.{name.replace('-', '_')}")
        command = commands.add_parser(name, help=module.HELP, description=module.HELP)
        if name == wanted:
            module.add_arguments(command)
            command.set_defaults(execute=module.execute, options_parser=command)
    return parser
