"""Vectorised environments: several copies of an environment that are stepped together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from nkcme.errors import NkcmeError
from nkcme.rl.gymnasium_envs import Made
from nkcme.rl.hosted import _RESET, _STEP, HostedBase, Taken

#: When an environment begins a new episode (gymnasium.vector.AutoresetMode).
_NEXT_STEP, _SAME_STEP, _DISABLED = "NextStep", "SameStep", "Disabled"


class HostedVector(HostedBase):
    """A `gymnasium.vector.VectorEnv` with discrete actions.

    Parameters
    ----------
    made
        The environment, and how to make others like it.

    Raises
    ------
    NkcmeError
        If its actions are not discrete, its observations are neither arrays nor states, or it does
        not state when an episode is reset.
    """

    def __init__(self, made: Made):
        env = made.env
        super().__init__(made, env.single_action_space, env.single_observation_space)
        self.n_envs = int(env.num_envs)
        mode = env.metadata.get("autoreset_mode")
        self._mode = getattr(mode, "value", mode)
        if self._mode not in (_NEXT_STEP, _SAME_STEP, _DISABLED):
            raise NkcmeError(
                f'{self.name}: expected metadata["autoreset_mode"] of a vectorised environment to '
                f"be a gymnasium.vector.AutoresetMode, found {mode!r}: set it to the mode that the "
                "environment has"
            )

    def another(self) -> Self:
        """Make another environment of the same kind, before its first step."""
        return type(self)(self._made.another())

    def begin(self, seed: int | None = None) -> None:
        """Begin an episode in every copy; ``current`` are the observations to act on."""
        answer = self._unpacked(self._env.reset(seed=seed), "reset", _RESET)
        self.current = self._vectors(answer[0])
        self._fresh = np.zeros(self.n_envs, bool)  # whose next step only begins an episode

    def advance(self, actions: Sequence[int]) -> list[Taken | None]:
        """Take one action in every copy; None where the step only began a new episode."""
        answer = self._env.step(self.first_action + np.asarray(actions))
        observations, rewards, terminated, truncated, info = self._unpacked(answer, "step", _STEP)
        after = self._vectors(observations)
        terminated = self._each(terminated, "terminated").astype(bool)
        ended = terminated | self._each(truncated, "truncated").astype(bool)
        rewards = self._each(rewards, "reward")
        final = after
        if self._mode == _SAME_STEP and ended.any():
            final = after.copy()
            for i in np.flatnonzero(ended):
                final[i] = self._vector(info["final_obs"][i])
        taken = [
            None if fresh else Taken(final[i], self._reward(rewards[i]), bool(terminated[i]), over)
            for i, (fresh, over) in enumerate(zip(self._fresh, ended.tolist(), strict=True))
        ]
        if self._mode == _NEXT_STEP:
            self._fresh = ended & ~self._fresh
        elif self._mode == _DISABLED and ended.any():
            after = self._vectors(self._env.reset(options={"reset_mask": ended})[0])
        self.current = after
        return taken

    def _vectors(self, observations: Any) -> np.ndarray:
        return np.stack([self._vector(one) for one in self._each(observations, "observation")])

    def _each(self, values: Any, what: str) -> np.ndarray:
        array = np.asarray(values)
        if array.ndim == 0 or len(array) != self.n_envs:
            raise NkcmeError(
                f"{self.name}: expected one {what} for each of {self.n_envs} environments, got "
                f"{'one value' if array.ndim == 0 else len(array)}: correct the environment's step"
            )
        return array
