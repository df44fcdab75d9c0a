"""The progress of training as a CSV file, one row per evaluation and agent."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from nkcme.model_files.atomic_files import replacing
from nkcme.rl.curve import Curve

#: The name of the file beside saved agents.
PROGRESS = "progress.csv"


def write_progress(curve: Curve, seeds: Sequence[int], path: str | os.PathLike[str]) -> None:
    """Write a curve as a CSV file, which is replaced as a whole.

    The columns are step, seed, return and loss. A loss is the mean over the chunk of steps that the
    evaluation belongs to, and empty where it is not known.

    Parameters
    ----------
    curve
        The returns and losses.
    seeds
        The seed of each agent.
    path
        The file.
    """
    file = Path(path)
    lines = ["step,seed,return,loss"]
    for step, returns, losses in zip(curve.step, curve.returns, curve.loss, strict=True):
        for seed, value, loss in zip(seeds, returns, losses, strict=True):
            known = f"{loss:.9g}" if loss == loss else ""
            lines.append(f"{step},{seed},{value:.9g},{known}")
    with replacing(file, file.with_name(f"{file.name}.new")) as new:
        new.write(("\n".join(lines) + "\n").encode())
