"""The arguments of `nkcme`. What a command does is in the file of its name, imported when needed:
`nkcme --help` does not wait for JAX.
"""

from __future__ import annotations

import io
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from nkcme._version import __version__
from nkcme.cli.data_app import data
from nkcme.cli.options import AsJson, Seed
from nkcme.cli.rl_app import rl
from nkcme.cli.running import STOPPED, numbers, run_app, say

app = typer.Typer(
    help="Whole conditional distributions from a table: intervals, quantiles, densities, draws.",
    epilog="Try it: nkcme demo",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(data, name="data")
app.add_typer(rl, name="rl")

ModelPath = Annotated[
    Path, typer.Argument(metavar="MODEL", help="A model directory that `nkcme fit` wrote.")
]
TablePath = Annotated[
    Path,
    typer.Argument(metavar="TABLE", help="A .csv, .tsv (also .gz) or .parquet file with a header."),
]
KnownTarget = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="The column with the true values.", show_default="as fit"),
]


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit with its status."""
    if isinstance(sys.stdout, io.TextIOWrapper):  # a name it cannot spell is no reason to fail
        sys.stdout.reconfigure(errors="backslashreplace")
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


def run(arguments: list[str]) -> int:
    """The exit status of a command line; never raises on bad input, Ctrl-C or a closed pipe."""
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
    """Options before the command; the version's callback does all there is to do."""


@app.command(epilog="Example: nkcme fit houses.csv --target price --out price-model")
def fit(
    context: typer.Context,
    table: TablePath,
    target: Annotated[str, typer.Option(metavar="COLUMN", help="The column to predict.")],
    out: Annotated[
        Path,
        typer.Option(
            metavar="MODEL", help="The directory to save the model in; a model there is replaced."
        ),
    ],
    test_size: Annotated[
        float, typer.Option(help="Share of rows, chosen at random, held out to score; 0 for none.")
    ] = 0.1,
    estimator: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="NKCME, or one of its rivals: KernelCME, DeepFeatureCME, MDN, SplineFlow, CARD.",
        ),
    ] = "NKCME",
    preset: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="default; quick, many times faster and less sharp; or the paper's recipes: "
            "paper-toy, paper-uci-small, paper-uci-large.",
        ),
    ] = "default",
    kernel: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="gaussian, laplace or cauchy.",
            show_default="of the preset",
        ),
    ] = None,
    epochs: Annotated[
        int | None,
        typer.Option(help="Passes over the rows.", show_default="of the preset, or by the rows"),
    ] = None,
    validation_fraction: Annotated[
        float | None,
        typer.Option(
            help="Share of the training rows that decides which state of training is kept.",
            show_default="of the preset",
        ),
    ] = None,
    seed: Seed = 0,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with a fit that was stopped.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Learn how one column depends on the others.

    What is saved is a model of its whole distribution, given the other columns. Numbers, text and
    missing values are welcome among them; drop what should not be used, such as row numbers.

    The state of training is kept beside the model in MODEL.checkpoint until it is saved, so a fit
    that was stopped in any way goes on with --resume and gives the model it would have given.
    """
    from nkcme.cli import display
    from nkcme.cli.fit import FitStopped, fit_table

    chosen = {"kernel": kernel, "epochs": epochs, "validation_fraction": validation_fraction}
    try:
        result = fit_table(
            table,
            target,
            out,
            estimator=estimator,
            preset=preset,
            parameters={name: value for name, value in chosen.items() if value is not None},
            seed=seed,
            test_size=test_size,
            resume=resume,
        )
    except FitStopped as stop:
        again = shlex.join(["nkcme", *context.obj, *([] if resume else ["--resume"])])
        say(f"{stop}; to go on: {again}")
        raise SystemExit(STOPPED) from stop
    display.show_json(result) if json else display.show_fit(result)


@app.command(
    epilog="Example: nkcme predict price-model new-houses.csv --quantiles 0.05,0.5,0.95 -o out.csv"
)
def predict(
    model: ModelPath,
    table: TablePath,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="A .csv, .tsv (also .gz) or .parquet file to write.",
            show_default="CSV to standard output",
        ),
    ] = None,
    quantiles: Annotated[
        str, typer.Option(metavar="LEVELS", help="Levels with commas between, as 0.05,0.5,0.95.")
    ] = "",
    interval: Annotated[
        float | None,
        typer.Option(
            metavar="COVERAGE", help="Central interval that holds y so often, such as 0.9."
        ),
    ] = None,
    samples: Annotated[
        int, typer.Option(metavar="N", min=0, help="So many random draws of y a row.")
    ] = 0,
    seed: Seed = 0,
) -> None:
    """Predict the rows of a table.

    The mean always and, where asked for, quantiles, an interval and draws. The columns are named
    mean, q0.05 ..., lower_0.9, upper_0.9, sample_1 ..., and the rows are those of TABLE in their
    order. Columns of TABLE go by their names, in any order; what the model does not know is ignored
    with a note.
    """
    levels = numbers(quantiles, "--quantiles", "0.05,0.5,0.95") if quantiles else []
    from nkcme.cli.predict import predict_table
    from nkcme.tables.files import write_table

    predicted = predict_table(
        model,
        table,
        quantiles=levels,
        interval=interval,
        samples=samples,
        seed=seed,
        note=say,
    )
    write_table(predicted, out)


@app.command(epilog="Example: nkcme evaluate price-model sold-houses.csv")
def evaluate(
    model: ModelPath,
    table: TablePath,
    target: KnownTarget = None,
    json: AsJson = False,
) -> None:
    """Score a model against true values.

    TABLE holds the target too, in rows that the model was not fitted on. Each score is printed
    with what it means.
    """
    from nkcme.cli import display
    from nkcme.cli.evaluate import evaluate_table

    result = evaluate_table(model, table, target, note=say)
    display.show_json(result) if json else display.show_metrics(result["metrics"])


@app.command(epilog="Example: nkcme report price-model sold-houses.csv -o report.html")
def report(
    model: ModelPath,
    table: TablePath,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="The HTML file to write.")
    ],
    target: KnownTarget = None,
) -> None:
    """Write a page of pictures and scores.

    TABLE holds the target too, in rows that the model was not fitted on. The HTML page needs no
    network and nothing beside it: mail it, archive it.
    """
    from nkcme.cli.evaluate import report_table

    report_table(model, table, target, out, note=say)
    print(f"Wrote {out}")


@app.command(epilog="Example: nkcme info price-model")
def info(model: ModelPath, json: AsJson = False) -> None:
    """Say what a model is.

    Its columns, target and size, and the parameters it was fitted with.
    """
    from nkcme.cli import display
    from nkcme.cli.info import describe_model

    described = describe_model(model)
    display.show_json(described) if json else display.show_model(described)


@app.command(epilog="Example: nkcme demo --out demo")
def demo(
    out: Annotated[
        Path, typer.Option(metavar="DIRECTORY", help="Where to leave tables, model and report.")
    ] = Path("demo"),
    seed: Seed = 0,
    json: AsJson = False,
) -> None:
    """See it work on data that are included.

    Takes a minute or two. Fits a toy problem whose truth is known and compares with the paper and
    with perfection; then fits a medical table from a CSV file as you would yours, scores it, and
    writes a report.
    """
    from nkcme.cli import display
    from nkcme.cli.demo import TARGET, fit_diabetes, fit_ring, write_diabetes

    paths = write_diabetes(out, seed)
    say("1/2 the ring: y is on a noisy circle, so it has two likely values or a whole range ...")
    ring = fit_ring(seed)
    if not json:
        display.show_ring(ring)
    say("2/2 diabetes: fit, evaluate, predict and report, as for a CSV file of yours ...")
    diabetes = fit_diabetes(paths, seed, say)
    if json:
        display.show_json({"ring": ring, "diabetes": diabetes})
        return
    display.show_metrics(diabetes["metrics"], "diabetes patients the model has not seen")
    display.show_intervals(diabetes["intervals"], TARGET)
    display.show_next(diabetes["paths"], TARGET)
