"""The arguments of `nkcme predict`."""

from __future__ import annotations

import glob
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nkcme.cli.options import AsJson, Decimal, Encoding, Missing, ModelPath, Seed, Separator
from nkcme.cli.running import numbers, print_note
from nkcme.errors import NkcmeError

if TYPE_CHECKING:
    from nkcme.prediction.folder import Placement
    from nkcme.prediction.predictor import Predictor

#: Every sample is a column of the table that `predict` writes; wider tables cannot be read.
MAX_SAMPLES = 100_000


def predict(
    model: ModelPath,
    table: Annotated[
        Path,
        typer.Argument(
            metavar="TABLE",
            help="A .csv, .tsv (also .gz), .parquet or .xlsx file with a header; - for standard "
            "input; or a folder of .parquet files.",
            allow_dash=True,
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="A .csv, .tsv (also .gz) or .parquet file to write; for a folder, a folder.",
            show_default="CSV to standard output",
        ),
    ] = None,
    quantiles: Annotated[
        str,
        typer.Option(metavar="LEVELS", help="Levels separated by commas, as in 0.05,0.5,0.95."),
    ] = "",
    interval: Annotated[
        float | None,
        typer.Option(
            metavar="COVERAGE", help="Central prediction interval of this coverage, such as 0.9."
        ),
    ] = None,
    samples: Annotated[
        int,
        typer.Option(metavar="N", min=0, max=MAX_SAMPLES, help="Random samples of y for each row."),
    ] = 0,
    keep: Annotated[
        str,
        typer.Option(metavar="COLUMNS", help="Columns of TABLE to write too, as in id,day."),
    ] = "",
    shard: Annotated[
        str,
        typer.Option(
            metavar="I/N",
            help="Of a folder, only the I-th of N shares of the files.",
            show_default="1/1",
        ),
    ] = "",
    workers: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=1,
            help="For a folder: processes of one thread each; 1 is this process on all its cores.",
        ),
    ] = 1,
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="For a folder: a Ray cluster whose cores predict, as in ray://head:10001 or auto.",
        ),
    ] = None,
    seed: Seed = 0,
    json: AsJson = False,
    sep: Separator = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    na: Missing = None,
) -> None:
    """Predict the rows of a table.

    Writes the mean and, on request, quantiles, an interval and samples, one row for each row of
    TABLE. The columns are named mean, q0.05 ..., lower_0.9, upper_0.9, sample_1 ...

    Columns of TABLE are matched by name, in any order, and parsed as in the training table. Other
    columns are ignored with a note, and so are categories that the model does not know.

    The predictions of a folder go to files of the same names in another folder. A command that was
    stopped continues where it was: finished files are not written again.
    """
    levels = numbers(quantiles, "--quantiles", "0.05,0.5,0.95") if quantiles else []
    from nkcme.cli import display
    from nkcme.cli.predict import predict_table
    from nkcme.prediction.predictor import Predictor
    from nkcme.tables.files import check_output, write_table
    from nkcme.tables.table_options import TableOptions

    kept = [name for name in keep.split(",") if name]
    predictor = Predictor(
        model, quantiles=levels, intervals=[] if interval is None else [interval], keep=kept
    )
    placement = _placement(shard, workers, cluster)
    if os.path.isdir(table) or (glob.has_magic(str(table)) and not os.path.exists(table)):
        _predict_folder(
            predictor,
            table,
            out,
            placement,
            refused={
                "--json": json,
                "--samples": samples,
                "--sep": sep,
                "--decimal": decimal,
                "--encoding": encoding,
                "--na": na,
            },
        )
        return
    options = TableOptions.of_text(sep, decimal, encoding, na)
    if shard or workers > 1 or cluster is not None:
        raise NkcmeError(
            f"--shard, --workers and --cluster are for folders of .parquet files; {table} is none"
        )
    if json and out is not None:
        raise NkcmeError("--json prints to standard output; leave out --out, or --json")
    check_output(out)
    predicted = predict_table(
        predictor, table, samples=samples, seed=seed, options=options, note=print_note
    )
    if json:
        display.show_json({"model": str(model), "predictions": predicted.to_dict("records")})
    else:
        write_table(predicted, out)


def _predict_folder(
    predictor: Predictor,
    folder: Path,
    out: Path | None,
    placement: Placement,
    refused: dict[str, object],
) -> None:
    from nkcme.prediction.folder import predict_folder

    if out is None:
        raise NkcmeError(f"{folder} is a folder, so --out must name a folder for its predictions")
    for option, given in refused.items():
        if given:
            raise NkcmeError(
                f"{option} is for single tables, and {folder} is a folder; leave it out"
            )
    tally = predict_folder(predictor, folder, out, placement, print_note)
    there = f"; {tally.already_there} were finished before" if tally.already_there else ""
    print(f"Wrote {tally.rows:,} rows in {tally.files} files to {out}{there}")


def _placement(shard: str, workers: int, cluster: str | None) -> Placement:
    from nkcme.prediction.folder import Placement

    found = re.fullmatch(r"(\d+)/(\d+)", shard or "1/1")
    number, count = map(int, found.groups()) if found else (0, 0)
    if not 1 <= number <= count:
        raise NkcmeError(f"--shard must be I/N with I from 1 to N, as in 2/8; got {shard!r}")
    if cluster is not None and workers > 1:
        raise NkcmeError("--workers are processes of this machine; leave it out with --cluster")
    return Placement((number, count), workers, cluster)
