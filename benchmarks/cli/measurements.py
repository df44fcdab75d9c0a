"""The commands that measure speed, check the default on other tables, and draw illustrations."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nkcme.errors import NkcmeError

Out = Annotated[
    Path, typer.Option("--out", metavar="DIRECTORY", help="The directory of the result file.")
]
Images = Annotated[
    Path, typer.Option("--images", metavar="DIRECTORY", help="The directory of the figures.")
]
Repeats = Annotated[
    int, typer.Option(metavar="N", min=1, help="Measure N times and report the median.")
]
_OUT, _IMAGES = Path("results"), Path("docs/images")


def add_to(app: typer.Typer) -> None:
    """Add the commands of this module to the command line."""
    for name, command, example in (
        ("speed", speed, "speed --repeats 3"),
        ("step-speed", step_speed, "step-speed --repeats 3"),
        ("rl-speed", rl_speed, "rl-speed --whole"),
        ("runtime-speed", runtime_speed, "runtime-speed --rows 100000"),
        ("explorer-speed", explorer_speed, "explorer-speed --moves 200"),
        ("start-speed", start_speed, "start-speed --before ../nkcme-before"),
        ("fit-speed", fit_speed, "fit-speed --cases concrete,unseen"),
        ("busy-speed", busy_speed, "busy-speed --rows 5000"),
        ("scale-predict", scale_predict, "scale-predict --rows 1000000"),
        ("scale", scale, "scale --parts processes,kills --kills 2"),
        ("table-sizes", table_sizes, "table-sizes --sizes 300"),
        ("small-tables", small_tables, "small-tables --folds 6"),
        ("log-transform", log_transform, "log-transform --sets wage"),
        ("constants", constants, "constants --sets wage,airfoil"),
        ("commits", compare_commits, "commits ../before --sets pol --folds 3"),
        ("messy-table", messy_table, "messy-table --seeds 1"),
        ("dependent-rows", dependent_rows, "dependent-rows --designs patients --seeds 2"),
        ("risk", risk, "risk"),
        ("figures", figures, "figures"),
        ("pictures", pictures, "pictures"),
    ):
        app.command(name, epilog=f"Example: python -m benchmarks {example}")(command)


def speed(repeats: Repeats = 5, out: Out = _OUT) -> None:
    """Measure the speed of training against a plain loop.

    The plain loop does the same training, in a jitted step that Python calls. Also measures the
    start of a new process, prediction of a million rows, one fit, and the time to reach the paper's
    scores. Takes several minutes. Writes speed-DEVICE.json.
    """
    from benchmarks.speed.training import main

    main(repeats, out)


def step_speed(repeats: Repeats = 3, out: Out = _OUT) -> None:
    """Measure a training step by the options of the compiler.

    Each variant trains ten seeds of the paper's recipe in a new process. Takes several minutes.
    Writes step-speed-DEVICE.json.
    """
    from benchmarks.speed.steps import main

    main(repeats, out)


def scale(
    parts: Annotated[
        str,
        typer.Option(
            metavar="NAMES",
            help="disk, memory, processes and kills, or some of them, comma-separated.",
        ),
    ] = "disk,memory,processes,kills",
    rows: Annotated[
        int, typer.Option(metavar="N", min=500_000, help="Rows of the table on disk.")
    ] = 100_000_000,
    compared_rows: Annotated[
        int,
        typer.Option(metavar="N", min=500_000, help="Rows of the table also fitted in memory."),
    ] = 10_000_000,
    kills: Annotated[int, typer.Option(metavar="N", min=1, help="Processes to kill.")] = 10,
    place: Annotated[
        Path, typer.Option(metavar="DIRECTORY", help="Where tables are generated.")
    ] = Path("/tmp"),
    out: Out = _OUT,
) -> None:
    """Fit tables from disk, by several processes, and kill some.

    A table of 100 million rows takes 8 GB of disk until it was fitted, and the whole command some
    hours. Appends to scale-DEVICE.jsonl.
    """
    from benchmarks.scale.measurements import PARTS, main

    chosen = parts.split(",")
    unknown = [part for part in chosen if part not in PARTS]
    if unknown:
        raise NkcmeError(f"--parts takes {', '.join(PARTS)}; got {unknown[0]!r}")
    main(chosen, rows, compared_rows, kills, place, out)


def runtime_speed(
    repeats: Repeats = 5,
    rows: Annotated[
        int, typer.Option(metavar="N", min=1, help="Rows of the large table.")
    ] = 1_000_000,
    requests: Annotated[
        int, typer.Option(metavar="N", min=1, help="Requests of the load test.")
    ] = 10_000,
    out: Out = _OUT,
) -> None:
    """Measure the runtime, the full library and the server.

    Import and load, one row, a million rows, and a load test on the loopback interface in which
    each answer is compared with the right one. Takes several minutes. Writes
    runtime-speed-DEVICE.json.
    """
    from benchmarks.speed.runtime import main

    main(repeats, rows, requests, out)


def rl_speed(
    repeats: Repeats = 5,
    plain_steps: Annotated[
        int, typer.Option(metavar="N", min=1, help="Timed steps of the plain loop.")
    ] = 400,
    our_steps: Annotated[
        tuple[int, int],
        typer.Option(metavar="N M", help="Two lengths of our training; their difference counts."),
    ] = (2000, 8000),
    whole: Annotated[
        bool, typer.Option("--whole", help="Also time a run of full length with evaluations.")
    ] = False,
    out: Out = _OUT,
) -> None:
    """Measure the speed of agents against a plain loop.

    Ten agents train side by side; the plain loop does the same training, in a jitted step that
    Python calls. Takes minutes. Writes rl-speed-DEVICE.json.
    """
    if not 0 < our_steps[0] < our_steps[1]:
        raise NkcmeError(f"--our-steps needs two increasing numbers of steps; got {our_steps}")
    from benchmarks.speed.agents import main

    main(repeats, plain_steps, our_steps, whole, out)


def explorer_speed(
    moves: Annotated[int, typer.Option(metavar="N", min=50, help="Timed moves of sliders.")] = 100,
    out: Out = _OUT,
) -> None:
    """Measure how soon the explorer follows a slider.

    In a headless Chromium, which must be installed, on the cores of the server. Takes half a
    minute. Writes explorer-speed-DEVICE.json.
    """
    from benchmarks.speed.explorer import main

    main(moves, out)


def start_speed(
    repeats: Repeats = 5,
    before: Annotated[
        Path | None,
        typer.Option(
            metavar="DIRECTORY", help="A checkout of another commit, measured side by side."
        ),
    ] = None,
    out: Out = _OUT,
) -> None:
    """Measure how long new processes take to start.

    Imports, nkcme info, and commands that are refused. Takes a minute. Writes start-DEVICE.json.
    """
    if before is not None and not (before / "src" / "nkcme").is_dir():
        raise NkcmeError(f"--before needs a checkout with src/nkcme; got {before}")
    from benchmarks.speed.start import main

    main(repeats, before, out)


def fit_speed(
    cases: Annotated[
        str, typer.Option(metavar="NAMES", help="What to measure, comma-separated.")
    ] = "concrete,ring,wide,large,unseen",
    repeats: Repeats = 3,
    out: Out = _OUT,
) -> None:
    """Measure fits in new processes, and their compilation.

    Concrete beside NGBoost, the ring with our recipe and the paper's, 5,000 x 20 and 100,000 x 10
    rows, with an empty and a filled cache of compiled programs; and tables of shapes never seen
    after another one was fitted. Takes half an hour. Further cases: repeated, 1,500 rows twice in
    one process; and folds, all folds of each UCI set together, for a GPU. Writes
    fit-speed-DEVICE.json.
    """
    from benchmarks.speed.fits import main

    main([name.strip() for name in cases.split(",") if name.strip()], repeats, out)


def busy_speed(
    rows: Annotated[int, typer.Option(metavar="N", min=100, help="Rows of the table.")] = 1000,
    repeats: Repeats = 3,
    out: Out = _OUT,
) -> None:
    """Measure a fit beside busy processes.

    Also compares regressors fitted in turn with regressors fitted while networks train. Takes
    minutes. Writes busy-DEVICE.json.
    """
    from benchmarks.speed.busy import main

    main(rows, repeats, out)


def scale_predict(
    rows: Annotated[
        int, typer.Option(metavar="N", min=1000, help="Rows of the folder.")
    ] = 10_000_000,
    ways: Annotated[
        str, typer.Option(metavar="NAMES", help="How to predict it, comma-separated.")
    ] = "one worker,two workers,two shards,ray,killed worker,spark",
    place: Annotated[
        Path, typer.Option(metavar="DIRECTORY", help="Where tables are generated.")
    ] = Path("/tmp"),
    out: Out = _OUT,
) -> None:
    """Predict a folder by one worker and by two.

    Also in two shards, on Ray, by Spark, and by two workers of which one is killed; compares rows
    and bytes. Ten million rows take an hour. Writes scale-predict-DEVICE.json.
    """
    from benchmarks.speed.folder_prediction import WAYS, main

    chosen = [way.strip() for way in ways.split(",")]
    if unknown := [way for way in chosen if way not in WAYS]:
        raise NkcmeError(f"--ways takes {', '.join(WAYS)}; got {unknown[0]!r}")
    main(rows, chosen, place, out)


def table_sizes(
    sizes: Annotated[
        str, typer.Option(metavar="NUMBERS", help="Numbers of rows, comma-separated.")
    ] = "300,500000",
    out: Out = _OUT,
) -> None:
    """Time and score NKCME() on small and large tables.

    Writes table-sizes-DEVICE.json.
    """
    try:
        numbers = [int(size) for size in sizes.split(",")]
    except ValueError:
        numbers = []
    if not numbers or min(numbers) < 1:
        raise NkcmeError(f"--sizes needs numbers of rows, as 300,500000; got {sizes!r}")
    from benchmarks.checks.table_sizes import main

    main(numbers, out)


def small_tables(
    folds: Annotated[
        int, typer.Option(metavar="N", min=2, help="The first N folds of each set.")
    ] = 6,
    out: Out = _OUT,
) -> None:
    """Score one network and the paper's recipe on few rows.

    The UCI sets come from where `nkcme data` finds them. Takes minutes. Writes
    small-tables-DEVICE.json.
    """
    from benchmarks.checks.small_tables import main

    main(folds, out)


def log_transform(
    tables: Annotated[
        Path | None,
        typer.Argument(metavar="FOLDER", help="CSV files.", show_default="NKCME_TABLES"),
    ] = None,
    sets: Annotated[
        str, typer.Option(metavar="NAMES", help="Tables with y above zero, comma-separated.")
    ] = "wage,diamonds",
    most_rows: Annotated[
        int, typer.Option(metavar="N", min=200, help="Training rows of a table.")
    ] = 6000,
    simulations: Annotated[
        bool, typer.Option(help="Whether simulated tables are compared as well.")
    ] = True,
    out: Out = _OUT,
) -> None:
    """Compare models of y and of log y.

    Both on fold 0 of tables, and the automatic choice there and on simulated tables. Takes many
    minutes. Adds rows to log-transform-trial-DEVICE.jsonl.
    """
    from benchmarks.checks.log_transform import main

    main(tables, [name for name in sets.split(",") if name], most_rows, simulations, out)


def messy_table(
    seeds: Annotated[int, typer.Option(metavar="N", min=1, help="Tables that are generated.")] = 3,
    out: Out = _OUT,
) -> None:
    """Compare a table as people have it with the cleaned one.

    Apartments as CSV, Excel and Parquet, fitted on the command line. Takes two minutes. Writes
    messy-table-DEVICE.json.
    """
    from benchmarks.checks.messy_table import main

    main(seeds, out)


def dependent_rows(
    designs: Annotated[
        str, typer.Option(metavar="NAMES", help="Only these designs.", show_default="all")
    ] = "",
    seeds: Annotated[int, typer.Option(metavar="N", min=1, help="Tables of each size.")] = 10,
    ignored: Annotated[
        bool, typer.Option("--ignored", help="Fit as if rows were independent.")
    ] = False,
    variant: Annotated[
        str | None, typer.Option(metavar="NAME", help="Another recipe.", show_default="the default")
    ] = None,
    out: Out = _OUT,
) -> None:
    """Score fits with groups or times on new rows.

    They are new groups, or later rows, of simulated tables. Takes some seconds per table. Adds rows
    to dependent-rows-DEVICE.jsonl; finished ones are not run again.
    """
    from benchmarks.checks.dependent_rows import main

    main([name for name in designs.split(",") if name], seeds, ignored, variant, out)


def constants(
    tables: Annotated[
        Path | None,
        typer.Argument(metavar="FOLDER", help="CSV files.", show_default="NKCME_TABLES"),
    ] = None,
    sets: Annotated[
        str, typer.Option(metavar="NAMES", help="Only these tables.", show_default="all")
    ] = "",
    variants: Annotated[
        str, typer.Option(metavar="NAMES", help="Only these variants.", show_default="all")
    ] = "",
    most_rows: Annotated[
        int, typer.Option(metavar="N", min=20, help="Training rows of a table.")
    ] = 4000,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="The random state.")] = 0,
    out: Out = _OUT,
) -> None:
    """Vary single constants of the default on fold 0 of tables.

    Takes a minute or two per variant. Adds rows to constants-trial-DEVICE.jsonl; finished ones are
    not run again.
    """
    from benchmarks.checks.constants import main

    chosen, changed = ([one for one in text.split(",") if one] for text in (sets, variants))
    main(tables, chosen, changed, most_rows, seed, out)


def compare_commits(
    before: Annotated[
        Path, typer.Argument(metavar="CHECKOUT", help="A checkout of another commit.")
    ],
    tables: Annotated[
        Path | None,
        typer.Argument(metavar="FOLDER", help="CSV files.", show_default="NKCME_TABLES"),
    ] = None,
    sets: Annotated[
        str, typer.Option(metavar="NAMES", help="Only these tables.", show_default="all")
    ] = "",
    folds: Annotated[int, typer.Option(metavar="N", min=1, help="Only the first N folds.")] = 10,
    seeds: Annotated[
        str, typer.Option(metavar="NUMBERS", help="The random states, comma-separated.")
    ] = "0",
    out: Out = _OUT,
) -> None:
    """Compare the default with another commit's.

    Both are fitted to the same folds with the same random states, in turn, each fit in a new
    process. Prints the mean change of CRPS, RMSE and time with its standard error. Adds rows to
    commits-DEVICE.jsonl; finished ones are not run again.
    """
    from benchmarks.checks.commits import main

    if not all(seed.isdecimal() for seed in seeds.split(",")):
        raise NkcmeError(f"--seeds must be whole numbers, as in 0,1,2; got {seeds!r}")
    numbers = [int(seed) for seed in seeds.split(",")]
    main(before, tables, [one for one in sets.split(",") if one], folds, numbers, out)


def risk(out: Out = _OUT, images: Images = _IMAGES) -> None:
    """Compare return distributions with Q-values under risk.

    Trains agents where a risky path has the higher mean return. Writes rl-risk.json and draws
    risky-path.png.
    """
    from benchmarks.illustrations.risky_path import main

    main(out, images)


def figures(images: Images = _IMAGES) -> None:
    """Draw the figures of the README and of docs/idea.md.

    Trains small models. Draws readme.png and idea.png.
    """
    from benchmarks.illustrations.overview import main

    main(images)


def pictures(images: Images = _IMAGES) -> None:
    """Take pictures of the explorer and of a report.

    In a headless Chromium, which must be installed. Writes explorer.png, explorer-narrow.png,
    report.png and report-narrow.png.
    """
    from benchmarks.illustrations.explorer import main

    main(images)
