"""Checkpoints of agents: of a run that resumes, and of one that goes on past its steps."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from nkcme.errors import NkcmeError
from nkcme.model_files import strict_json
from nkcme.rl.agents.base import Agent
from nkcme.rl.envs import AnyEnvironment
from nkcme.rl.settings import Settings
from nkcme.training.chunks import Checkpoint, RunCheckpoint


def fingerprint(env: AnyEnvironment, agent: Agent, settings: Settings, seeds: list[int]) -> str:
    """Return what identifies a run, its number of steps included."""
    return _digest([env.name, agent.to_config(), settings.to_config(), seeds])


class AgentsCheckpoint:
    """A checkpoint that holds which run it is of, whatever the number of its steps.

    Parameters
    ----------
    file
        Where it is kept.
    env, settings, seeds
        Those of the run.
    agent
        Returns the agent with every "auto" resolved, which is known once the run has begun.
    go_on
        Whether a checkpoint of fewer steps in all is accepted.
    full
        The fingerprint of the run.
    """

    def __init__(
        self,
        file: Checkpoint,
        env: AnyEnvironment,
        settings: Settings,
        seeds: list[int],
        *,
        agent: Callable[[], Agent],
        go_on: bool,
        full: str,
    ):
        self._file, self._settings, self._agent = file, settings, agent
        self._env = [env.name, getattr(env, "backend", "jax"), seeds]
        self._go_on, self._full = go_on, full

    def __str__(self) -> str:
        return str(self._file)

    def _run(self) -> str:
        any_length = replace(self._settings, n_steps=self._settings.eval_every)
        return _digest([*self._env, self._agent().to_config(), any_length.to_config()])

    def load(self) -> tuple[dict[str, Any], dict[str, np.ndarray]] | None:
        """Return the checkpoint; one of other steps counts as this run's if it may go on."""
        found = self._file.load()
        if found is None or not self._go_on:
            return found
        config, arrays = found
        if config["step"] > self._settings.n_steps:
            raise NkcmeError(
                f"the run has done {config['step']} steps: n_steps is the number in all, give more "
                f"than that; got {self._settings.n_steps}"
            )
        if config.get("run") == self._run():
            config = config | {"fingerprint": self._full}
        return config, arrays

    def save(self, config: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Write the checkpoint."""
        self._file.save(config | {"run": self._run()}, arrays)


class SavedAtTheEnd(RunCheckpoint):
    """A checkpoint that is written once: between chunks its replay would take too long."""

    def save(self, done: int) -> None:
        """Do nothing."""

    def save_now(self, done: int) -> None:
        """Write the states and the history after ``done`` steps."""
        super().save(done)


def _digest(run: list[Any]) -> str:
    return hashlib.sha256(strict_json.dumps(run)).hexdigest()
