"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

TablePath = Annotated[
    Path,
    typer.Argument(
        metavar="TABLE",
        help="A .csv, .tsv (also .gz), .parquet or .xlsx file with a header; - for standard input.",
        allow_dash=True,
    ),
]
Separator = Annotated[
    str | None,
    typer.Option(
        metavar="CHAR", help="What separates fields, as in ';' or tab.", show_default="found"
    ),
]
Decimal = Annotated[
    str | None,
    typer.Option(metavar="MARK", help="The decimal mark, . or ,.", show_default="found"),
]
Encoding = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Of a text file, as in cp1252.", show_default="utf-8"),
]
Missing = Annotated[
    str | None,
    typer.Option(
        metavar="MARK,...", help="More marks of missing values in all columns, as in -999,n/k."
    ),
]
DropMissingTarget = Annotated[
    bool, typer.Option("--drop-missing-target", help="Leave out rows without a target.")
]
ModelPath = Annotated[
    Path, typer.Argument(metavar="MODEL", help="A model directory that `nkcme fit` wrote.")
]
Seed = Annotated[
    int,
    typer.Option(
        metavar="N",
        min=0,
        max=2**32 - 1,
        help="Random seed: the same seed gives the same result on the same machine.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
KnownTarget = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN", help="The column with the true values.", show_default="that of fit"
    ),
]
