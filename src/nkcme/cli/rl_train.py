"""The command `nkcme rl train`."""

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

from nkcme.cli.loading import Note
from nkcme.cli.rl_env import import_modules
from nkcme.cli.stopping import TrainingStopped, checkpoint_of
from nkcme.errors import NkcmeError
from nkcme.model_files import CheckpointFile, check_destination, read_checkpoint
from nkcme.rl import Result, train
from nkcme.rl.agents.base import Agent, AtomAgent
from nkcme.rl.envs import Hosted, HostedVector, make
from nkcme.rl.presets import preset as recipe
from nkcme.training.progress import TrainingBar, wants_progress

if TYPE_CHECKING:
    from nkcme.rl.envs import AnyEnvironment

#: The files that training writes beside the agents, in their directory.
CURVES, REPORT = "curves.png", "report.html"


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
    imports: Sequence[str],
    checkpoint: Path | None,
    note: Note,
) -> dict[str, Any]:
    """Train agents and save them at ``out`` with their learning curves and a report.

    The state of training is kept in ``checkpoint``, by default ``out``.checkpoint, until the agents
    are saved; the same call resumes from there. Bad input is refused before training.
    """
    made, settings = recipe(preset, agent, env_name, n_steps)
    made = made if support is None else _with_support(made, support)
    out = Path(os.path.abspath(out))
    check_destination(out)
    import_modules(imports)
    env = make(env_name, backend)
    hosted = isinstance(env, Hosted | HostedVector)
    if hosted and checkpoint is not None:
        raise NkcmeError(
            "a run through Gymnasium cannot be resumed, because its environments cannot be saved: "
            "omit --checkpoint"
        )
    file = checkpoint or checkpoint_of(out)
    start = time.perf_counter()
    before = 0
    if not hosted and file.exists():
        before = int(read_checkpoint(file)[0]["step"])
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
        note(f"continued from step {before} of a run that was stopped")
    if result.interrupted and not hosted:
        raise TrainingStopped(result.n_steps, file)
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
        raise NkcmeError("only fuse, single and c51 have a support; omit --support")
    if len(support) != 2:
        raise NkcmeError(
            "--support must be the lowest and the highest return, separated by a comma, as in "
            f"--support=-10,10; got {len(support)} numbers"
        )
    return replace(agent, support=(support[0], support[1]))


def _draw(result: Result, out: Path, env: AnyEnvironment, note: Note) -> list[str]:
    """Write the learning curves and the report to the agents' directory; return their paths."""
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


@contextmanager
def _warnings_to(note: Note) -> Iterator[None]:
    """Show warnings as notes of one line, without the source line that raised them."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = lambda message, *_: note(str(message))  # type: ignore[assignment]
        yield
