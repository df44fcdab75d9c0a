"""Plots of agents: their learning curves, and an episode with the returns that they predict."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nkcme.distributions.base import Distribution
from nkcme.report.plots import BLUE, VERMILION, animation, picture
from nkcme.rl.curve import Curve, thin
from nkcme.rl.envs import Compiled, Hosted
from nkcme.rl.play import Recording, frames
from nkcme.rl.result import Result

if TYPE_CHECKING:
    from nkcme.report.plots import Axes

#: Points of a drawn curve; each is the mean of consecutive evaluations.
_N_POINTS = 60

#: Frames of an animation, at most; longer episodes show every second or third step.
_MAX_FRAMES = 200
_FPS = 20

_GREY = "#8a8a8a"

#: The actions of well-known environments.
_ACTIONS = {
    "CartPole-v1": ("push left", "push right"),
    "Acrobot-v1": ("torque −1", "no torque", "torque +1"),
    "MountainCar-v0": ("push left", "coast", "push right"),
    "LunarLander-v3": ("nothing", "left engine", "main engine", "right engine"),
    "RiskyPath": ("safe", "risky"),
}


def action_names(env: str, n_actions: int) -> Sequence[str]:
    """The names of an environment's actions, or their numbers where none are known."""
    return _ACTIONS.get(env) or [f"action {a}" for a in range(n_actions)]


def drawn_curve(curve: Curve) -> tuple[np.ndarray, np.ndarray]:
    """Steps (n,) and returns (n, agents) to draw: means over consecutive evaluations."""
    step = thin(curve.step, _N_POINTS)[0]
    return step, np.stack([thin(one, _N_POINTS)[0] for one in curve.returns.T], axis=1)


def draw_curves(result: Result, path: Path) -> None:
    """Write the learning curves: each agent, their mean and their standard deviation."""
    step, returns = drawn_curve(result.curve)
    mean, spread = returns.mean(axis=1), returns.std(axis=1)
    with picture(path, 1, 1, (8, 4.5)) as (_, axes):
        ax = axes[0, 0]
        if returns.shape[1] > 1:
            ax.plot(step, returns, color=BLUE, lw=0.8, alpha=0.35)
            ax.fill_between(step, mean - spread, mean + spread, color=BLUE, alpha=0.15, lw=0)
        ax.plot(step, mean, color=BLUE, lw=2.2)
        ax.axvspan(0.8 * result.curve.step[-1], result.curve.step[-1], color="0.94", zorder=0)
        ax.set(
            xlabel="step",
            ylabel="return of an episode",
            xlim=(0, result.curve.step[-1]),
            title=f"{result.env_name}: {_agents(returns.shape[1])}; last fifth "
            f"{result.curve.last_fifth().mean():.4g}",
        )
        ax.xaxis.set_major_formatter(lambda x, _: f"{x:,.0f}")


def _agents(n_agents: int) -> str:
    return "one agent" if n_agents == 1 else f"{n_agents} agents, mean ± standard deviation"


# ---------------------------------------------------------------------------------- the episode


def animate_episode(
    result: Result, recording: Recording, env: Compiled | Hosted, path: Path, *, agent: int = 0
) -> int:
    """Write an episode beside the predicted return of each action; return the number of frames.

    All densities share one range of returns. If the episode terminated, a triangle marks the return
    that was observed from each step on.
    """
    n_steps = len(recording.actions)
    every = -(-n_steps // _MAX_FRAMES)
    panels = _Panels(result, recording, agent, every)
    height = max(4.0, 0.9 + 1.0 * result.n_actions)
    with animation(path, (10.0, height), _FPS) as (figure, add):
        stage = figure.add_axes((0.02, 0.03, 0.5, 0.84))
        stage.set_axis_off()
        title = figure.text(0.02, 1 - 0.3 / height, "", fontsize=12, fontweight="bold")
        layout = {"left": 0.57, "right": 0.97, "hspace": 0.45}
        layout |= {"top": 1 - 0.4 / height, "bottom": 0.75 / height}
        axes = figure.subplots(
            result.n_actions, 1, sharex=True, sharey=True, squeeze=False, gridspec_kw=layout
        )
        panels.prepare(list(axes.flat))
        shown: Any = None
        for i, frame in enumerate(frames(recording, env, every)):
            t = i * every
            if shown is None:
                shown = stage.imshow(frame)
            shown.set_data(frame)
            gained = recording.rewards[:t].sum()
            title.set_text(_signed(f"{result.env_name}   step {t:,}   return so far {gained:,.4g}"))
            panels.show(i)
            add()
    return i + 1


class _Panels:
    """The predicted returns, one panel per action."""

    def __init__(self, result: Result, recording: Recording, agent: int, every: int):
        observations = recording.observations[::every]
        dists = result.return_distribution(observations, agent)
        self._names = action_names(result.env_name, result.n_actions)
        self._chosen = recording.actions[::every]
        self._means = np.stack([d.mean() for d in dists])  # (actions, frames)
        self._observed = (
            recording.returns_to_go(result.settings.gamma)[::every]
            if recording.terminated
            else None
        )
        self.grid, self._curves = predicted_densities(dists)

    def prepare(self, axes: Sequence[Axes]) -> None:
        self._axes, self._lines, self._ticks, self._marks = axes, [], [], []
        # The highest peaks may exceed the axis, so that the others are visible.
        peaks = self._curves.max(axis=2) if self._curves is not None else np.ones(1)
        top = 1.15 * float(np.quantile(peaks, 0.9))
        for ax in axes:
            ax.set(xlim=(self.grid[0], self.grid[-1]), ylim=(0, top), yticks=[])
            ax.spines["left"].set_visible(False)
            self._lines.append(ax.plot([], [], lw=1.8)[0])
            self._ticks.append(ax.axvline(0.0, lw=1.6, ls="--"))
            self._marks.append(
                ax.plot([], [], "^", color=VERMILION, ms=9, clip_on=False, zorder=5)[0]
            )
        observed = "" if self._observed is None else ", triangle: observed"
        axes[-1].set_xlabel(f"predicted discounted return\ndashed: mean{observed}")

    def show(self, i: int) -> None:
        """Draw the i-th frame."""
        for a, ax in enumerate(self._axes):
            best = a == self._chosen[i]
            colour = BLUE if best else _GREY
            for old in ax.collections[:]:
                old.remove()
            if self._curves is not None:
                curve = self._curves[a, i]
                self._lines[a].set(data=(self.grid, curve), color=colour)
                ax.fill_between(self.grid, curve, color=colour, alpha=0.3 if best else 0.12, lw=0)
            mean = self._means[a, i]
            self._ticks[a].set(xdata=[mean, mean], color=colour)
            ax.set_title(
                _signed(f"{'▶ ' if best else ''}{self._names[a]}: mean {mean:.2f}"),
                loc="left",
                color=BLUE if best else "#555555",
                fontsize=11,
                fontweight="bold" if best else "normal",
            )
            observed = [] if self._observed is None or not best else [self._observed[i]]
            self._marks[a].set(data=(observed, [0.0] * len(observed)))


def _signed(text: str) -> str:
    """The text with typographic minus signs before numbers."""
    return re.sub(r"(?<= )-(?=\d)", "−", text)


def predicted_densities(
    dists: Sequence[Distribution],
) -> tuple[np.ndarray, np.ndarray | None]:
    """A grid of returns, and on it the predicted densities (actions, rows, grid).

    The densities are None for agents that predict the mean alone.
    """
    ends = np.stack([d.smoothed().ppf([0.005, 0.995]) for d in dists])
    margin = 0.05 * np.ptp(ends) or 1.0
    grid = np.linspace(ends.min() - margin, ends.max() + margin, 300)
    if not any(d.std().any() for d in dists):
        return grid, None
    return grid, np.stack([np.exp(d.smoothed().logpdf(grid, grid=True)) for d in dists])
