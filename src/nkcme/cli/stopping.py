"""Training that Ctrl-C stopped, and the checkpoint that keeps its state."""

from __future__ import annotations

from pathlib import Path


class TrainingStopped(KeyboardInterrupt):
    """Ctrl-C ended training; its state after ``step`` steps is in the file ``checkpoint``."""

    def __init__(self, step: int, checkpoint: Path):
        super().__init__(f"stopped by Ctrl-C at step {step}")
        self.step = step
        self.checkpoint = checkpoint


def checkpoint_of(out: Path) -> Path:
    """The checkpoint of training that will be saved at ``out``: beside it, not in it."""
    return out.with_name(f"{out.name}.checkpoint")
