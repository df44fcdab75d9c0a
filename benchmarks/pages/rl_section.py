"""The page's section on reinforcement learning: scores with intervals, and clear differences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from benchmarks.experiments import rl_specs
from benchmarks.experiments.rl_specs import (
    LABELS,
    MANY_SEEDS,
    N_SEEDS,
    PROTOTYPE,
    TARGETS,
    rl_cells,
)
from benchmarks.experiments.rows import Rows
from benchmarks.pages import bootstrap, text
from benchmarks.pages.bootstrap import Estimate
from benchmarks.pages.markdown import figures, signed, table_or_note, unfinished
from benchmarks.pages.summary import Summary, summarise
from nkcme.rl.presets import PRESETS

OURS = "fuse"


def summaries(rows: Rows) -> list[Summary]:
    """The cells of both recipes, with the larger number of seeds."""
    return summarise([c for p in PRESETS for c in rl_cells(p, n_seeds=MANY_SEEDS)], rows)


def section(everything: Sequence[Summary], pictures: dict[str, str]) -> list[str]:
    """The section, from the result of `summaries`."""
    paper, tuned = ([s for s in everything if _recipe(s) == p] for p in PRESETS)
    ten = [_first(s, N_SEEDS) for s in paper]
    parts = [
        "## Reinforcement learning",
        text.RL,
        f"### The paper's recipe, {N_SEEDS} seeds",
        scores_table(ten),
        *figures(pictures, "rl-agents"),
        *figures(pictures, "rl-kernels"),
        text.RL_DIFFERENCES,
        differences_table(ten),
        verdict(ten),
        f"### The paper's recipe, {MANY_SEEDS} seeds",
    ]
    if any(len(s.rows) > N_SEEDS for s in paper):
        parts += [scores_table(paper), differences_table(paper), verdict(paper)]
    else:
        parts.append(f"No agent has been trained with more than {N_SEEDS} seeds yet.")
    return [
        *parts,
        f"### Our recipe, {MANY_SEEDS} seeds",
        text.RL_TUNED,
        scores_table(tuned),
        *figures(pictures, "rl-tuned"),
        "### Missing agents",
        _missing(everything),
        "### Seconds of the agents",
        text.RL_SECONDS,
        seconds_table(everything),
    ]


def _recipe(summary: Summary) -> str:
    return str(summary.cell.protocol["preset"])


def _first(summary: Summary, n: int) -> Summary:
    """The summary of the first n seeds."""
    rows, failed = (
        [row for row in found if row["run"] < n] for found in (summary.rows, summary.failed)
    )
    return Summary(replace(summary.cell, n_runs=n), rows, failed)


def values(summary: Summary, metric: str) -> np.ndarray:
    """A metric of every finished seed."""
    return np.array([row["metrics"][metric] for row in summary.rows])


# --- scores -----------------------------------------------------------------------------------


def scores_table(cells: Sequence[Summary]) -> str:
    """The scores of every agent in every environment, with targets."""
    lines = []
    for env, agents in _by_env(cells).items():
        for place, (agent, summary) in enumerate(agents.items()):
            name = env if place == 0 else ""
            lines.append([name, LABELS[agent], *_scores(summary), *_target(summary)])
    header = [
        "", "agent", "last fifth", "IQM", "area", "IQM", "seeds",
        "target", "vs target", "prototype",
    ]  # fmt: skip
    return table_or_note(header, lines)


def _scores(summary: Summary) -> list[str]:
    n, of = len(summary.rows), summary.cell.n_runs
    seeds = str(n) if summary.complete else f"{n} of {of}"
    if not n:
        return ["failed" if summary.failed else "missing", "", "", "", seeds]
    texts = []
    for metric in rl_specs.METRICS:
        found = values(summary, metric)
        iqm = bootstrap.interquartile_mean(found)
        texts += [_with_interval(bootstrap.estimate(found)), _number(iqm)]
    return [*texts, seeds]


def _target(summary: Summary) -> list[str]:
    """Target, comparison with it and prototype; empty where the number of steps is another."""
    cell = summary.cell
    if cell.parameters["settings"]["n_steps"] != rl_specs.N_STEPS:
        return ["", "", ""]
    target = TARGETS[_recipe(summary)][cell.dataset] if cell.estimator == OURS else None
    found = PROTOTYPE[cell.dataset].get(cell.estimator) if _recipe(summary) == "paper" else None
    prototype = "" if found is None else "{:g} ({:g})".format(*found).replace("-", "−")
    if target is None:
        return ["", "", prototype]
    if not summary.rows:
        return [_number(target), "missing", prototype]
    over = float(np.mean(values(summary, "last_fifth"))) - target
    reached = ("met" if over >= 0 else "**missed**") + ("" if summary.complete else " so far")
    return [_number(target), f"{reached}, {signed(over)}", prototype]


# --- differences ------------------------------------------------------------------------------


def differences_table(cells: Sequence[Summary]) -> str:
    """The fused agent minus each other agent: mean differences with their intervals."""
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
                overlap = bootstrap.estimate(a).overlaps(bootstrap.estimate(b))
                difference = bootstrap.difference(a, b)
                texts += [
                    _with_interval(difference, with_sign=True),
                    _better_agent(difference),
                    "overlap" if overlap else "disjoint",
                ]
            lines.append([name, LABELS[agent], *texts])
            name = ""
    header = ["", "fused minus", "area", "", "intervals", "last fifth", "", "intervals"]
    return table_or_note(header, lines)


def _better_agent(difference: Estimate) -> str:
    if difference.low > 0:
        return "fused is better"
    return "**fused is worse**" if difference.high < 0 else "no clear difference"


def verdict(cells: Sequence[Summary]) -> str:
    """The environments where the fused agent's area is above those of all the paper's baselines."""
    lines, count = [], 0
    for env, agents in _by_env(cells).items():
        baselines = {a: s for a, s in agents.items() if a not in (OURS, "single")}
        if not agents[OURS].rows or not all(s.rows for s in baselines.values()):
            lines.append(f"- {env}: some agents are missing.")
            continue
        ours = bootstrap.estimate(values(agents[OURS], "area"))
        others = {a: bootstrap.estimate(values(s, "area")) for a, s in baselines.items()}
        below = [LABELS[a] for a, e in others.items() if ours.low > e.high]
        rest = [
            f"{LABELS[a]} ({_compared(ours, e)})" for a, e in others.items() if ours.low <= e.high
        ]
        count += not rest
        above = f"above {_joined(below)}" if below else "above none of them"
        lines.append(f"- {env}: {above}" + (f", but not {_joined(rest)}." if rest else "."))
    head = (
        "By area under the curve and with disjoint intervals, the fused agent is above all of C51, "
        f"MMDQN and DQN in {count} of {len(lines)} environments (the target is 2):"
    )
    return "\n".join([head, "", *lines])


def _compared(ours: Estimate, other: Estimate) -> str:
    """The place of the fused agent's area where it is not clearly above another."""
    if ours.high < other.low:
        return "which is above it"
    side = "higher" if ours.mean > other.mean else "lower"
    return f"{side} mean, overlapping intervals"


def _joined(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


# --- missing agents, and seconds --------------------------------------------------------------


def _missing(cells: Sequence[Summary]) -> str:
    """A list of the agents with unfinished seeds."""
    name = lambda s: f"{s.cell.dataset}, {_recipe(s)}, {LABELS[s.cell.estimator]}"  # noqa: E731
    lines = [unfinished(s, name(s), "seeds") for s in cells if not s.complete]
    return "\n".join(lines) or "None."


def seconds_table(cells: Sequence[Summary]) -> str:
    """Seconds and steps per second of every agent, and the total."""
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
        lines.append(["total", "", "", f"{total:.1f}", ""])
    return table_or_note(["", "seeds", "trained together", "seconds", "steps per second"], lines)


# --- grouping and numbers -----------------------------------------------------------------------


def _by_env(cells: Sequence[Summary]) -> dict[str, dict[str, Summary]]:
    """Summaries by environment, then by agent."""
    found: dict[str, dict[str, Summary]] = {}
    for summary in cells:
        found.setdefault(summary.cell.dataset, {})[summary.cell.estimator] = summary
    return found


def _number(value: float) -> str:
    return f"{value:.1f}".replace("-", "−")


def _with_interval(estimate: Estimate, with_sign: bool = False) -> str:
    mean, low, high = (float(v) for v in estimate)
    shown = signed if with_sign else _number
    return f"{shown(mean)} [{shown(low)}, {shown(high)}]"
