"""The command line. Commands import what they need when they run, so that help comes at once."""

from routeprism.cli._app import (
    COMMANDS,
    describe_option,
    group_options,
    label_option,
    parse,
    run_command,
    usage,
)
from routeprism.cli._main import main

__all__ = [
    "COMMANDS",
    "describe_option",
    "group_options",
    "label_option",
    "main",
    "parse",
    "run_command",
    "usage",
]
