"""The command line itself, before any command."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = ["app"]

app = typer.Typer(
    name="routeprism",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_NEXT = """\
RoutePrism says whether an agent memory loses evidence because of the order of arrival.

  routeprism demo                               the protocol on the bundled sample, in a minute
  routeprism audit sample -p focal              one policy in two orders; list policies names more
  routeprism audit sample -p my_module:Memory   your own class with add, retained and expose
  routeprism audit my_data -p focal             your own records.jsonl and questions.jsonl
  routeprism check runs/… --gate 'J>=0.9'       hold a run to a limit, in your build

routeprism --help lists the commands, --install-completion completes them with the tab key, and
README.md and docs/ of the source say what the numbers mean.
"""


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"routeprism {version('routeprism')}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _start(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Say which one this is."),
    ] = False,
) -> None:
    """Find out whether arrival order makes an agent memory lose evidence."""
    if context.invoked_subcommand is None:
        print(_NEXT, end="")
