"""Progress bars on standard error."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress


def wants_progress(verbose: bool | str) -> bool:
    """Whether to show a bar; with ``"auto"``, only on a terminal."""
    return sys.stderr.isatty() if verbose == "auto" else bool(verbose)


def show_seconds(total: float, compilation: float) -> None:
    """Say how long a fit took, and how much of it programs took to compile."""
    text = f"fitted in {total:.1f} s, of which {compilation:.1f} s compilation"
    Console(stderr=True).print(text, highlight=False)


class Bar:
    """A bar that is shown within its context."""

    _bar: RichProgress

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()


class TrainingBar(Bar):
    """Steps done, the latest values (loss, bandwidth) and the time left of a training run."""

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

    def update(self, step: int, values: dict[str, float]) -> None:
        """Show the number of steps done and named values."""
        text = "  ".join(f"{name} {value:.4g}" for name, value in values.items())
        self._bar.update(self._task, completed=step, values=text)
