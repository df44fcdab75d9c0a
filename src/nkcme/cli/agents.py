"""What the commands of agents do: from names and paths to plain results, which `cli` prints."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nkcme.cli.fit import FitStopped, checkpoint_of
from nkcme.cli.opening import Note
from nkcme.errors import NkcmeError
from nkcme.model_files import files as persistence
from nkcme.model_files.files import CheckpointFile
from nkcme.rl import Result, load, train
from nkcme.rl.agents.base import Agent, AtomAgent
from nkcme.rl.envs import Hosted, make
from nkcme.rl.play import play, record, stage
from nkcme.rl.presets import preset as recipe
from nkcme.rl.risky_path import RiskyPath as TwoRoads
from nkcme.training.progress import TrainingBar, wants_progress

if TYPE_CHECKING:
    from nkcme.rl.loop import Environment

#: What training leaves beside the agents, in their directory.
CURVES, REPORT = "curves.png", "report.html"
EPISODE = "episode.gif"


def train_agents(
    env_name: str,
    out: Path,
    *,
    agent: str,
    preset: str,
    n_steps: int,
    seeds: Sequence[int],
    backend: str | None,
    support: Sequence[float] | None,
    checkpoint: Path | None,
    note: Note,
) -> dict[str, Any]:
    """Train agents, save them at ``out`` with their curves and a report.

    The state of training is kept in ``checkpoint``, ``out``.checkpoint unless given, until they are
    saved: the same call goes on from there. What can be refused is refused before training.
    """
    made, settings = recipe(preset, agent, env_name, n_steps)
    made = made if support is None else _with_support(made, support)
    out = Path(os.path.abspath(out))
    persistence.check_destination(out)
    env = _environment(env_name, backend)
    hosted = isinstance(env, Hosted)
    if hosted and checkpoint is not None:
        raise NkcmeError(
            "a run through Gymnasium cannot be resumed, for its environments cannot be saved: "
            "leave --checkpoint away"
        )
    file = checkpoint or checkpoint_of(out)
    start = time.perf_counter()
    before = 0
    if not hosted and file.exists():
        before = int(persistence.read_checkpoint(file)[0]["step"])
    shown = TrainingBar(n_steps, env_name) if wants_progress("auto") else nullcontext()
    with _warnings_to(note), shown as bar:
        result = train(
            env,
            made,
            settings,
            seeds=seeds,
            checkpoint=None if hosted else CheckpointFile(file),
            progress=bar,
        )
    seconds = time.perf_counter() - start
    if before:
        note(f"went on from step {before}, at which an earlier training was stopped")
    if result.interrupted and not hosted:
        raise FitStopped(result.n_steps, file)
    result.save(out)
    file.unlink(missing_ok=True)
    written = _draw(result, out, env, note)
    late = result.curve.last_fifth().tolist() if len(result.curve.step) else []
    return {
        "agents": str(out),
        "env": env_name,
        "backend": getattr(env, "backend", "jax"),
        "agent": agent,
        "preset": preset,
        "steps": result.n_steps,
        "interrupted": result.interrupted,
        "seeds": list(result.seeds),
        "last_fifth": late,
        "mean": float(np.mean(late)) if late else None,
        "seconds": seconds,
        "files": written,
    }


def _with_support(agent: Agent, support: Sequence[float]) -> Agent:
    if not isinstance(agent, AtomAgent):
        raise NkcmeError("only fuse, single and c51 have a support; leave --support away")
    if len(support) != 2:
        raise NkcmeError(
            "--support must be the lowest and the highest return with a comma between, as "
            f"--support=-10,10; got {len(support)} numbers"
        )
    return replace(agent, support=(support[0], support[1]))


def _draw(result: Result, out: Path, env: Environment | Hosted, note: Note) -> list[str]:
    """The curves and the report, in the agents' directory; what was written."""
    from nkcme.report.agent_plots import draw_curves
    from nkcme.report.agent_report import write_agents_report

    if not len(result.curve.step):
        return []
    written = [str(out / REPORT)]
    write_agents_report(result, out / REPORT, env)
    try:
        draw_curves(result, out / CURVES)
        written.append(str(out / CURVES))
    except NkcmeError as error:  # matplotlib is an extra
        note(f"no {CURVES}: {error}")
    return written


def evaluate_agents(
    agents: Path, *, n_episodes: int, backend: str | None, risk: float | None, seed: int
) -> dict[str, Any]:
    """The returns of episodes that every agent plays from the same starts."""
    result = load(agents)
    env = _environment(result.env_name, backend)
    rows = []
    for k, one in enumerate(result.seeds):
        returns = play(result, env, n_episodes, agent=k, seed=seed, risk=risk).returns
        rows.append(
            {
                "seed": one,
                "mean": float(returns.mean()),
                "std": float(returns.std()),
                "worst": float(returns.min()),
                "best": float(returns.max()),
            }
        )
    return {
        "agents": str(agents),
        "env": result.env_name,
        "backend": getattr(env, "backend", "jax"),
        "episodes": n_episodes,
        "risk": risk,
        "mean": float(np.mean([row["mean"] for row in rows])),
        "by_agent": rows,
    }


def watch_agent(
    agents: Path, out: Path | None, *, number: int | None, seed: int, risk: float | None
) -> dict[str, Any]:
    """Write a film of an episode, with the returns that the agent foresees beside it."""
    from nkcme.report.agent_plots import film_episode
    from nkcme.report.plots import check_film

    path = agents / EPISODE if out is None else out
    check_film(path)
    result = load(agents)
    agent = result.best() if number is None else number
    result.network(agent)  # refuses a number that is nobody's
    env = stage(result.env_name)
    episode = record(result, env, agent=agent, seed=seed, risk=risk)
    n_pictures = film_episode(result, episode, env, path, agent=agent)
    return {
        "film": str(path),
        "agent": agent,
        "seed": result.seeds[agent],
        "steps": len(episode.actions),
        "return": float(episode.rewards.sum()),
        "pictures": n_pictures,
    }


def report_agents(agents: Path, out: Path, note: Note) -> None:
    """Write the report of saved agents."""
    from nkcme.report.agent_report import write_agents_report

    result = load(agents)
    env: Environment | Hosted | None = None
    try:
        env = _environment(result.env_name, None)
    except NkcmeError as error:
        note(f"without the section in which an agent plays: {error}")
    write_agents_report(result, out, env)


def _environment(name: str, backend: str | None) -> Environment | Hosted:
    own = TwoRoads()
    return own if name == own.name and backend is None else make(name, backend)


@contextmanager
def _warnings_to(note: Note) -> Iterator[None]:
    """Our warnings are for people, a line each, without where in the source they were raised."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = lambda message, *_: note(str(message))  # type: ignore[assignment]
        yield
