"""The page's section on the agents: scores with intervals, and which differences are real."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from benchmarks.experiments import rl_specs
from benchmarks.experiments.rl_specs import BARS, LABELS, MANY_SEEDS, N_SEEDS, TRIALS, rl_cells
from benchmarks.experiments.rows import Rows
from benchmarks.pages import statistics
from benchmarks.pages.statistics import Estimate
from benchmarks.pages.summary import Summary, summarise
from benchmarks.pages.tables import rows_or_none, shown, unfinished
from nkcme.rl.presets import PRESETS

OURS = "fuse"


def summaries(rows: Rows) -> list[Summary]:
    """Of both recipes, with all seeds that are asked for at most."""
    return summarise([c for p in PRESETS for c in rl_cells(p, n_seeds=MANY_SEEDS)], rows)


def section(everything: Sequence[Summary], pictures: dict[str, str]) -> list[str]:
    """The parts of the section, from what `summaries` gave."""
    paper, tuned = ([s for s in everything if _recipe(s) == p] for p in PRESETS)
    ten = [_first(s, N_SEEDS) for s in paper]
    parts = [
        "## Reinforcement learning",
        _HEAD,
        f"### The paper's recipe, {N_SEEDS} seeds",
        scores_table(ten),
        *shown(pictures, "rl-agents"),
        *shown(pictures, "rl-kernels"),
        _FUSED,
        differences_table(ten),
        verdict(ten),
        f"### The paper's recipe, {MANY_SEEDS} seeds",
    ]
    if any(len(s.rows) > N_SEEDS for s in paper):
        parts += [scores_table(paper), differences_table(paper), verdict(paper)]
    else:
        parts.append(f"No agent was trained with more than {N_SEEDS} seeds yet.")
    return [
        *parts,
        f"### Our recipe, {MANY_SEEDS} seeds",
        _TUNED,
        scores_table(tuned),
        *shown(pictures, "rl-tuned"),
        "### Missing agents",
        _missing(everything),
        "### Seconds of the agents",
        _SECONDS,
        seconds_table(everything),
    ]


def _recipe(summary: Summary) -> str:
    return str(summary.cell.protocol["preset"])


def _first(summary: Summary, n: int) -> Summary:
    """With no more than the first so many seeds."""
    rows, failed = (
        [row for row in part if row["run"] < n] for part in (summary.rows, summary.failed)
    )
    return Summary(replace(summary.cell, n_runs=n), rows, failed)


def values(summary: Summary, metric: str) -> np.ndarray:
    return np.array([row["metrics"][metric] for row in summary.rows])


# --- scores -----------------------------------------------------------------------------------


def scores_table(cells: Sequence[Summary]) -> str:
    lines = []
    for env, agents in _by_env(cells).items():
        for place, (agent, summary) in enumerate(agents.items()):
            name = env if place == 0 else ""
            lines.append([name, LABELS[agent], *_scores(summary), *_judged(summary)])
    header = ["", "agent", "last fifth", "IQM", "area", "IQM", "seeds", "bar", "", "trial"]
    return rows_or_none(header, lines)


def _scores(summary: Summary) -> list[str]:
    n, of = len(summary.rows), summary.cell.n_runs
    seeds = str(n) if summary.complete else f"{n} of {of}"
    if not n:
        return ["failed" if summary.failed else "missing", "", "", "", seeds]
    texts = []
    for metric in rl_specs.METRICS:
        found = values(summary, metric)
        iqm = statistics.interquartile_mean(found)
        texts += [_with_interval(statistics.estimate(found)), _number(iqm)]
    return [*texts, seeds]


def _judged(summary: Summary) -> list[str]:
    """The bar, whether it is met, and what the trials gave; nothing where the steps are others."""
    cell = summary.cell
    if cell.parameters["settings"]["n_steps"] != rl_specs.N_STEPS:
        return ["", "", ""]
    bar = BARS[_recipe(summary)][cell.dataset] if cell.estimator == OURS else None
    trial = TRIALS[cell.dataset].get(cell.estimator) if _recipe(summary) == "paper" else None
    told = "" if trial is None else "{:g} ({:g})".format(*trial).replace("-", "−")
    if bar is None:
        return ["", "", told]
    if not summary.rows:
        return [_number(bar), "missing", told]
    over = float(np.mean(values(summary, "last_fifth"))) - bar
    judged = ("met" if over >= 0 else "**missed**") + ("" if summary.complete else " so far")
    return [_number(bar), f"{judged}, {_signed(over)}", told]


# --- differences ------------------------------------------------------------------------------


def differences_table(cells: Sequence[Summary]) -> str:
    """The fused agent less each other: mean differences with their intervals."""
    lines = []
    for env, agents in _by_env(cells).items():
        ours = agents[OURS]
        name = env
        for agent, other in agents.items():
            if agent == OURS or not ours.rows or not other.rows:
                continue
            texts = []
            for metric in reversed(rl_specs.METRICS):
                a, b = values(ours, metric), values(other, metric)
                overlap = statistics.estimate(a).overlaps(statistics.estimate(b))
                told = statistics.difference(a, b)
                texts += [
                    _with_interval(told, signed=True),
                    _who(told),
                    "overlap" if overlap else "apart",
                ]
            lines.append([name, LABELS[agent], *texts])
            name = ""
    header = ["", "fused less", "area", "", "intervals", "last fifth", "", "intervals"]
    return rows_or_none(header, lines)


def _who(told: Estimate) -> str:
    if told.low > 0:
        return "fused is better"
    return "**fused is worse**" if told.high < 0 else "not told apart"


def verdict(cells: Sequence[Summary]) -> str:
    """In which environments the fused agent's area is above those of all the paper's rivals."""
    told, count = [], 0
    for env, agents in _by_env(cells).items():
        rivals = {a: s for a, s in agents.items() if a not in (OURS, "single")}
        if not agents[OURS].rows or not all(s.rows for s in rivals.values()):
            told.append(f"- {env}: not all of its agents are there.")
            continue
        ours = statistics.estimate(values(agents[OURS], "area"))
        others = {a: statistics.estimate(values(s, "area")) for a, s in rivals.items()}
        below = [LABELS[a] for a, e in others.items() if ours.low > e.high]
        rest = [f"{LABELS[a]} ({_place(ours, e)})" for a, e in others.items() if ours.low <= e.high]
        count += not rest
        text = f"above {_and(below)}" if below else "above none"
        told.append(f"- {env}: {text}" + (f", but not {_and(rest)}." if rest else "."))
    head = (
        "By area under the curve, with intervals apart, the fused agent is above C51, MMDQN and "
        f"DQN all together in {count} of {len(told)} environments (the bar is 2):"
    )
    return "\n".join([head, "", *told])


def _place(ours: Estimate, other: Estimate) -> str:
    if ours.high < other.low:
        return "which is above it"
    return "higher mean, overlap" if ours.mean > other.mean else "lower mean, overlap"


def _and(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


# --- what is missing, and seconds -------------------------------------------------------------


def _missing(cells: Sequence[Summary]) -> str:
    name = lambda s: f"{s.cell.dataset}, {_recipe(s)}, {LABELS[s.cell.estimator]}"  # noqa: E731
    lines = [unfinished(s, name(s), "seeds") for s in cells if not s.complete]
    return "\n".join(lines) or "None."


def seconds_table(cells: Sequence[Summary]) -> str:
    lines, total = [], 0.0
    for summary in cells:
        seconds = summary.fit_seconds()
        if seconds is None:
            continue
        total += seconds
        steps = sum(row["steps"] for row in summary.rows)
        together = sorted({row["seconds"]["fitted_together"] for row in summary.rows})
        lines.append(
            [
                f"{summary.cell.dataset}, {_recipe(summary)}, {LABELS[summary.cell.estimator]}",
                str(len(summary.rows)),
                " and ".join(map(str, together)),
                f"{seconds:.1f}",
                f"{steps / seconds:,.0f}",
            ]
        )
    if lines:
        lines.append(["all", "", "", f"{total:.1f}", ""])
    return rows_or_none(["", "agents", "at once", "seconds", "steps a second"], lines)


# --- text -------------------------------------------------------------------------------------


def _by_env(cells: Sequence[Summary]) -> dict[str, dict[str, Summary]]:
    found: dict[str, dict[str, Summary]] = {}
    for summary in cells:
        found.setdefault(summary.cell.dataset, {})[summary.cell.estimator] = summary
    return found


def _number(value: float) -> str:
    return f"{value:.1f}".replace("-", "−")


def _signed(value: float) -> str:
    return f"{value:+.1f}".replace("-", "−")


def _with_interval(told: Estimate, signed: bool = False) -> str:
    mean, low, high = (float(v) for v in told)
    shown = _signed if signed else _number
    return f"{shown(mean)} [{shown(low)}, {shown(high)}]"


_HEAD = """\
The paper's two figures, run by `python -m benchmarks rl`: 500,000 steps, one episode every 100.
*Last fifth* is the mean return over the last 100,000 steps and *area* that over all of them; higher
is better. Both are means over seeds with 95 % percentile bootstrap intervals, *IQM* is the mean of
the middle half of the seeds. The paper has no numbers here, only figures: the *bar* is what the
fused agent was asked to reach, *trial* what a throw-away program reached before this library
was written (last fifth, area in brackets)."""

_FUSED = """\
The fused agent less each other one, with a bootstrap interval of the difference itself: it is real
where that leaves out zero. Whether the intervals of the two means overlap asks for more, and
is said beside it."""

_TUNED = """\
The recipe `--preset tuned`, chosen by runs in these environments: one for all, but that on CartPole
a time limit is no end ([findings](findings.md#agents))."""

_SECONDS = """\
All seeds of an agent train as one program; compilation and evaluation are included."""
