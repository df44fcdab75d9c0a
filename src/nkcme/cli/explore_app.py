"""The arguments of `nkcme explore`."""

from __future__ import annotations

from typing import Annotated

import typer

from nkcme.cli.options import KnownTarget, ModelPath, TablePath
from nkcme.cli.running import print_note


def explore(
    model: ModelPath,
    table: TablePath,
    target: KnownTarget = None,
    port: Annotated[int, typer.Option(metavar="N", min=1, max=65535, help="The port.")] = 8001,
    open_browser: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the page in a browser.")
    ] = True,
) -> None:
    """Open a page to try inputs and see the distribution move.

    Sliders and menus for every input, two scenarios side by side, the probability of any event, and
    the nearest rows of TABLE. The page is served on this machine alone and needs no network.
    """
    from nkcme.cli.explore import explore_table

    explore_table(model, table, target, port=port, open_browser=open_browser, note=print_note)
