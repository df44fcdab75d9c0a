"""``python -m benchmarks``: the paper's experiments, the peers, and the page of results.

Goes by the same rules as ``nkcme``: results on standard output, notes on standard error, one line
and exit status 2 for bad input.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from nkcme.cli.running import FAILED, run_app
from nkcme.cli.running import print_note as say

app = typer.Typer(
    help="Run the paper's experiments, and compare with its tables.",
    epilog="Try it: python -m benchmarks toy --quick",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

RowsPath = Annotated[
    Path, typer.Option("--rows", metavar="DIRECTORY", help="Where the results are, a line a run.")
]
Methods = Annotated[
    str,
    typer.Option(
        "--methods", metavar="NAMES", help="Only these, with commas between.", show_default="all"
    ),
]
Sets = Annotated[
    str,
    typer.Option(
        "--sets",
        metavar="NAMES",
        help="Only these data sets, with commas between.",
        show_default="all",
    ),
]
_ROWS = Path("results/bench")


@app.command(epilog="Example: python -m benchmarks toy --quick")
def toy(
    methods: Methods = "",
    sets: Sets = "",
    seeds: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Only the first N.", show_default="10, or 2"),
    ] = None,
    rows: RowsPath = _ROWS,
    quick: Annotated[
        bool,
        typer.Option("--quick", help="A miniature: at most 4,000 steps of training, two seeds."),
    ] = False,
) -> None:
    """Score every method on the paper's toy data.

    Runs that are finished are not run again, so a benchmark that was stopped goes on. A run that
    fails is recorded, and the exit status is then 1.
    """
    from benchmarks.experiments import specs

    _bench(specs.choose(specs.toy_cells(quick=quick), **_chosen(methods, sets, seeds)), rows)


@app.command(epilog="Example: python -m benchmarks uci --sets boston,energy --methods nkcme,mdn")
def uci(
    methods: Methods = "",
    sets: Sets = "",
    folds: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Only the first N.", show_default="all published"),
    ] = None,
    peers: Annotated[
        bool,
        typer.Option(
            "--peers",
            help="What people use instead too: NGBoost, quantile-forest and Treeffuser, which are "
            "installed into environments of their own.",
        ),
    ] = False,
    rows: RowsPath = _ROWS,
) -> None:
    """Score every method on the UCI data sets, over their published folds.

    All but year, which is run when it is named. The data come from where `nkcme data` finds them.
    Goes on where it was stopped, as toy does.
    """
    from benchmarks.experiments import specs

    cells = [*specs.uci_cells(), *(specs.peer_cells() if peers else [])]
    _bench(specs.choose(cells, **_chosen(methods, sets, folds)), rows)


@app.command(epilog="Example: python -m benchmarks outputs --sets ring --seeds 2")
def outputs(
    methods: Methods = "",
    sets: Sets = "",
    seeds: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Only the first N.", show_default="5"),
    ] = None,
    rows: RowsPath = _ROWS,
) -> None:
    """Score joint predictions of two outputs whose dependence is known, beside a spline flow's.

    Goes on where it was stopped, as toy does.
    """
    from benchmarks.experiments import specs

    _bench(specs.choose(specs.outputs_cells(), **_chosen(methods, sets, seeds)), rows)


@app.command(epilog="Example: python -m benchmarks scaling --sets 1000,10000")
def scaling(methods: Methods = "", sets: Sets = "", rows: RowsPath = _ROWS) -> None:
    """Time fits and predictions on tables of growing length.

    The sets are numbers of rows, and "generated": the paper's recipe for its largest table, Year,
    on a generated one of that size. Goes on where it was stopped, as toy does.
    """
    from benchmarks.experiments import specs

    cells = [*specs.scaling_cells(), *specs.year_cells()]
    _bench(specs.choose(cells, **_chosen(methods, sets)), rows)


@app.command(epilog="Example: python -m benchmarks rl --envs CartPole-v1 --agents fuse,dqn")
def rl(
    preset: Annotated[
        str, typer.Option(metavar="NAME", help="The paper's recipes, or ours: paper or tuned.")
    ] = "paper",
    envs: Annotated[
        str,
        typer.Option(
            metavar="NAMES",
            help="Only these environments, with commas between.",
            show_default="the paper's three",
        ),
    ] = "",
    agents: Annotated[
        str,
        typer.Option(
            metavar="NAMES",
            help="Only these agents, with commas between.",
            show_default="all of the preset",
        ),
    ] = "",
    seeds: Annotated[int, typer.Option(metavar="N", min=1, help="The seeds 0 to N - 1.")] = 10,
    steps: Annotated[int, typer.Option(metavar="N", min=1, help="Steps of each agent.")] = 500_000,
    rows: RowsPath = _ROWS,
) -> None:
    """Train the paper's agents in its environments.

    All seeds of an agent train as one program. Goes on where it was stopped, as toy does: asked for
    more seeds, only those that are not there yet are trained.
    """
    from benchmarks.experiments.rl_specs import rl_cells

    cells = rl_cells(preset, envs=_names(envs), agents=_names(agents), n_seeds=seeds, n_steps=steps)
    _bench(cells, rows)


@app.command(epilog="Example: python -m benchmarks page --out docs/benchmarks.md")
def page(
    rows: RowsPath = _ROWS,
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="The page; pictures go to images/ beside it.")
    ] = Path("docs/benchmarks.md"),
) -> None:
    """Write the page of results from what was run.

    Nothing is run. What explains a cell that is worse than the paper's is read from
    benchmark-causes.json beside the page.
    """
    from benchmarks.experiments.rows import Rows
    from benchmarks.pages.figures import draw_all
    from benchmarks.pages.page import write_page

    write_page(Rows(rows, say), out, draw_all)
    print(f"Wrote {out}")


def _chosen(methods: str, sets: str, n_runs: int | None = None) -> dict[str, Any]:
    return {"methods": _names(methods), "sets": _names(sets), "n_runs": n_runs}


def _names(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


def _bench(cells: list[Any], rows: Path) -> None:
    from benchmarks.experiments.rows import Rows
    from benchmarks.experiments.run import run_cells
    from benchmarks.pages.page import result_text

    store = Rows(rows, say)
    tally = run_cells(cells, store, say)
    print(result_text(cells, store))
    if tally.already_there:
        say(f"{tally.already_there} of {tally.cells} cells were finished before and not run again")
    if tally.failed:
        say(f"{tally.failed} of {tally.run} runs failed; {rows} says how. Run again to retry them")
        raise typer.Exit(FAILED)


def run(arguments: list[str]) -> int:
    """The exit status of a command line."""
    return run_app(app, "python -m benchmarks", arguments)
