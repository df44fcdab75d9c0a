"""Cross-fitting: rows dealt into parts, again and again, so that each is judged by strangers.

A member of an ensemble trains on all parts of one deal but one. In every deal each row is left out
by exactly one member; what those members say of it, one a deal, is *out of part*: an honest
prediction, as for a row that is new. For rows that are new indeed all members speak.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np


class Parts(NamedTuple):
    """The part of each row in each deal. Member ``deal * n_parts + part`` leaves that part out."""

    part: np.ndarray  # (n_deals, n_rows)
    n_parts: int

    @classmethod
    def deal(cls, n_rows: int, n_parts: int, n_deals: int, seed: int) -> Parts:
        """Parts of equal size, up to one row; fewer than asked for where rows are too few."""
        n_parts = max(min(n_parts, n_rows), 1)
        rng = np.random.default_rng(seed)
        deck = np.arange(n_rows) % n_parts
        return cls(np.stack([rng.permutation(deck) for _ in range(n_deals)]), n_parts)

    @property
    def n_deals(self) -> int:
        return len(self.part)

    @property
    def n_members(self) -> int:
        return self.n_deals * self.n_parts

    def rows_of(self, member: int) -> np.ndarray:
        """What a member trains on."""
        deal, part = divmod(member, self.n_parts)
        return np.flatnonzero(self.part[deal] != part)

    def left_out_by(self, member: int) -> np.ndarray:
        """What a member has not seen."""
        deal, part = divmod(member, self.n_parts)
        return np.flatnonzero(self.part[deal] == part)

    def out_of_part(self, deal: int, say: Callable[[int, np.ndarray], np.ndarray]) -> np.ndarray:
        """What the members of a deal say, each of the rows it has not seen: (n_rows, ...).

        ``say(member, rows)`` gives (len(rows), ...).
        """
        members = range(deal * self.n_parts, (deal + 1) * self.n_parts)
        rows = [self.left_out_by(member) for member in members]
        said = [say(member, own) for member, own in zip(members, rows, strict=True)]
        return np.concatenate(said)[np.argsort(np.concatenate(rows))]
