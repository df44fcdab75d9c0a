"""The arguments of `nkcme data`."""

from __future__ import annotations

import shlex
from typing import Annotated

import typer

from nkcme.cli.options import AsJson
from nkcme.cli.running import STOPPED, print_note
from nkcme.errors import NkcmeError

data = typer.Typer(
    help="Get the UCI tables of the paper, with their published splits.",
    epilog="Example: nkcme data fetch boston",
)


@data.command("list", epilog="Example: nkcme data list")
def list_data(json: AsJson = False) -> None:
    """List the data sets and where they are.

    A data set is in the directory that the environment variable NKCME_DATA names, in the user's
    cache, or not downloaded.
    """
    from nkcme.cli import display
    from nkcme.datasets.uci import describe_uci

    described = describe_uci()
    display.show_json(described) if json else display.show_data_sets(described)


@data.command("fetch", epilog="Example: nkcme data fetch boston concrete")
def fetch_data(
    context: typer.Context,
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME", help="Names from `nkcme data list`.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All data sets.")] = False,
    timeout: Annotated[
        float,
        typer.Option(metavar="SECONDS", min=0.01, help="Time limit for a silent server."),
    ] = 30.0,
) -> None:
    """Download data sets.

    Files are verified, and one that differs from the published file is refused. A download that was
    interrupted continues with the same command. Prints the directory of each data set.
    """
    if everything == bool(names):
        raise NkcmeError("give the names of data sets, or --all; nkcme data list shows them")
    from nkcme.datasets.uci import UCI, fetch_uci, known_set

    wanted = [known_set(name).name for name in names or UCI]
    try:
        for name in wanted:
            print(fetch_uci(name, timeout=timeout))
    except KeyboardInterrupt as stop:
        again = shlex.join(["nkcme", *context.obj])
        print_note(f"stopped by Ctrl-C; what was downloaded is kept; to continue: {again}")
        raise SystemExit(STOPPED) from stop


@data.command("path", epilog="Example: nkcme data path boston")
def data_path(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A name from `nkcme data list`.")],
) -> None:
    """Print the directory that holds a data set."""
    from nkcme.datasets.uci import find_uci

    directory = find_uci(name)
    if directory is None:
        raise NkcmeError(f"{name} is not downloaded; run nkcme data fetch {name}")
    print(directory)
