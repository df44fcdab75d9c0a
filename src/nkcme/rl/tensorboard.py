"""Returns and losses for TensorBoard. No other module imports tensorboardX."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from nkcme.errors import NkcmeError
from nkcme.rl.result import Result


class TensorBoard:
    """A callback of `nkcme.rl.train` that writes the learning curves for TensorBoard.

    Every evaluation becomes a point of ``return/seed_K`` and ``loss/seed_K``.

    Parameters
    ----------
    directory
        The directory of the event files.
    after
        Evaluations up to this step are not written: a run that continues has them already.

    Raises
    ------
    NkcmeError
        If tensorboardX is not installed.
    """

    def __init__(self, directory: str | os.PathLike[str], after: int = 0):
        try:
            from tensorboardX import SummaryWriter
        except ImportError:
            raise NkcmeError(
                "TensorBoard needs tensorboardX: pip install 'nkcme[tensorboard]'"
            ) from None
        self._writer: Any = SummaryWriter(os.fspath(directory))
        self._after = after

    def __call__(self, step: int, scores: dict[str, np.ndarray], agents: Result) -> None:
        """Write the evaluations since the last call."""
        curve = agents.curve
        for i in np.flatnonzero(curve.step > self._after):
            for k, seed in enumerate(agents.seeds):
                for name, values in (("return", curve.returns), ("loss", curve.loss)):
                    self._writer.add_scalar(
                        f"{name}/seed_{seed}", float(values[i, k]), int(curve.step[i])
                    )
        self._after = step
        self._writer.flush()

    def close(self) -> None:
        """Close the event file."""
        self._writer.close()
