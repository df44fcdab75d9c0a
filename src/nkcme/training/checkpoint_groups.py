"""One checkpoint file for several training runs that follow each other."""

from __future__ import annotations

from typing import Any

import numpy as np

from nkcme.training.chunks import Checkpoint

Content = tuple[dict[str, Any], dict[str, np.ndarray]]

#: The key of the groups in the file. It is part of the file format.
_GROUPS = "phases"


class CheckpointGroups:
    """A checkpoint file with one group per training run.

    A group holds the last state of its run. A run that is finished finds its last state there and
    trains no further; a run that has not begun finds nothing.
    """

    def __init__(self, file: Checkpoint):
        self.file = file
        self.contents: dict[str, Content] = {}
        if (found := file.load()) is not None:
            config, arrays = found
            for name, own in config.get(_GROUPS, {}).items():
                prefix = f"{name}/"
                kept = {
                    k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)
                }
                self.contents[name] = (own, kept)

    def group(self, name: str) -> CheckpointGroup:
        """Return the checkpoint of one run."""
        return CheckpointGroup(self, name)

    def save(self, name: str, config: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Replace one group and write the file."""
        self.contents[name] = (config, arrays)
        whole = {
            _GROUPS: {n: own for n, (own, _) in self.contents.items()},
            "fingerprint": config["fingerprint"],
            "step": config["step"],
        }
        items = ((n, kept.items()) for n, (_, kept) in self.contents.items())
        self.file.save(whole, {f"{n}/{key}": value for n, pairs in items for key, value in pairs})


class CheckpointGroup:
    """The checkpoint of one run in the file of `CheckpointGroups`."""

    def __init__(self, groups: CheckpointGroups, name: str):
        self.groups = groups
        self.name = name

    def __str__(self) -> str:
        return str(self.groups.file)

    def load(self) -> Content | None:
        return self.groups.contents.get(self.name)

    def save(self, config: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        self.groups.save(self.name, config, arrays)
