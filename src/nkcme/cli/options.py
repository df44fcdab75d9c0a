"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

Seed = Annotated[
    int, typer.Option(metavar="N", min=0, max=2**32 - 1, help="The same seed, the same result.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
