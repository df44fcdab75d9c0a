"""The command line: what can be typed, and what is said when something goes wrong.

Results go to standard output, progress and notes to standard error. Whatever is wrong with the
input is one line and exit status 2; Ctrl-C is one line and 130. What the commands do is in
`nkcme.fitting`, `nkcme.commands`, `nkcme.demo`, `nkcme.datasets`, `nkcme.rl_commands` and
`nkcme.bench`, imported when needed: help must not wait for JAX.
"""

from __future__ import annotations

import io
import os
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from nkcme._version import __version__
from nkcme.errors import NkcmeError

FAILED = 1
BAD_INPUT = 2
STOPPED = 130  # 128 + SIGINT, as shells have it

#: The base of typer's usage errors, which has no public name that all releases share.
_UsageError: type[Any] = typer.BadParameter.__mro__[1]

app = typer.Typer(
    help="Whole conditional distributions from a table: intervals, quantiles, densities, draws.",
    epilog="Try it: nkcme demo",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
data = typer.Typer(
    help="The UCI tables of the paper, with their published splits.",
    epilog="Example: nkcme data fetch boston",
)
app.add_typer(data, name="data")

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
Seed = Annotated[
    int, typer.Option(metavar="N", min=0, max=2**32 - 1, help="The same seed, the same result.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit with its status."""
    if isinstance(sys.stdout, io.TextIOWrapper):  # a name it cannot spell is no reason to fail
        sys.stdout.reconfigure(errors="backslashreplace")
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


def run(arguments: list[str]) -> int:
    """The exit status of a command line; never raises on bad input, Ctrl-C or a closed pipe."""
    try:
        status = app(
            arguments or ["--help"], prog_name="nkcme", standalone_mode=False, obj=arguments
        )
        sys.stdout.flush()
    except _UsageError as error:
        hint = "" if error.ctx is None else f" See {error.ctx.command_path} --help."
        return _say(error.format_message() + hint, BAD_INPUT)
    except NkcmeError as error:
        return _say(str(error), BAD_INPUT)
    except BrokenPipeError:  # the reader had enough, as `| head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        where = "" if error.filename is None else f"{error.filename}: "
        return _say(f"{where}{error.strerror or error}", BAD_INPUT)
    except MemoryError:
        return _say("not enough memory; ask for fewer rows or samples at once", BAD_INPUT)
    except (typer.Abort, KeyboardInterrupt):
        status = STOPPED
    return _say("stopped by Ctrl-C", STOPPED) if status == STOPPED else status or 0


def _say(message: str, status: int = 0) -> int:
    """Print one line to standard error."""
    print(f"nkcme: {' '.join(message.split())}", file=sys.stderr)
    return status


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
    from nkcme import display
    from nkcme.fitting import FitStopped, fit_table

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
        _say(f"{stop}; to go on: {again}")
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
    levels = _numbers(quantiles, "--quantiles", "0.05,0.5,0.95") if quantiles else []
    from nkcme.commands import predict_table
    from nkcme.tables import write_table

    predicted = predict_table(
        model,
        table,
        quantiles=levels,
        interval=interval,
        samples=samples,
        seed=seed,
        note=_say,
    )
    write_table(predicted, out)


def _numbers(text: str, option: str, example: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise NkcmeError(
            f"{option} must be numbers with commas between, as {example}; got {text!r}"
        ) from None


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
    from nkcme import display
    from nkcme.commands import evaluate_table

    result = evaluate_table(model, table, target, note=_say)
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
    from nkcme.commands import report_table

    report_table(model, table, target, out, note=_say)
    print(f"Wrote {out}")


@app.command(epilog="Example: nkcme info price-model")
def info(model: ModelPath, json: AsJson = False) -> None:
    """Say what a model is.

    Its columns, target and size, and the parameters it was fitted with.
    """
    from nkcme import display
    from nkcme.commands import describe_model

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
    from nkcme import display
    from nkcme.demo import TARGET, fit_diabetes, fit_ring, write_diabetes

    paths = write_diabetes(out, seed)
    _say("1/2 the ring: y is on a noisy circle, so it has two likely values or a whole range ...")
    ring = fit_ring(seed)
    if not json:
        display.show_ring(ring)
    _say("2/2 diabetes: fit, evaluate, predict and report, as for a CSV file of yours ...")
    diabetes = fit_diabetes(paths, seed, _say)
    if json:
        display.show_json({"ring": ring, "diabetes": diabetes})
        return
    display.show_metrics(diabetes["metrics"], "diabetes patients the model has not seen")
    display.show_intervals(diabetes["intervals"], TARGET)
    display.show_next(diabetes["paths"], TARGET)


bench = typer.Typer(help="Run the paper's experiments, and compare with its tables.")
app.add_typer(bench, name="bench")

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


@bench.command("toy", epilog="Example: nkcme bench toy --quick")
def bench_toy(
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
    from nkcme.bench import specs

    _bench(specs.choose(specs.toy_cells(quick=quick), **_chosen(methods, sets, seeds)), rows)


@bench.command("uci", epilog="Example: nkcme bench uci --sets boston,energy --methods nkcme,mdn")
def bench_uci(
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
    from nkcme.bench import specs

    cells = [*specs.uci_cells(), *(specs.peer_cells() if peers else [])]
    _bench(specs.choose(cells, **_chosen(methods, sets, folds)), rows)


@bench.command("outputs", epilog="Example: nkcme bench outputs --sets ring --seeds 2")
def bench_outputs(
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
    from nkcme.bench import specs

    _bench(specs.choose(specs.outputs_cells(), **_chosen(methods, sets, seeds)), rows)


@bench.command("scaling", epilog="Example: nkcme bench scaling --sets 1000,10000")
def bench_scaling(methods: Methods = "", sets: Sets = "", rows: RowsPath = _ROWS) -> None:
    """Time fits and predictions on tables of growing length.

    The sets are numbers of rows, and "generated": the paper's recipe for its largest table, Year,
    on a generated one of that size. Goes on where it was stopped, as toy does.
    """
    from nkcme.bench import specs

    cells = [*specs.scaling_cells(), *specs.year_cells()]
    _bench(specs.choose(cells, **_chosen(methods, sets)), rows)


@bench.command("rl", epilog="Example: nkcme bench rl --envs CartPole-v1 --agents fuse,dqn")
def bench_rl(
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
    from nkcme.bench.rl_specs import rl_cells

    cells = rl_cells(preset, envs=_names(envs), agents=_names(agents), n_seeds=seeds, n_steps=steps)
    _bench(cells, rows)


@bench.command("table", epilog="Example: nkcme bench table --out docs/benchmarks.md")
def bench_table(
    rows: RowsPath = _ROWS,
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="The page; pictures go to images/ beside it.")
    ] = Path("docs/benchmarks.md"),
) -> None:
    """Write the page of results from what was run.

    Nothing is run. What explains a cell that is worse than the paper's is read from
    benchmark-causes.json beside the page.
    """
    from nkcme.bench.figures import draw_all
    from nkcme.bench.page import write_page
    from nkcme.bench.rows import Rows

    write_page(Rows(rows, _say), out, draw_all)
    print(f"Wrote {out}")


def _chosen(methods: str, sets: str, n_runs: int | None = None) -> dict[str, Any]:
    return {"methods": _names(methods), "sets": _names(sets), "n_runs": n_runs}


def _names(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


def _bench(cells: list[Any], rows: Path) -> None:
    from nkcme.bench.page import result_text
    from nkcme.bench.rows import Rows
    from nkcme.bench.run import run_cells

    store = Rows(rows, _say)
    tally = run_cells(cells, store, _say)
    print(result_text(cells, store))
    if tally.already_there:
        _say(f"{tally.already_there} of {tally.cells} cells were finished before and not run again")
    if tally.failed:
        _say(f"{tally.failed} of {tally.run} runs failed; {rows} says how. Run again to retry them")
        raise typer.Exit(FAILED)


rl = typer.Typer(help="Agents that foresee the whole distribution of their return.")
app.add_typer(rl, name="rl")

AgentsPath = Annotated[
    Path, typer.Argument(metavar="DIR", help="A directory that `nkcme rl train` wrote.")
]
Backend = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="gymnax or gymnasium.", show_default="gymnax where it has ENV"
    ),
]
Risk = Annotated[
    float | None,
    typer.Option(
        metavar="SHARE",
        help="Choose actions by the mean of this worst share of returns, such as 0.1.",
        show_default="by the mean of all",
    ),
]


@rl.command("train", epilog="Example: nkcme rl train CartPole-v1 --out cartpole")
def rl_train(
    context: typer.Context,
    env: Annotated[
        str,
        typer.Argument(
            metavar="ENV", help="An environment of gymnax or Gymnasium, such as CartPole-v1."
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="The directory to save the agents in; agents there are replaced.",
            show_default="ENV-AGENT",
        ),
    ] = None,
    agent: Annotated[
        str, typer.Option(metavar="NAME", help="fuse, single, c51, mmdqn or dqn.")
    ] = "fuse",
    steps: Annotated[int, typer.Option(metavar="N", min=1, help="Steps of each agent.")] = 50_000,
    seeds: Annotated[
        int, typer.Option(metavar="N", min=1, help="How many agents, side by side.")
    ] = 1,
    seed: Annotated[
        int, typer.Option(metavar="N", min=0, max=2**31, help="The first agent's seed.")
    ] = 0,
    preset: Annotated[
        str, typer.Option(metavar="NAME", help="Our recipe or the paper's: tuned or paper.")
    ] = "tuned",
    support: Annotated[
        str,
        typer.Option(
            metavar="LOW,HIGH",
            help="The lowest and highest return, as --support=-10,10.",
            show_default="of the preset",
        ),
    ] = "",
    backend: Backend = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Where to keep the state.", show_default="DIR.checkpoint"
        ),
    ] = None,
    json: AsJson = False,
) -> None:
    """Train agents in an environment.

    Leaves in DIR the agents, a picture of their curves and a report. The state of training is kept
    in DIR.checkpoint until then, so a training that was stopped in any way goes on with the same
    command and gives the agents it would have given; one through Gymnasium cannot, and keeps what
    was learned.
    """
    limits = _numbers(support, "--support", "-10,10") if support else None
    from nkcme import display
    from nkcme.fitting import FitStopped
    from nkcme.rl_commands import train_agents

    try:
        result = train_agents(
            env,
            out or Path(f"{env}-{agent}".replace("/", "-")),
            agent=agent,
            preset=preset,
            n_steps=steps,
            seeds=range(seed, seed + seeds),
            backend=backend,
            support=limits,
            checkpoint=checkpoint,
            note=_say,
        )
    except FitStopped as stop:
        _say(f"{stop}; to go on: {shlex.join(['nkcme', *context.obj])}")
        raise SystemExit(STOPPED) from stop
    display.show_json(result) if json else display.show_training(result)
    if result["interrupted"]:
        _say(f"stopped by Ctrl-C at step {result['steps']}; what was learned is saved")
        raise SystemExit(STOPPED)


@rl.command("eval", epilog="Example: nkcme rl eval cartpole --episodes 100 --backend gymnasium")
def rl_eval(
    agents: AgentsPath,
    episodes: Annotated[
        int, typer.Option(metavar="N", min=1, help="Episodes of each agent.")
    ] = 100,
    backend: Backend = None,
    risk: Risk = None,
    seed: Seed = 0,
    json: AsJson = False,
) -> None:
    """Let trained agents play, and score them.

    Every action is the best the agent knows, and all agents play from the same starts.
    """
    from nkcme import display
    from nkcme.rl_commands import evaluate_agents

    result = evaluate_agents(agents, n_episodes=episodes, backend=backend, risk=risk, seed=seed)
    display.show_json(result) if json else display.show_episodes(result)


@rl.command("watch", epilog="Example: nkcme rl watch cartpole --out episode.gif")
def rl_watch(
    agents: AgentsPath,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="A .gif or, where ffmpeg is installed, .mp4 file.",
            show_default="DIR/episode.gif",
        ),
    ] = None,
    agent_number: Annotated[
        int | None,
        typer.Option(metavar="K", min=0, help="Which agent, from 0.", show_default="the best"),
    ] = None,
    risk: Risk = None,
    seed: Seed = 0,
) -> None:
    """Film an episode with the returns the agent foresees.

    Beside each picture is the distribution of the return of every action, the chosen one in blue.
    """
    from nkcme.rl_commands import watch_agent

    made = watch_agent(agents, out, number=agent_number, seed=seed, risk=risk)
    print(
        f"Wrote {made['film']}: {made['steps']} steps of agent {made['agent']}, "
        f"return {made['return']:.4g}"
    )


@rl.command("report", epilog="Example: nkcme rl report cartpole -o report.html")
def rl_report(
    agents: AgentsPath,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="The HTML file to write.")
    ],
) -> None:
    """Write a page on how agents learned and play.

    Curves, returns, settings, and what the best agent foresees beside what came. The HTML page
    needs no network and nothing beside it.
    """
    from nkcme.rl_commands import report_agents

    report_agents(agents, out, _say)
    print(f"Wrote {out}")


@data.command("list", epilog="Example: nkcme data list")
def list_data(json: AsJson = False) -> None:
    """Say which data sets there are, and where.

    Each is in the directory that the environment's NKCME_DATA names, in the user's cache, or not
    here.
    """
    from nkcme import display
    from nkcme.datasets.uci import describe_uci

    described = describe_uci()
    display.show_json(described) if json else display.show_data_sets(described)


@data.command("fetch", epilog="Example: nkcme data fetch boston concrete")
def fetch_data(
    context: typer.Context,
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME", help="As `nkcme data list` has them.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All data sets there are.")] = False,
    timeout: Annotated[
        float,
        typer.Option(metavar="SECONDS", min=0.01, help="How long to wait for a silent server."),
    ] = 30.0,
) -> None:
    """Download data sets that are not here.

    Files are verified, and one that is not as published is refused. A download that broke off goes
    on with the same command. Prints the directory of each set.
    """
    if everything == bool(names):
        raise NkcmeError("give the names of data sets, or --all; nkcme data list shows them")
    from nkcme.datasets.uci import UCI, fetch_uci, known_set

    wanted = [known_set(name).name for name in names or UCI]
    try:
        for name in wanted:
            print(fetch_uci(name, timeout=timeout))
    except KeyboardInterrupt as stop:
        again = shlex.join(["nkcme", *context.obj])
        _say(f"stopped by Ctrl-C; what came is kept; to go on: {again}")
        raise SystemExit(STOPPED) from stop


@data.command("path", epilog="Example: nkcme data path boston")
def data_path(
    name: Annotated[str, typer.Argument(metavar="NAME", help="As `nkcme data list` has them.")],
) -> None:
    """Print the directory that holds a data set."""
    from nkcme.datasets.uci import find_uci

    directory = find_uci(name)
    if directory is None:
        raise NkcmeError(f"{name} is not here; run nkcme data fetch {name}")
    print(directory)
