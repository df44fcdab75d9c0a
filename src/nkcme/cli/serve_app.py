"""The arguments of `nkcme serve`."""

from __future__ import annotations

from typing import Annotated

import typer

from nkcme.cli.options import ModelPath
from nkcme.cli.running import print_note


def serve(
    model: ModelPath,
    port: Annotated[int, typer.Option(metavar="N", min=1, max=65535, help="The port.")] = 8000,
    host: Annotated[
        str,
        typer.Option(metavar="ADDRESS", help="The address; 0.0.0.0 for all networks."),
    ] = "127.0.0.1",
    workers: Annotated[
        int, typer.Option(metavar="N", min=1, max=256, help="Processes that answer.")
    ] = 1,
) -> None:
    """Answer requests over HTTP.

    POST /predict takes rows as JSON and returns means, quantiles, intervals and probabilities.
    /docs describes it, /health the model. There is no authentication: keep it behind a server that
    has it.
    """
    from nkcme.cli.serve import serve_model

    serve_model(model, host=host, port=port, workers=workers, note=print_note)
