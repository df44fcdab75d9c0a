"""The text of a batch of distributions: how many rows, and the first few in numbers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import numpy as np

from nkcme.number_text import written

if TYPE_CHECKING:
    from nkcme.distributions.base import Distribution

#: Rows, and outputs of a row, that are described.
_ROWS, _OUTPUTS = 3, 4

#: The coverage of the intervals.
_COVERAGE = 0.9


class DescribedRows(ABC):
    """The `repr` of a distribution: its class, its number of rows, and a line for each of a few."""

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """The number of distributions."""

    @property
    @abstractmethod
    def n_outputs(self) -> int:
        """The dimension d of y."""

    def __repr__(self) -> str:
        n = self.n_rows
        lines = [f"{type(self).__name__}({n:,} row{'s' * (n != 1)}, {self._details()})"]
        lines += [f"  row {i}: {text}" for i, text in enumerate(_first_rows(self))]  # type: ignore[arg-type]
        if n > _ROWS:
            lines.append(f"  and {n - _ROWS:,} more")
        return "\n".join(lines)

    def _details(self) -> str:
        """What the first line has beside the number of rows."""
        return f"{self.n_outputs} output{'s' * (self.n_outputs != 1)}"


def _first_rows(dist: Distribution) -> list[str]:
    first = dist[: min(_ROWS, dist.n_rows)]
    if not first.n_rows:
        return []
    mean = first.mean()
    if dist.n_outputs > 1:  # which have no central interval
        pairs = zip(mean, first.std(), strict=True)
        return [f"mean {_listed(m)}, standard deviation {_listed(s)}" for m, s in pairs]
    ends = first.interval(_COVERAGE)
    return [
        f"mean {written(m)}, {100 * _COVERAGE:.0f} % interval {written(low)} to {written(high)}"
        for m, (low, high) in zip(mean, ends, strict=True)
    ]


def _listed(values: np.ndarray) -> str:
    shown = ", ".join(map(written, values[:_OUTPUTS]))
    return f"({shown}{', ...' if len(values) > _OUTPUTS else ''})"
