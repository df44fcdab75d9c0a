"""The HTML report of trained agents: learning curves, returns, and predicted returns."""

from __future__ import annotations

import html
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from nkcme.report import agent_charts
from nkcme.report.agent_plots import action_names, drawn_curve, predicted_densities
from nkcme.report.page import chart, header, section, write_page
from nkcme.rl.play import play
from nkcme.rl.result import Result

if TYPE_CHECKING:
    from nkcme.rl.envs import AnyEnvironment

#: Episodes that are played to compare predicted with observed returns.
N_EPISODES = 100


def write_agents_report(
    result: Result, path: str | Path, env: AnyEnvironment | None = None
) -> None:
    """Write a report of trained agents as one HTML file that needs no network.

    Parameters
    ----------
    result : Result
        The trained agents.
    path : str or Path
        The file to write. It is complete or does not change.
    env : environment or None
        If given, the best agent plays in it, and the report compares predicted with observed
        returns.

    Raises
    ------
    NkcmeError
        If the file cannot be written.
    """
    title = f"Agents in {result.env_name}"
    write_page(path, title, lambda: _body(result, env, title))


def _body(result: Result, env: AnyEnvironment | None, title: str) -> list[str]:
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
        "An agent learns from experience how much return each action brings in each state. These "
        "agents were trained with the same settings and different seeds. The seed determines the "
        "initial networks, the exploration and the random events of the environment. Agents of "
        "other seeds differ as much as these do."
    )
    if result.interrupted:
        text += " <strong>Training was interrupted.</strong>"
    settings = config | result.settings.to_config() | {"seeds": list(result.seeds)}
    return header(title, facts, text, settings, "the agents")


def _returns(result: Result) -> str:
    late, whole = result.curve.last_fifth(), result.curve.area()
    rows = "".join(
        f'<tr><th scope="row">seed {seed}</th><td class="value">{late[k]:.4g}</td>'
        f"<td>{whole[k]:.4g}</td></tr>"
        for k, seed in enumerate(result.seeds)
    )
    summary = f"In the last fifth of training the mean return of an episode is {late.mean():.4g}"
    if len(late) > 1:
        summary += f", between {late.min():.4g} and {late.max():.4g} by agent"
        rows += (
            f'<tr><th scope="row">mean ± standard deviation</th>'
            f'<td class="value">{late.mean():.4g} ± {late.std():.3g}</td>'
            f"<td>{whole.mean():.4g} ± {whole.std():.3g}</td></tr>"
        )
    return section(
        "Returns",
        f"{summary}. A return is the undiscounted sum of the rewards of an episode. It was "
        f"measured every {result.settings.eval_every:,} steps, on one evaluation episode of each "
        "agent.",
        "<table><thead><tr><th>Agent</th><th>Return, last fifth</th><th>Return, whole training"
        f"</th></tr></thead><tbody>{rows}</tbody></table>",
    )


def _curves(result: Result) -> str:
    step, returns = drawn_curve(result.curve)
    span = int(np.ceil(len(result.curve.step) / len(step)))
    text = "Higher is better. A curve that rises early shows fast learning."
    if span > 1:
        text += f" Each point is the mean of {span:,} consecutive episodes."
    figure = agent_charts.return_curves(step, returns, result.seeds)
    return section("Learning curves", text, chart(figure, "Returns over the steps"))


def _play(result: Result, env: AnyEnvironment) -> list[str]:
    best = result.best()
    episodes = play(result, env, N_EPISODES, agent=best)
    dists = result.return_distribution(episodes.starts, best)
    grid, curves = predicted_densities(dists)
    if curves is None:
        return []
    means = np.stack([d.mean() for d in dists])
    names = action_names(result.env_name, result.n_actions)
    first = chart(
        agent_charts.predicted_returns(grid, curves[:, 0], means[:, 0], names),
        "Predicted returns in one state",
        "The predicted return of each action at the start of one episode. The agent takes the "
        "action with the highest mean.",
    )
    chosen = curves[np.argmax(means, axis=0), np.arange(len(episodes.starts))]
    span = np.append(episodes.discounted, [grid[0], grid[-1]])
    wide = np.linspace(span.min(), span.max(), len(grid))
    predicted = np.interp(wide, grid, chosen.mean(axis=0), left=0.0, right=0.0)
    second = chart(
        agent_charts.predicted_and_observed_returns(wide, predicted, episodes.discounted),
        "Predicted and observed returns",
        f"Over {N_EPISODES} episodes: the mean of the densities predicted at their starts, and the "
        "observed returns.",
    )
    cut = 1 - episodes.terminated.mean()
    text = (
        f"These charts are of the agent with seed {result.seeds[best]}, the best of the last "
        "fifth. It predicts a distribution of the return, discounted by "
        f"{result.settings.gamma:g} per step. If the predictions are correct, the bars follow the "
        "curve."
    )
    if cut > 0:
        text += (
            f" {100 * cut:.0f} % of the episodes were truncated by the time limit; the predictions "
            "include the rewards after it, the bars do not."
        )
    return [section("Predicted returns", text, f'<div class="grid wide">{first}{second}</div>')]
