"""The arguments of `nkcme`. Each command is in the file of its name, which is imported when it
runs: `nkcme --help` does not wait for JAX.
"""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Annotated

import typer

from nkcme._version import __version__
from nkcme.cli.data_app import data
from nkcme.cli.explain_app import explain
from nkcme.cli.explore_app import explore
from nkcme.cli.fit_app import fit
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
from nkcme.cli.predict_app import predict
from nkcme.cli.rl_app import rl
from nkcme.cli.running import print_note, run_app
from nkcme.cli.serve_app import serve
from nkcme.cli.warm_up_app import warm_up

app = typer.Typer(
    help="Predict whole conditional distributions from a table: intervals, quantiles, densities, "
    "samples.",
    epilog="Try it: nkcme demo",
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(data, name="data")
app.add_typer(rl, name="rl")
app.command(epilog="Example: nkcme fit houses.csv --target price --out price-model")(fit)
app.command(
    epilog="Example: nkcme predict price-model new-houses.csv --quantiles 0.05,0.5,0.95 -o out.csv"
)(predict)
app.command(epilog="Example: nkcme explain price-model sold-houses.csv --quantiles 0.05,0.95")(
    explain
)
app.command(epilog="Example: nkcme explore price-model sold-houses.csv")(explore)
app.command(epilog="Example: nkcme serve price-model --port 8000")(serve)
app.command("warm-up", epilog="Example: nkcme warm-up --rows 2000 --columns 10")(warm_up)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit with its status."""
    if isinstance(sys.stdout, io.TextIOWrapper):  # a column name it cannot encode must not fail
        sys.stdout.reconfigure(errors="backslashreplace")
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


def run(arguments: list[str]) -> int:
    """The exit status of a command line; bad input, Ctrl-C and a closed pipe raise nothing."""
    return run_app(app, "nkcme", arguments)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"nkcme {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Options before the command. The callback of ``--version`` does all the work."""


@app.command(epilog="Example: nkcme evaluate price-model sold-houses.csv")
def evaluate(
    model: ModelPath,
    table: TablePath,
    target: KnownTarget = None,
    drop_missing_target: DropMissingTarget = False,
    json: AsJson = False,
    sep: Separator = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    na: Missing = None,
) -> None:
    """Score a model against true values.

    TABLE holds the target too, in rows that the model was not fitted on. Each score is printed
    with its meaning.
    """
    from nkcme.cli import display
    from nkcme.cli.evaluate import evaluate_table
    from nkcme.tables.table_options import TableOptions

    options = TableOptions.of_text(sep, decimal, encoding, na)
    result = evaluate_table(
        model, table, target, options=options, drop_missing=drop_missing_target, note=print_note
    )
    display.show_json(result) if json else display.show_metrics(result["metrics"])


@app.command(epilog="Example: nkcme report price-model sold-houses.csv -o report.html")
def report(
    model: ModelPath,
    table: TablePath,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="The HTML file to write.")
    ],
    target: KnownTarget = None,
    drop_missing_target: DropMissingTarget = False,
    sep: Separator = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    na: Missing = None,
) -> None:
    """Write an HTML page of charts and scores.

    TABLE holds the target too, in rows that the model was not fitted on. The page is one file that
    works without a network.
    """
    from nkcme.cli.report import report_table
    from nkcme.tables.table_options import TableOptions

    options = TableOptions.of_text(sep, decimal, encoding, na)
    report_table(
        model,
        table,
        target,
        out,
        options=options,
        drop_missing=drop_missing_target,
        note=print_note,
    )
    print(f"Wrote {out}")


@app.command(epilog="Example: nkcme info price-model")
def info(model: ModelPath, json: AsJson = False) -> None:
    """Describe a model.

    Its columns, target and size, and the parameters it was fitted with.
    """
    from nkcme.cli import display
    from nkcme.cli.info import describe_model

    described = describe_model(model)
    display.show_json(described) if json else display.show_model(described)


@app.command(epilog="Example: nkcme demo --out demo")
def demo(
    out: Annotated[
        Path,
        typer.Option(metavar="DIRECTORY", help="Where to write the tables, model and report."),
    ] = Path("demo"),
    seed: Seed = 0,
    json: AsJson = False,
) -> None:
    """Run an example on data that are included.

    Takes a minute or two. Fits a toy problem with a known true distribution, and compares the
    score with the paper's and with that of a perfect model. Then fits a medical table from a CSV
    file, as you would fit yours, scores it and writes a report.
    """
    from nkcme.cli import display
    from nkcme.cli.demo import TARGET, fit_diabetes, fit_ring, write_diabetes

    paths = write_diabetes(out, seed)
    print_note("1/2 the ring: y lies on a noisy circle, so it has two likely values or a range ...")
    ring = fit_ring(seed)
    if not json:
        display.show_ring(ring)
    print_note("2/2 diabetes: fit, evaluate, predict and report, as for your own CSV file ...")
    diabetes = fit_diabetes(paths, seed, print_note)
    if json:
        display.show_json({"ring": ring, "diabetes": diabetes})
        return
    display.show_metrics(diabetes["metrics"], "diabetes patients held out")
    display.show_intervals(diabetes["intervals"], TARGET)
    display.show_next(diabetes["paths"], TARGET)
