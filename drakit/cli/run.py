"""drakit run: the ready-made simulated driver as a node plugin."""

import argparse

from drakit.cli import options

HELP = "run a DRA driver on this node (simulated devices; for hardware-free clusters and demos)"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """One flag for each of the driver's options."""
    from drakit.driver.settings import OPTIONS

    for option in OPTIONS:
        default = "gpu.example.com" if option.name == "driver_name" else option.default
        options.add(
            parser,
            option.flag,
            help=option.help,
            type=option.parse,
            default=default,
            required=option.name == "node_name",
            choices=option.choices or None,
        )
    options.add_config_file(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Run until a signal comes; the process ends inside."""
    from drakit.devices import simulated
    from drakit.driver.application import preflight
    from drakit.driver.running import find_credentials, serve
    from drakit.driver.settings import OPTIONS, Settings, SettingsError

    settings = Settings(**{option.name: getattr(arguments, option.name) for option in OPTIONS})
    try:
        settings.check()
        credentials = find_credentials(settings)
        preflight(settings)
    except SettingsError as error:
        raise options.UsageError(str(error)) from error
    serve(simulated.SimulatedDriver(settings.node_name, settings.driver_name), settings, credentials)
