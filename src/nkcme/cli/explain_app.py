"""The arguments of `nkcme explain`."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from nkcme.cli.options import (
    AsJson,
    Decimal,
    DropMissingTarget,
    Encoding,
    KnownTarget,
    Missing,
    ModelPath,
    Seed,
    Separator,
    TablePath,
)
from nkcme.cli.running import numbers, print_note


def explain(
    model: ModelPath,
    table: TablePath,
    target: KnownTarget = None,
    quantiles: Annotated[
        str,
        typer.Option(metavar="LEVELS", help="Levels separated by commas, as in 0.05,0.95."),
    ] = "",
    row: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Explain this row of TABLE, counted from 1, by SHAP values (extra shap).",
        ),
    ] = None,
    repeats: Annotated[
        int, typer.Option(metavar="N", min=1, max=1000, help="How often each input is shuffled.")
    ] = 5,
    seed: Seed = 0,
    json: AsJson = False,
    drop_missing_target: DropMissingTarget = False,
    sep: Separator = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    na: Missing = None,
) -> None:
    """Show which inputs move the centre, the spread and the tails.

    TABLE holds the target too. Each input is shuffled between rows: how much worse are the
    predictions then, as a whole and in their parts? With --row, how much does each input move the
    mean, the spread and quantiles of one row away from the average prediction?
    """
    from nkcme.cli import display
    from nkcme.cli.explain import explain_row, explain_table
    from nkcme.cli.loading import load_with_truth
    from nkcme.tables.table_options import TableOptions

    options = TableOptions.of_text(sep, decimal, encoding, na)
    load = partial(load_with_truth, model, table, target, print_note, options, drop_missing_target)
    levels = numbers(quantiles, "--quantiles", "0.05,0.95") if quantiles else []
    if row is not None:
        found = explain_row(load, row, quantiles=levels, seed=seed)
        display.show_json(found) if json else display.show_explained_row(found)
        return
    result = explain_table(load, quantiles=levels, repeats=repeats, seed=seed)
    display.show_json(result) if json else display.show_importance(result)
