"""The command line. Commands import what they need when they run, so that help comes at once."""

from routeprism.cli._main import main

__all__ = ["main"]
