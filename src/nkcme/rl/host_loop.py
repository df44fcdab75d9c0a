"""The loop for environments that Python steps (Gymnasium): the same agents, one step at a time.

Every agent has an environment to train in and one to evaluate in. The agents take turns: each
trains until the next evaluation.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from nkcme.rl import learner as learning
from nkcme.rl.agents.base import Agent
from nkcme.rl.curve import Curve
from nkcme.rl.host_agent import HostAgent
from nkcme.rl.hosted import Hosted
from nkcme.rl.hosted_vector import HostedVector
from nkcme.rl.result import Result
from nkcme.rl.settings import Settings
from nkcme.training.chunks import Progress, Values, equal_chunks, run_in_chunks
from nkcme.training.replicas import single_precision


@single_precision()
def train_hosted(
    env: Hosted | HostedVector,
    agent: Agent,
    settings: Settings,
    seeds: list[int],
    progress: Progress | None,
) -> Result:
    """Train agents side by side; see `nkcme.rl.loop.train`."""
    # All copies are made before the first step in the environment that they are copies of.
    copies = [env.another() for _ in range(2 * len(seeds) - 1)]
    try:
        run = _Run([env, *copies], agent, settings, seeds)
        done, stop_requested = run_in_chunks(run, progress=progress)
    finally:
        for one in copies:
            one.close()
    networks = [learning.acting(one.learner) for one in run.agents]
    return Result(
        env_name=env.name,
        env_by_name=env.by_name,
        agent=run.agent,
        settings=settings,
        seeds=tuple(seeds),
        n_actions=env.n_actions,
        observation_size=env.observation_size,
        observations=env.observations,
        networks=jax.tree.map(lambda *leaves: jnp.stack(leaves), *networks),
        curve=run.curve,
        n_steps=done,
        interrupted=stop_requested and done < settings.n_steps,
    )


class _Run:
    """The run of all seeds, for `nkcme.training.chunks.run_in_chunks`."""

    replica_name = "agent"
    divergence_advice = learning.DIVERGENCE_ADVICE

    def __init__(
        self,
        envs: Sequence[Hosted | HostedVector],
        agent: Agent,
        settings: Settings,
        seeds: list[int],
    ):
        self.env, self.settings = envs[0], settings
        self.curve = Curve.empty(len(seeds))
        self.agents: list[HostAgent] = []
        self.agent = agent
        self.warned = self.warned_of_length = False
        for k, seed in enumerate(seeds):
            one = HostAgent(envs[k], envs[len(seeds) + k], self.agent, settings, seed)
            self.agent = one.program.agent  # an "auto" support is resolved by the first, for all
            self.agents.append(one)

    def start(self) -> None:
        """Do nothing: the constructor has filled the replay, where Ctrl-C is an ordinary one."""

    def chunk_lengths(self, done: int) -> Sequence[int]:
        return equal_chunks(self.settings.n_steps, self.settings.eval_every, done)

    def run_chunk(self, done: int, length: int) -> Values:
        """Train until the next evaluation; return the mean values and the evaluated returns."""
        values = [one.train(done, length) for one in self.agents]
        means = {name: np.array([v[name] for v in values]) for name in values[0]}
        return means | {"returns": np.array([one.evaluate() for one in self.agents])}

    def record(self, done: int, values: Values) -> dict[str, float]:
        self.curve.extend(np.array([done]), values["returns"][None])
        self.warned = self.warned or learning.warn_of_support(
            self.agent, float(values["outside"].mean()), done
        )
        if not self.warned_of_length and any(one.cut_off for one in self.agents):
            self.warned_of_length = True
            warnings.warn(
                f"{self.env.name}: an evaluation episode did not end within "
                f"{self.env.max_steps:,} steps and was cut off: set a time limit "
                "(gymnasium.wrappers.TimeLimit)",
                stacklevel=6,  # the caller of nkcme.rl.train
            )
        return {"return": float(values["returns"].mean()), "loss": float(values["loss"].mean())}
