"""Return distributions against Q-values, on an environment with a safe and a risky path.

``python -m benchmarks risk`` trains agents in `nkcme.rl.risky_path`, measures their predicted and
achieved returns when they maximise the mean and when they are risk-averse, writes
results/rl-risk.json and draws docs/images/risky-path.png.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.provenance import write_result
from benchmarks.timing import timed
from nkcme.report.plots import BLUE, INK, ORANGE, VERMILION, picture
from nkcme.rl import DQN, NKDQN, Result, Settings, train
from nkcme.rl.play import play
from nkcme.rl.risky_path import ACTIONS, FORK, RiskyPath
from nkcme.rl.risky_path import return_distribution as returns

N_SEEDS, N_EPISODES, RISK = 8, 1000, 0.1

#: All returns lie between -5 and 2.
FUSE = NKDQN(n_atoms=28, support=(-6.0, 3.0))
SETTINGS = Settings(
    n_steps=4000,
    hidden=(16,),
    learning_rate=3e-3,
    schedule="cosine",
    batch_size=64,
    averaging=0.99,
    prefill=2000,
    epsilon=0.3,
    epsilon_steps=1000,
    eval_every=500,
)

#: A learning rate that is too high: some agents no longer predict the rare large loss.
TOO_FAST = 2e-2


def main(out: Path, images: Path) -> None:
    """Train and measure the agents, write the results, and draw the figure."""
    results: dict[str, Any] = {"settings": SETTINGS.to_config(), "agent": FUSE.to_config()}
    fast = replace(SETTINGS, learning_rate=TOO_FAST)
    trained = {}
    for name, agent, settings in (
        ("fuse", FUSE, SETTINGS),
        ("dqn", DQN(), SETTINGS),
        ("fuse_too_fast", FUSE, fast),
    ):
        trained[name], seconds = timed(partial(train, RiskyPath(), agent, settings, seeds=N_SEEDS))
        results[name] = {"seconds": seconds, "agents": _measure(trained[name])}
        print(name, results[name])
    path = images / "risky-path.png"
    draw(trained["fuse"], trained["dqn"], path)
    print(f"Wrote {path}")
    print(f"Wrote {write_result('rl-risk', 'python -m benchmarks risk', results, out)}")


def _measure(result: Result) -> list[dict[str, Any]]:
    """Each agent's predicted returns at the fork, and its returns, by mean and risk-averse."""
    fork, rows = RiskyPath.observe(FORK), []
    for k, seed in enumerate(result.seeds):
        dists = result.return_distribution(fork, k)
        row: dict[str, Any] = {"seed": seed}
        for name, dist in zip(ACTIONS, dists, strict=True):
            row[name] = {"mean": float(dist.mean()[0]), "below_zero": float(dist.cdf(0.0)[0])}
        for name, risk in (("by_the_mean", None), ("averse", RISK)):
            achieved = play(result, RiskyPath(), N_EPISODES, agent=k, seed=1, risk=risk).returns
            row[name] = {"mean": float(achieved.mean()), "worst": float(achieved.min())}
        rows.append(row)
    return rows


def draw(fuse: Result, dqn: Result, path: Path) -> None:
    """Predictions at the fork: DQN's Q-values, and the return distributions of fuse."""
    fork = RiskyPath.observe(FORK)
    grid = np.linspace(-5.8, 3.0, 700)
    gamma = fuse.settings.gamma
    with picture(path, 2, 2, (10, 4.6), sharex=True) as (_, axes):
        for row, name in enumerate(ACTIONS):
            colour = (BLUE, VERMILION)[row]
            left, right = axes[row]
            q = dqn.return_distribution(fork)[row].mean()[0]
            left.axvline(q, color=colour, lw=3)
            left.text(q - 0.15, 0.5, f"Q = {q:.2f}", ha="right", va="center", color=colour)
            left.set(yticks=[], ylim=(0, 1), xlim=(grid[0], grid[-1]))
            dist = fuse.return_distribution(fork)[row]
            right.fill_between(grid, dist.pdf(grid, grid=True)[0], color=colour, alpha=0.6, lw=0)
            right.axvline(dist.mean()[0], color=INK, ls="--", lw=1.4)
            values, chances = returns(FORK, row, gamma)
            for value, chance in zip(values, chances, strict=True):
                right.plot(value, 0, "^", color=ORANGE, mec=INK, ms=10, clip_on=False, zorder=5)
                right.annotate(
                    f"{chance:.0%}", (value, 0), (26, 9), textcoords="offset points",
                    ha="center",
                )  # fmt: skip
            right.set(yticks=[], ylim=(0, None))
            for ax in (left, right):
                ax.spines["left"].set_visible(False)
            left.set_ylabel(f"the {name}", fontsize=12)
        axes[0, 0].set_title("Q-values (DQN)")
        axes[0, 1].set_title("return distributions (fuse)")
        for ax in axes[1]:
            ax.set_xlabel("discounted return")
