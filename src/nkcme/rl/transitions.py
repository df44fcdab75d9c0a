"""The transitions of a hosted environment as rows of the replay, one at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

import numpy as np

from nkcme.rl.hosted import Hosted
from nkcme.rl.hosted_vector import HostedVector

#: Chooses an action for each of the observations (n, observation_size).
Choose = Callable[[np.ndarray], Sequence[int]]


class Transitions:
    """The rows of one or several environments; several take turns.

    The rows of one environment are therefore as far apart as there are environments, which a return
    over several steps relies on. Steps that only begin an episode give no row, so one environment
    may be ahead of another; its rows wait for their turn.
    """

    def __init__(self, env: Hosted | HostedVector, seed: int):
        self._env = env
        self._waiting: list[deque[np.ndarray]] = [deque() for _ in range(env.n_envs)]
        self._turn = 0
        env.begin(seed)

    def take(self, choose: Choose) -> np.ndarray:
        """Return the next row; the environments are stepped where none is waiting."""
        queue = self._waiting[self._turn]
        while not queue:
            self._step(choose)
        self._turn = (self._turn + 1) % len(self._waiting)
        return queue.popleft()

    def _step(self, choose: Choose) -> None:
        before = self._env.current
        actions = choose(before)
        for i, taken in enumerate(self._env.advance(actions)):
            if taken is not None:
                scalars = [actions[i], taken.reward, taken.terminated, taken.ended]
                row = np.concatenate([before[i], taken.final, scalars], dtype=np.float32)
                self._waiting[i].append(row)
