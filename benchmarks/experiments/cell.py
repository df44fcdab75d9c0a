"""A cell of an experiment: one method on one data set, with all its seeds or folds."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from nkcme.errors import NkcmeError

#: Parameters of NKCME that its first version did not have, at the values that describe what that
#: version did. Rows of that time lack them, so they are left out of fingerprints. These values are
#: part of the fingerprints on disk: do not replace them by a preset of the library.
_FIRST_VERSION: dict[str, Any] = {
    "center": "none",
    "n_members": 1,
    "recalibrate": False,
    "atoms": "grid",
}

#: Data sets that are run only when they are named, because their download is large.
ON_REQUEST = ("year",)


@dataclass(frozen=True)
class Cell:
    """One method on one data set, for the seeds or folds 0 to n_runs - 1."""

    experiment: str
    dataset: str
    method: str
    estimator: str
    parameters: dict[str, Any]
    protocol: dict[str, Any]
    n_runs: int

    @property
    def name(self) -> str:
        """The name of the file that holds its rows, without extension."""
        return f"{self.dataset}--{self.method}"

    @property
    def fingerprint(self) -> str:
        """A hash of estimator, parameters and protocol: a row with another one is not of this cell.

        Parameters of NKCME at the values of `_FIRST_VERSION` are left out, so that rows written
        before these parameters existed still match.
        """
        implied = _FIRST_VERSION if self.estimator == "NKCME" else {}
        own = {k: v for k, v in self.parameters.items() if k not in implied or v != implied[k]}
        text = json.dumps([self.estimator, own, self.protocol], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def owns(self, row: dict[str, Any]) -> bool:
        """Whether a row is a result of this cell as it is specified now."""
        return bool(row["fingerprint"] == self.fingerprint)


def choose(
    cells: Sequence[Cell],
    *,
    methods: Sequence[str] = (),
    sets: Sequence[str] = (),
    n_runs: int | None = None,
) -> list[Cell]:
    """The cells of the given methods and data sets (default: all), with at most ``n_runs`` runs."""
    for what, chosen, known in (
        ("method", methods, {cell.method: None for cell in cells}),
        ("data set", sets, {cell.dataset: None for cell in cells}),
    ):
        if unknown := [name for name in chosen if name not in known]:
            raise NkcmeError(
                f"there is no {what} {unknown[0]!r} in this benchmark; choose from "
                f"{', '.join(known)}"
            )
    return [
        cell if n_runs is None else replace(cell, n_runs=min(n_runs, cell.n_runs))
        for cell in cells
        if (not methods or cell.method in methods)
        and (cell.dataset in sets if sets else cell.dataset not in ON_REQUEST)
    ]
