"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

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
TablePath = Annotated[
    Path,
    typer.Argument(metavar="TABLE", help="A .csv, .tsv (also .gz) or .parquet file with a header."),
]
KnownTarget = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN", help="The column with the true values.", show_default="that of fit"
    ),
]
