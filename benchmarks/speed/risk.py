"""Two roads home: what a return distribution tells that a Q-value does not.

``python -m benchmarks.speed.risk`` trains agents in `nkcme.rl.risky_path`, asks what they foresee,
lets them play by the mean and averse to risk, writes results/rl-risk.json and draws
docs/images/two-roads.png.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.speed.record import write
from nkcme.report.plots import BLUE, INK, ORANGE, VERMILION, picture
from nkcme.rl import DQN, NKDQN, Result, Settings, train
from nkcme.rl.play import play
from nkcme.rl.risky_path import ACTIONS, FORK
from nkcme.rl.risky_path import RiskyPath as TwoRoads
from nkcme.rl.risky_path import return_distribution as returns

IMAGE = Path(__file__).parents[2] / "docs" / "images" / "two-roads.png"

N_SEEDS, N_EPISODES, RISK = 8, 1000, 0.1

#: No return is below -5 or above 2.
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

#: A learning rate at which some agents lose the avalanche.
TOO_FAST = 2e-2


def main() -> None:
    results: dict[str, Any] = {"settings": SETTINGS.to_config(), "agent": FUSE.to_config()}
    fast = replace(SETTINGS, learning_rate=TOO_FAST)
    trained = {}
    for name, agent, settings in (
        ("fuse", FUSE, SETTINGS),
        ("dqn", DQN(), SETTINGS),
        ("fuse_too_fast", FUSE, fast),
    ):
        start = time.perf_counter()
        trained[name] = train(TwoRoads(), agent, settings, seeds=N_SEEDS)
        seconds = time.perf_counter() - start
        results[name] = {"seconds": seconds, "agents": _measure(trained[name])}
        print(name, results[name])
    draw(trained["fuse"], trained["dqn"], IMAGE)
    print(write("rl-risk", "python -m benchmarks.speed.risk", results))


def _measure(result: Result) -> list[dict[str, Any]]:
    """What each agent foresees at the fork, and what it gets by the mean and averse to risk."""
    fork, told = TwoRoads.observe(FORK), []
    for k, seed in enumerate(result.seeds):
        dists = result.return_distribution(fork, k)
        row: dict[str, Any] = {"seed": seed}
        for name, dist in zip(ACTIONS, dists, strict=True):
            row[name] = {"mean": float(dist.mean()[0]), "below_zero": float(dist.cdf(0.0)[0])}
        for name, risk in (("by_the_mean", None), ("averse", RISK)):
            came = play(result, TwoRoads(), N_EPISODES, agent=k, seed=1, risk=risk).returns
            row[name] = {"mean": float(came.mean()), "worst": float(came.min())}
        told.append(row)
    return told


def draw(fuse: Result, dqn: Result, path: Path) -> None:
    """At the fork: what DQN knows of each road, and what the distributional agent knows."""
    fork = TwoRoads.observe(FORK)
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
        axes[0, 0].set_title("what a Q-value tells (DQN)")
        axes[0, 1].set_title("what a return distribution tells (fuse)")
        for ax in axes[1]:
            ax.set_xlabel("return, discounted")


if __name__ == "__main__":
    main()
