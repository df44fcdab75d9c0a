"""The arguments of `nkcme explain`."""

from __future__ import annotations

from typing import Annotated

import typer

from nkcme.cli.options import AsJson, KnownTarget, ModelPath, Seed, TablePath
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
) -> None:
    """Show which inputs move the centre, the spread and the tails.

    TABLE holds the target too. Each input is shuffled between rows: how much worse are the
    predictions then, as a whole and in their parts? With --row, how much does each input move the
    mean, the spread and quantiles of one row away from the average prediction?
    """
    from nkcme.cli import display
    from nkcme.cli.explain import explain_row, explain_table

    levels = numbers(quantiles, "--quantiles", "0.05,0.95") if quantiles else []
    if row is not None:
        found = explain_row(model, table, target, row, quantiles=levels, seed=seed, note=print_note)
        display.show_json(found) if json else display.show_explained_row(found)
        return
    result = explain_table(
        model, table, target, quantiles=levels, repeats=repeats, seed=seed, note=print_note
    )
    display.show_json(result) if json else display.show_importance(result)
