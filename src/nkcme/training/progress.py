"""Progress bars on standard error: training (steps, loss, bandwidth, time left) and downloads."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress


def wants_progress(verbose: bool | str) -> bool:
    """``"auto"``: only where somebody is looking."""
    return sys.stderr.isatty() if verbose == "auto" else bool(verbose)


class _Bar:
    """A bar that is there while its context lasts."""

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


class TrainingBar(_Bar):
    """`nkcme.training.loop.train` can tell it of each chunk."""

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
        text = "  ".join(f"{name} {value:.4g}" for name, value in values.items())
        self._bar.update(self._task, completed=step, values=text)


class DownloadBar(_Bar):
    """Counts the files of a data set, and the bytes as they come."""

    def __init__(self, n_files: int, title: str, visible: bool):
        self._bar = RichProgress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[count]}"),
            console=Console(stderr=True),
            disable=not visible,
        )
        self._n_files = n_files
        self._n_done = 0
        self._task = self._bar.add_task(title, total=n_files, count="")

    def on_bytes(self, received: int, total: int | None) -> None:
        """So much of the current file is here; the server may not have said how much it is."""
        share = min(received / total, 1.0) if total else 0.0
        count = f"{self._n_done}/{self._n_files} files, {received / 1e6:.1f} MB of the next"
        self._bar.update(self._task, completed=self._n_done + share, count=count)

    def on_file(self) -> None:
        """The current file is done."""
        self._n_done += 1
        count = f"{self._n_done}/{self._n_files} files"
        self._bar.update(self._task, completed=self._n_done, count=count)
