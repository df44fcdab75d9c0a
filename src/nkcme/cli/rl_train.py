"""The command `nkcme rl train`."""

from __future__ import annotations

import os
import shutil
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from nkcme.cli.loading import Note
from nkcme.cli.rl_env import environment_of, import_modules
from nkcme.cli.stopping import TrainingStopped, checkpoint_of
from nkcme.errors import NkcmeError
from nkcme.model_files import CheckpointFile, check_destination, read_checkpoint
from nkcme.rl import Result, Settings, TensorBoard, load, train
from nkcme.rl.agents.base import Agent, AtomAgent
from nkcme.rl.callbacks import Callback
from nkcme.rl.envs import AnyEnvironment, Hosted, HostedVector, make
from nkcme.rl.presets import preset as recipe
from nkcme.rl.progress_file import PROGRESS, write_progress
from nkcme.training.progress import TrainingBar, wants_progress

#: The files that training writes beside the agents, in their directory.
CURVES, REPORT = "curves.png", "report.html"

#: The file in the agents' directory that holds the state of training, from which it can go on.
STATE = "training.checkpoint"


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
    tensorboard: Path | None,
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
    before = 0
    if not hosted and file.exists():
        before = int(read_checkpoint(file)[0]["step"])
    run = _Run(env, made, settings, seeds, out, file, go_on=False, before=before)
    return {"agent": agent, "preset": preset} | run.train(tensorboard, note)


def continue_agents(
    run: Path,
    out: Path | None,
    *,
    n_steps: int,
    env_name: str | None,
    backend: str | None,
    imports: Sequence[str],
    tensorboard: Path | None,
    note: Note,
) -> dict[str, Any]:
    """Train saved agents to ``n_steps`` steps in all and save them at ``out``, by default in place.

    Until then ``out``.checkpoint keeps the state, and the same call resumes from there.
    """
    result = load(run)
    out = Path(os.path.abspath(out or run))
    check_destination(out)
    file = checkpoint_of(out)
    if not file.exists():
        if n_steps <= result.n_steps:
            raise NkcmeError(
                f"{run} has done {result.n_steps} steps: --steps is their number in all, give more "
                f"than that; got {n_steps}"
            )
        if not (run / STATE).exists():
            raise NkcmeError(
                f"{run} holds no training state ({STATE}): only agents that nkcme rl train wrote "
                "can go on"
            )
    settings = replace(result.settings, n_steps=n_steps)
    env = environment_of(result, env_name, imports, backend)
    copied = not file.exists()
    if copied:
        shutil.copyfile(run / STATE, file)
    before = int(read_checkpoint(file)[0]["step"])
    continued = _Run(env, result.agent, settings, result.seeds, out, file, True, before)
    kind = result.agent.to_config()
    name = kind.get("kernels", kind["kind"])
    try:
        return {"agent": name, "preset": None} | continued.train(tensorboard, note)
    except NkcmeError:
        if copied and int(read_checkpoint(file)[0]["step"]) == before:
            file.unlink()  # nothing was added to the copy
        raise


class _Run(NamedTuple):
    """A run of agents that is saved at ``out``; ``before`` steps of it are in the checkpoint."""

    env: AnyEnvironment
    agent: Agent
    settings: Settings
    seeds: Sequence[int]
    out: Path
    checkpoint: Path
    go_on: bool
    before: int

    def train(self, tensorboard: Path | None, note: Note) -> dict[str, Any]:
        """Train and save; return what was done."""
        env, out, file = self.env, self.out, self.checkpoint
        start = time.perf_counter()
        log = out.with_name(f"{out.name}.{PROGRESS}")
        callbacks: list[Callback] = [
            lambda step, scores, agents: write_progress(agents.curve, agents.seeds, log)
        ]
        board = None if tensorboard is None else TensorBoard(tensorboard, self.before)
        if board is not None:
            callbacks.append(board)
        n_steps = self.settings.n_steps
        shown = TrainingBar(n_steps, env.name) if wants_progress("auto") else nullcontext()
        with _warnings_to(note), shown as bar:
            result = train(
                env,
                self.agent,
                self.settings,
                seeds=self.seeds,
                checkpoint=CheckpointFile(file),
                progress=bar,
                callbacks=callbacks,
                go_on=self.go_on,
            )
        seconds = time.perf_counter() - start
        if board is not None:
            board.close()
        if self.before:
            why = "" if self.go_on else " of a run that was stopped"
            note(f"continued from step {self.before}{why}")
        if result.interrupted and not isinstance(env, Hosted | HostedVector):
            raise TrainingStopped(result.n_steps, file)
        result.save(out)
        shutil.move(file, out / STATE)
        log.unlink(missing_ok=True)
        written = [str(out / PROGRESS), *_draw(result, out, env, note)]
        late = result.curve.last_fifth().tolist() if len(result.curve.step) else []
        return {
            "agents": str(out),
            "env": env.name,
            "backend": getattr(env, "backend", "jax"),
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
