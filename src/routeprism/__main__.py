"""Run the command line: `python -m routeprism`."""

from routeprism.cli import main

main()
