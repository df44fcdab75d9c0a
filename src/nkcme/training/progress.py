"""Progress bars on standard error."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    ProgressColumn,
    Task,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as RichProgress
from rich.text import Text


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
        self._bar.update(self._task, completed=step, values=_as_text(values))


class StagesBar(Bar):
    """One bar for work of several stages, with the time left of the whole.

    Parameters
    ----------
    shares : dict of str to float
        About which share of the work each stage is, in their order. Stages may be left out, and may
        end before all of their steps are done: then the bar moves on.
    """

    def __init__(self, shares: dict[str, float]):
        self._shares = shares
        self._bar = RichProgress(
            TextColumn("fit: {task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[values]}"),
            _TimeLeft(),
            console=Console(stderr=True),
        )
        self._task = self._bar.add_task("start", total=sum(shares.values()), values="")

    def stage(self, name: str, n_steps: int) -> _Stage:
        """The progress of a stage, which begins now."""
        names = list(self._shares)
        before = sum(self._shares[other] for other in names[: names.index(name)])
        self._bar.update(self._task, description=name, completed=before, values="")
        return _Stage(self, before, self._shares[name], n_steps)

    def move(self, completed: float, values: dict[str, float]) -> None:
        """Show how much is done, and named values."""
        self._bar.update(self._task, completed=completed, values=_as_text(values))


class _TimeLeft(ProgressColumn):
    """The time left if the rest takes as long as what is done: stages differ in speed, and the last
    seconds of one say little about the next."""

    def render(self, task: Task) -> Text:
        """The text of the column."""
        seconds = time_left(task.elapsed, task.completed, task.total)
        if seconds is None:
            return Text("-:--:--", style="progress.remaining")
        hours, rest = divmod(round(seconds), 3600)
        return Text(f"{hours}:{rest // 60:02d}:{rest % 60:02d}", style="progress.remaining")


def time_left(elapsed: float | None, completed: float, total: float | None) -> float | None:
    """The seconds left at the mean speed so far; None where nothing is done."""
    if not elapsed or not total or completed <= 0:
        return None
    return elapsed * max(total - completed, 0.0) / completed


class _Stage:
    """The steps of one stage, as a part of the bar."""

    def __init__(self, bar: StagesBar, before: float, share: float, n_steps: int):
        self._bar, self._before, self._share, self._n_steps = bar, before, share, n_steps

    def update(self, step: int, values: dict[str, float]) -> None:
        """Show the number of steps done and named values."""
        self._bar.move(self._before + self._share * step / max(self._n_steps, 1), values)


def _as_text(values: dict[str, float]) -> str:
    return "  ".join(f"{name} {value:.4g}" for name, value in values.items())
