"""One checkpoint for work in phases, each of which is a training run of its own."""

from __future__ import annotations

from typing import Any

import numpy as np

from nkcme.training.loop import Checkpoint

Content = tuple[dict[str, Any], dict[str, np.ndarray]]


class Phases:
    """A checkpoint whose file holds the last state of every phase so far.

    A phase that was finished finds its last state there and has nothing left to do; one that was
    not begun finds nothing.
    """

    def __init__(self, file: Checkpoint):
        self.file = file
        self.contents: dict[str, Content] = {}
        if (found := file.load()) is not None:
            config, arrays = found
            for name, own in config.get("phases", {}).items():
                prefix = f"{name}/"
                kept = {
                    k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)
                }
                self.contents[name] = (own, kept)

    def phase(self, name: str) -> Phase:
        """The checkpoint of one phase."""
        return Phase(self, name)

    def keep(self, name: str, config: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Write what a phase wants to be kept, beside what the others have."""
        self.contents[name] = (config, arrays)
        whole = {
            "phases": {n: own for n, (own, _) in self.contents.items()},
            "fingerprint": config["fingerprint"],
            "step": config["step"],
        }
        parts = ((n, kept.items()) for n, (_, kept) in self.contents.items())
        self.file.save(whole, {f"{n}/{key}": value for n, items in parts for key, value in items})


class Phase:
    """What `nkcme.training.loop.train` takes as its checkpoint."""

    def __init__(self, phases: Phases, name: str):
        self.phases = phases
        self.name = name

    def __str__(self) -> str:
        return str(self.phases.file)

    def load(self) -> Content | None:
        return self.phases.contents.get(self.name)

    def save(self, config: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        self.phases.keep(self.name, config, arrays)
