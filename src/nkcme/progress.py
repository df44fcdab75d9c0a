"""A progress bar on standard error: steps, loss, bandwidth, time left."""

from __future__ import annotations

import sys
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress


def wants_progress(verbose: bool | str) -> bool:
    """``"auto"``: only where somebody is looking."""
    return sys.stderr.isatty() if verbose == "auto" else bool(verbose)


class TrainingBar:
    """A context manager that `nkcme.training.train` can tell of each chunk."""

    def __init__(self, n_steps: int, title: str = "fit"):
        self._bar = RichProgress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[values]}"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
        )
        self._task = self._bar.add_task(title, total=n_steps, values="")

    def __enter__(self) -> TrainingBar:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()

    def update(self, step: int, values: dict[str, float]) -> None:
        text = "  ".join(f"{name} {value:.4g}" for name, value in values.items())
        self._bar.update(self._task, completed=step, values=text)
