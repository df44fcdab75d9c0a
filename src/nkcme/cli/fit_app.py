"""The arguments of `nkcme fit`."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nkcme.cli.options import (
    AsJson,
    Decimal,
    DropMissingTarget,
    Encoding,
    Missing,
    Seed,
    Separator,
    TablePath,
)
from nkcme.cli.running import STOPPED, limits, numbers, print_note
from nkcme.errors import NkcmeError

if TYPE_CHECKING:
    from nkcme.training.cluster import Cluster

#: More would train for years.
MAX_EPOCHS = 10**9


def fit(
    context: typer.Context,
    table: TablePath,
    target: Annotated[str, typer.Option(metavar="COLUMN", help="The column to predict.")],
    out: Annotated[
        Path,
        typer.Option(
            metavar="MODEL",
            help="The directory to save the model in; an existing model is replaced.",
        ),
    ],
    test_size: Annotated[
        float,
        typer.Option(
            help="Share of rows held out for scoring, chosen at random or by --group or --time; 0 "
            "for none."
        ),
    ] = 0.1,
    types: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=TYPE,...",
            help="Types of columns instead of those found: number, boolean, category, text, date, "
            "time.",
        ),
    ] = None,
    drop: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN,...", help="Columns that are not used, such as row numbers."),
    ] = None,
    weights: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="A column with the weights of rows.")
    ] = None,
    group: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="A column of groups, such as customers: new rows are of other groups, so these "
            "are held out as a whole.",
        ),
    ] = None,
    time: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="A column of dates or numbers: new rows come later, so the last ones are held "
            "out.",
        ),
    ] = None,
    drop_missing_target: DropMissingTarget = False,
    sep: Separator = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    na: Missing = None,
    estimator: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="NKCME, or a baseline: KernelCME, DeepFeatureCME, MDN, SplineFlow, CARD.",
        ),
    ] = "NKCME",
    preset: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="default; quick, many times faster and less accurate; or the paper's settings: "
            "paper-toy, paper-uci-small, paper-uci-large.",
        ),
    ] = "default",
    kernel: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="gaussian, laplace or cauchy.",
            show_default="that of the preset",
        ),
    ] = None,
    epochs: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            max=MAX_EPOCHS,
            help="Passes over the training rows.",
            show_default="that of the preset, or by the number of rows",
        ),
    ] = None,
    validation_fraction: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="Share of the training rows that selects which state of training is kept.",
            show_default="that of the preset",
        ),
    ] = None,
    bounds: Annotated[
        str | None,
        typer.Option(
            metavar="LOW,HIGH",
            help="The least and the largest value of the target, as in 0,100 or 0, for no limit.",
            show_default="found in the table",
        ),
    ] = None,
    integer: Annotated[
        bool, typer.Option("--integer", help="The target is a whole number.")
    ] = False,
    values: Annotated[
        str | None,
        typer.Option(
            metavar="V,V,...",
            help="All values that the target can take.",
            show_default="found in the table",
        ),
    ] = None,
    transform: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="none, or log to model the logarithm of a target above zero; predictions are in "
            "its own units either way.",
            show_default="log where clearly better",
        ),
    ] = None,
    seed: Seed = 0,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue a fit that was stopped.")
    ] = False,
    processes: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="Processes that fit a folder together.", show_default="1"
        ),
    ] = None,
    coordinator: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help="The first of --processes that another program starts, as Slurm or MPI.",
        ),
    ] = None,
    process_id: Annotated[
        int | None,
        typer.Option(metavar="I", min=0, help="The number of this process, with --coordinator."),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS", help="A Ray cluster to start --processes on, as ray://HOST:10001."
        ),
    ] = None,
    json: AsJson = False,
) -> None:
    """Fit a model that predicts one column from the others.

    The model predicts the whole distribution of the target. The other columns may hold numbers,
    text, dates and missing values. How each was read is printed to standard error, with doubts;
    --types and --drop change it.

    TABLE may be a folder of Parquet files, or a pattern in quotes as in 'sales/*.parquet'. From
    half a million rows on it is read as a stream and need not fit into memory.

    Until the model is saved, the state of training is kept beside it in MODEL.checkpoint. A fit
    that was stopped continues with --resume and gives the same model.
    """
    from nkcme.cli import display
    from nkcme.cli.fit import fit_table
    from nkcme.cli.stopping import TrainingStopped
    from nkcme.cli.training_rows import TableColumns
    from nkcme.tables.column_types import types_of_options
    from nkcme.tables.table_options import TableOptions

    chosen = {
        "kernel": kernel,
        "epochs": epochs,
        "validation_fraction": validation_fraction,
        "bounds": None if bounds is None else limits(bounds, "--bounds", "0,100 or 0,"),
        "integer": integer or None,
        "transform": transform,
        "values": None if values is None else numbers(values, "--values", "1,2,3"),
    }
    try:
        result = fit_table(
            table,
            TableColumns(target, weights, group, time, drop_missing_target),
            out,
            options=TableOptions.of_text(sep, decimal, encoding, na),
            types=types_of_options(types or (), drop or ()),
            note=print_note,
            show_columns=display.show_columns,
            estimator=estimator,
            preset=preset,
            parameters={name: value for name, value in chosen.items() if value is not None},
            seed=seed,
            test_size=test_size,
            resume=resume,
            cluster=_cluster(processes, coordinator, process_id, cluster),
        )
    except TrainingStopped as stop:
        again = shlex.join(["nkcme", *context.obj, *([] if resume else ["--resume"])])
        print_note(f"{stop}; to continue: {again}")
        raise SystemExit(STOPPED) from stop
    display.show_json(result) if json else display.show_fit(result)


def _cluster(
    processes: int | None, coordinator: str | None, process_id: int | None, ray: str | None
) -> Cluster | None:
    """The processes of a fit; None for this one alone."""
    if processes is None:
        if coordinator is not None or process_id is not None or ray is not None:
            raise NkcmeError("--coordinator, --process-id and --cluster need --processes N")
        return None
    from nkcme.training.cluster import Cluster

    found = Cluster(processes, coordinator, process_id, ray)
    found.check()
    return found
