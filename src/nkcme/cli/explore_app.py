"""The arguments of `nkcme explore`."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from nkcme.cli.options import (
    Decimal,
    DropMissingTarget,
    Encoding,
    KnownTarget,
    Missing,
    ModelPath,
    Separator,
    TablePath,
)
from nkcme.cli.running import print_note


def explore(
    model: ModelPath,
    table: TablePath,
    target: KnownTarget = None,
    port: Annotated[int, typer.Option(metavar="N", min=1, max=65535, help="The port.")] = 8001,
    open_browser: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the page in a browser.")
    ] = True,
    drop_missing_target: DropMissingTarget = False,
    sep: Separator = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    na: Missing = None,
) -> None:
    """Open a page to try inputs and see the distribution move.

    Sliders and menus for every input, two scenarios side by side, the probability of any event, and
    the nearest rows of TABLE. The page is served on this machine alone and needs no network.
    """
    from nkcme.cli.explore import explore_table
    from nkcme.cli.loading import load_for_exploring
    from nkcme.tables.table_options import TableOptions

    options = TableOptions.of_text(sep, decimal, encoding, na)
    load = partial(
        load_for_exploring, model, table, target, print_note, options, drop_missing_target
    )
    explore_table(model, load, port=port, open_browser=open_browser, note=print_note)
