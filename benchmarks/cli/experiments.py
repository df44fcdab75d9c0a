"""The commands that run the paper's experiments and write the page of results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from nkcme.cli.running import FAILED, print_note

RowsPath = Annotated[
    Path,
    typer.Option("--rows", metavar="DIRECTORY", help="The directory of the result rows."),
]
Methods = Annotated[
    str,
    typer.Option(
        "--methods",
        metavar="NAMES",
        help="Only these methods, comma-separated.",
        show_default="all",
    ),
]
Sets = Annotated[
    str,
    typer.Option(
        "--sets", metavar="NAMES", help="Only these data sets, comma-separated.", show_default="all"
    ),
]
Cluster = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        metavar="ADDRESS",
        help="A Ray cluster on which every run is a task, as in ray://head:10001 or auto.",
    ),
]
_ROWS = Path("results/bench")


def add_to(app: typer.Typer) -> None:
    """Add the commands of this module to the command line."""
    for command, example in (
        (toy, "toy --quick"),
        (uci, "uci --sets boston,energy --methods nkcme,mdn"),
        (tables, "tables data/houses.csv --target price --peers"),
        (simulations, "simulations --designs counts,gap --runs 1"),
        (outputs, "outputs --sets ring --seeds 2"),
        (scaling, "scaling --sets 1000,10000"),
        (rl, "rl --envs CartPole-v1 --agents fuse,dqn"),
        (page, "page --out docs/benchmarks.md"),
    ):
        app.command(epilog=f"Example: python -m benchmarks {example}")(command)


def toy(
    methods: Methods = "",
    sets: Sets = "",
    seeds: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Only the first N seeds.", show_default="10, or 2"),
    ] = None,
    rows: RowsPath = _ROWS,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick", help="A shortened version: at most 4,000 training steps, two seeds."
        ),
    ] = False,
    cluster: Cluster = None,
) -> None:
    """Score every method on the paper's toy data.

    Finished runs are not run again, so a stopped benchmark continues where it was stopped. A run
    that fails is recorded, and the exit status is then 1.
    """
    from benchmarks.experiments import specs

    _run(specs.toy_cells(quick=quick), rows, methods, sets, seeds, cluster)


def uci(
    methods: Methods = "",
    sets: Sets = "",
    folds: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="Only the first N folds.", show_default="all published"
        ),
    ] = None,
    peers: Annotated[
        bool,
        typer.Option(
            "--peers",
            help="Also run NGBoost, quantile-forest and Treeffuser, each installed into a separate "
            "environment.",
        ),
    ] = False,
    rows: RowsPath = _ROWS,
    cluster: Cluster = None,
) -> None:
    """Score every method on the UCI sets' published folds.

    Year is run only when it is named. The data come from where `nkcme data` finds them. A stopped
    benchmark continues where it was stopped, as with toy.
    """
    from benchmarks.experiments import specs

    cells = [*specs.uci_cells(), *(specs.peer_cells() if peers else [])]
    _run(cells, rows, methods, sets, folds, cluster)


def tables(
    place: Annotated[
        Path | None,
        typer.Argument(
            metavar="[PATH]",
            help="A CSV file, or a folder of them.",
            show_default="the folder that NKCME_TABLES names",
        ),
    ] = None,
    methods: Annotated[
        str,
        typer.Option(
            metavar="NAMES",
            help="Only these methods, comma-separated.",
            show_default="nkcme,nkcme-quick, and all peers with --peers",
        ),
    ] = "",
    sets: Annotated[
        str,
        typer.Option(
            "--sets",
            "--tables",
            metavar="NAMES",
            help="Only these tables, comma-separated.",
            show_default="all",
        ),
    ] = "",
    target: Annotated[
        str,
        typer.Option(
            metavar="COLUMN",
            help="The column to predict.",
            show_default="as in tables.json beside the file",
        ),
    ] = "",
    folds: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Only the first N folds.", show_default="all"),
    ] = None,
    split: Annotated[
        int,
        typer.Option(
            metavar="K", min=2, help="Shuffle the rows of a table without a fold column into K."
        ),
    ] = 10,
    peers: Annotated[
        bool,
        typer.Option(
            "--peers",
            help="Also run NGBoost, quantile-forest, Treeffuser, CatBoost and LightGBM, each "
            "installed into a separate environment.",
        ),
    ] = False,
    rows: RowsPath = _ROWS,
    cluster: Cluster = None,
) -> None:
    """Score our methods and peers on CSV files.

    The column "fold" of a table numbers the folds; a table without it is shuffled with a fixed
    seed. A stopped benchmark continues where it was stopped, as with toy.
    """
    from benchmarks.experiments import table_specs
    from benchmarks.experiments.methods import PEERS
    from benchmarks.experiments.table_files import find_tables

    files = find_tables(place, names=_names(sets), target=target or None)
    cells = table_specs.table_cells(files, n_shuffled=split, peers=peers)
    usual = [*table_specs.USUAL_METHODS, *(PEERS if peers else ())]
    names = ",".join(file.name for file in files)
    _run(cells, rows, methods or ",".join(usual), names, folds, cluster)


def simulations(
    designs: Annotated[
        str,
        typer.Option(
            "--designs",
            metavar="NAMES",
            help="Only these designs or families (support, shift, branches), comma-separated.",
            show_default="all",
        ),
    ] = "",
    methods: Annotated[
        str,
        typer.Option(
            metavar="NAMES",
            help="Only these methods, comma-separated.",
            show_default="nkcme,nkcme-quick",
        ),
    ] = "",
    runs: Annotated[
        int | None,
        typer.Option(
            "--runs",
            "--seeds",
            metavar="N",
            min=1,
            help="Only the first N seeds.",
            show_default="5",
        ),
    ] = None,
    rows: RowsPath = _ROWS,
    cluster: Cluster = None,
) -> None:
    """Score predictions on simulated tables with known truth.

    The designs have a bounded or discrete y (support), test rows outside the training range
    (shift), and sharp crossing branches (branches). A stopped benchmark continues where it was
    stopped, as with toy.
    """
    from benchmarks.experiments import simulation_specs

    chosen = methods or ",".join(simulation_specs.USUAL_METHODS)
    names = ",".join(simulation_specs.named_designs(_names(designs)))
    _run(simulation_specs.simulation_cells(), rows, chosen, names, runs, cluster)


def outputs(
    methods: Methods = "",
    sets: Sets = "",
    seeds: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Only the first N seeds.", show_default="5"),
    ] = None,
    rows: RowsPath = _ROWS,
    cluster: Cluster = None,
) -> None:
    """Score joint predictions of two dependent outputs.

    The true dependence is known, and a spline flow is scored beside our recipes.

    A stopped benchmark continues where it was stopped, as with toy.
    """
    from benchmarks.experiments import specs

    _run(specs.outputs_cells(), rows, methods, sets, seeds, cluster)


def scaling(methods: Methods = "", sets: Sets = "", rows: RowsPath = _ROWS) -> None:
    """Time fits and predictions on tables of growing length.

    The data sets are numbers of rows, and "generated": the paper's recipe for its largest table,
    Year, on a generated table of that size. A stopped benchmark continues where it was stopped, as
    with toy.
    """
    from benchmarks.experiments import specs

    _run([*specs.scaling_cells(), *specs.year_cells()], rows, methods, sets)


def rl(
    preset: Annotated[
        str, typer.Option(metavar="NAME", help="The paper's recipes (paper) or ours (tuned).")
    ] = "paper",
    envs: Annotated[
        str,
        typer.Option(
            metavar="NAMES",
            help="Only these environments, comma-separated.",
            show_default="the paper's three",
        ),
    ] = "",
    agents: Annotated[
        str,
        typer.Option(
            metavar="NAMES",
            help="Only these agents, comma-separated.",
            show_default="all of the preset",
        ),
    ] = "",
    seeds: Annotated[int, typer.Option(metavar="N", min=1, help="The seeds 0 to N - 1.")] = 10,
    steps: Annotated[
        int, typer.Option(metavar="N", min=1, help="Training steps of each agent.")
    ] = 500_000,
    rows: RowsPath = _ROWS,
    cluster: Cluster = None,
) -> None:
    """Train the paper's agents in its environments.

    All seeds of an agent train as one program. A stopped benchmark continues where it was stopped,
    as with toy, and with a larger --seeds only the additional seeds are trained.
    """
    from benchmarks.experiments.rl_specs import rl_cells

    cells = rl_cells(preset, envs=_names(envs), agents=_names(agents), n_seeds=seeds, n_steps=steps)
    _run(cells, rows, cluster=cluster)


def page(
    rows: RowsPath = _ROWS,
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="The page; its figures go to images/ beside it.")
    ] = Path("docs/benchmarks.md"),
) -> None:
    """Write the page of results from the rows; runs nothing.

    benchmark-causes.json beside the page has the causes of scores that are worse than the paper's.
    """
    from benchmarks.experiments.rows import Rows
    from benchmarks.pages.document import write_page

    write_page(Rows(rows, print_note), out)
    print(f"Wrote {out}")


def _names(text: str) -> list[str]:
    """The names of a comma-separated list."""
    return [name for name in text.split(",") if name]


def _run(
    cells: list[Any],
    rows: Path,
    methods: str = "",
    sets: str = "",
    n_runs: int | None = None,
    cluster: str | None = None,
) -> None:
    """Run the chosen cells and print their tables; exits with 1 where a run failed."""
    from benchmarks.experiments.cell import choose
    from benchmarks.experiments.rows import Rows
    from benchmarks.experiments.run import run_cells, run_cells_on_cluster
    from benchmarks.pages.page import result_text

    chosen = choose(cells, methods=_names(methods), sets=_names(sets), n_runs=n_runs)
    store = Rows(rows, print_note)
    if cluster is None:
        tally = run_cells(chosen, store, print_note)
    else:
        tally = run_cells_on_cluster(chosen, store, print_note, cluster)
    print(result_text(chosen, store))
    if tally.already_there:
        print_note(
            f"{tally.already_there} of {tally.cells} cells were already finished and not run again"
        )
    if tally.failed:
        print_note(
            f"{tally.failed} of {tally.run} runs failed; their rows in {rows} have the errors. "
            "Run the command again to retry them"
        )
        raise typer.Exit(FAILED)
