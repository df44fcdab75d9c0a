"""What `NKCME` does where the user does not say: what suits so many rows, inputs and outputs.

Found by trial on the toy data (5,000 rows), on Boston, Concrete and Energy (450 to 930) and, what
concerns a centre, on all UCI sets; see docs/findings.md.
"""

from __future__ import annotations

import numpy as np

#: Into how many parts rows are dealt where members are cross-fitted.
N_PARTS = 5

#: Rows below which none are held out.
MIN_ROWS = 20


def default_weight_decay(n_rows: int, n_inputs: int, n_outputs: int = 1) -> float:
    """What keeps a network from learning a small or wide table by heart; next to nothing where
    there are thousands of rows for each input. Four times that for several outputs, where each of
    many cells has few rows to tell how its probability moves with x."""
    decay = (120 * n_inputs / n_rows) ** 0.8
    return min(3.0, decay if n_outputs == 1 else 4.0 * decay)


def default_bandwidth_floor(n_rows: int) -> float:
    """One spacing where rows are many; wider where there are too few to fill so fine a grid."""
    return float(np.clip((5000 / n_rows) ** 0.6, 1.0, 10.0))


def default_members(n_rows: int) -> int:
    """Two for each part, but for tables that are long to learn from once."""
    return 2 if n_rows <= 100_000 else 1


def beyond_doubt(n_rows: int) -> float:
    """The share of y that a centre must explain for it to be better than none without comparison.
    Fixed atoms take many rows to learn what a centre says at once."""
    return 0.5 if n_rows < 2000 else 0.95


def default_n_atoms(n_outputs: int) -> int:
    """More where a cell of several outputs takes the place of an interval."""
    return 100 if n_outputs == 1 else 300
