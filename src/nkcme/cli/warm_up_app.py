"""The arguments of `nkcme warm-up`."""

from __future__ import annotations

from typing import Annotated

import typer

from nkcme.cli.options import AsJson
from nkcme.cli.running import numbers
from nkcme.errors import NkcmeError

#: Fewer rows are not cross-fitted, and have other programs.
_LEAST_ROWS = 100


def warm_up(
    rows: Annotated[
        str, typer.Option(metavar="NUMBERS", help="Rows of tables, separated by commas.")
    ] = "300,600,2000,25000",
    columns: Annotated[
        str, typer.Option(metavar="NUMBERS", help="Columns of tables, separated by commas.")
    ] = "10,40",
    json: AsJson = False,
) -> None:
    """Compile programs before they are needed.

    A first fit waits for the compiler. This command fills its cache on disk for tables of all
    combinations of these sizes and of similar ones, in a minute or two. Stop it with Ctrl-C at any
    time: what was compiled stays.
    """
    sizes = _wholes(rows, "--rows", _LEAST_ROWS), _wholes(columns, "--columns", 1)
    from nkcme.cli import display
    from nkcme.cli.warm_up import warm_up as fill

    result = fill(*sizes)
    display.show_json(result) if json else display.show_warm_up(result)


def _wholes(text: str, option: str, least: int) -> list[int]:
    found = numbers(text, option, "300,2000")
    if not all(number.is_integer() and number >= least for number in found):
        raise NkcmeError(f"{option} must be whole numbers from {least} on; got {text!r}")
    return [int(number) for number in found]
