"""Trained agents on one page: how they learned, how they play, what returns they foresee."""

from __future__ import annotations

import html
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from nkcme.report import charts
from nkcme.report.agent_plots import action_names, drawn_curve, foreseen
from nkcme.report.page import chart, header, section, write_page
from nkcme.rl.play import play
from nkcme.rl.result import Result

if TYPE_CHECKING:
    from nkcme.rl.envs import Hosted
    from nkcme.rl.loop import Environment

#: Episodes that are played to compare what was foreseen with what came.
N_EPISODES = 100


def write_agents_report(
    result: Result, path: str | Path, env: Environment | Hosted | None = None
) -> None:
    """Write a report of trained agents as one HTML file that opens without a network.

    With the environment, the best agent plays in it, and what it foresaw is held against what came.
    """
    title = f"Agents in {result.env_name}"
    write_page(path, title, lambda: _body(result, env, title))


def _body(result: Result, env: Environment | Hosted | None, title: str) -> list[str]:
    body = [_header(result, title)]
    if len(result.curve.step):
        body += [_returns(result), _curves(result)]
    return body if env is None else [*body, *_play(result, env)]


def _header(result: Result, title: str) -> str:
    config = result.agent.to_config()
    n = len(result.seeds)
    facts = [
        html.escape(config.get("kernels", config["kind"])),
        f"<strong>{html.escape(result.env_name)}</strong>",
        f"{n} agent{'s' * (n != 1)}",
        f"{result.n_steps:,} steps each",
    ]
    text = (
        "An agent learns by trying, which action is worth how much in which state. These agents "
        "were trained by the same recipe and differ in their seed alone, which decides everything "
        "random: where the networks start, what is tried and what happens. Agents trained with "
        "other seeds will differ as these do."
    )
    if result.interrupted:
        text += " <strong>Training was stopped before its end.</strong>"
    settings = config | result.settings.to_config() | {"seeds": list(result.seeds)}
    return header(title, facts, text, settings, "the agents")


def _returns(result: Result) -> str:
    late, whole = result.curve.last_fifth(), result.curve.area()
    rows = "".join(
        f'<tr><th scope="row">seed {seed}</th><td class="value">{late[k]:.4g}</td>'
        f"<td>{whole[k]:.4g}</td></tr>"
        for k, seed in enumerate(result.seeds)
    )
    told = f"In the last fifth of training an episode brought {late.mean():.4g} on average"
    if len(late) > 1:
        told += f", between {late.min():.4g} and {late.max():.4g} by agent"
        rows += (
            f'<tr><th scope="row">mean ± deviation</th>'
            f'<td class="value">{late.mean():.4g} ± {late.std():.3g}</td>'
            f"<td>{whole.mean():.4g} ± {whole.std():.3g}</td></tr>"
        )
    return section(
        "How well do they play?",
        f"{told}. A return is the sum of an episode's rewards, undiscounted. It was measured every "
        f"{result.settings.eval_every:,} steps, on one episode of each agent that taught it "
        "nothing.",
        "<table><thead><tr><th>Agent</th><th>Return, last fifth</th><th>Return, all of training"
        f"</th></tr></thead><tbody>{rows}</tbody></table>",
    )


def _curves(result: Result) -> str:
    step, returns = drawn_curve(result.curve)
    span = int(np.ceil(len(result.curve.step) / len(step)))
    text = "The higher, the better; the sooner high, the quicker it learned."
    if span > 1:
        text += f" Each point is the mean of {span:,} episodes in a row: single ones scatter."
    figure = charts.return_curves(step, returns, result.seeds)
    return section("How did learning go?", text, chart(figure, "Returns over the steps"))


def _play(result: Result, env: Environment | Hosted) -> list[str]:
    best = result.best()
    episodes = play(result, env, N_EPISODES, agent=best)
    dists = result.return_distribution(episodes.starts, best)
    grid, curves = foreseen(dists)
    if curves is None:
        return []
    means = np.stack([d.mean() for d in dists])
    names = action_names(result.env_name, result.n_actions)
    first = chart(
        charts.foreseen_returns(grid, curves[:, 0], means[:, 0], names),
        "Foreseen returns in one state",
        "At the start of one episode: what each action would bring. The action with the highest "
        "mean is taken.",
    )
    chosen = curves[np.argmax(means, axis=0), np.arange(len(episodes.starts))]
    span = np.append(episodes.discounted, [grid[0], grid[-1]])
    wide = np.linspace(span.min(), span.max(), len(grid))
    before = np.interp(wide, grid, chosen.mean(axis=0), left=0.0, right=0.0)
    second = chart(
        charts.foreseen_and_came(wide, before, episodes.discounted),
        "Foreseen returns against those that came",
        f"Over {N_EPISODES} episodes: the mean of the densities foreseen at their starts, and the "
        "returns that came.",
    )
    cut = 1 - episodes.terminated.mean()
    text = (
        f"This is of the agent with seed {result.seeds[best]}, the best of the last fifth. It "
        "foresees not one number but a distribution of the return, discounted by "
        f"{result.settings.gamma:g} a step. If it is right, the bars follow the curve."
    )
    if cut > 0:
        text += (
            f" {100 * cut:.0f} % of the episodes were cut off by the time limit; what they would "
            "have brought after it is foreseen but not in the bars."
        )
    return [section("What do they foresee?", text, f'<div class="grid wide">{first}{second}</div>')]
