"""The command `nkcme predict`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nkcme.cli.loading import Note, load_with_features
from nkcme.errors import NkcmeError
from nkcme.tables.files import to_frame
from nkcme.tables.table_options import UNKNOWN, TableOptions


def predict_table(
    model_path: Path,
    table: Path,
    *,
    quantiles: Sequence[float] = (),
    interval: float | None = None,
    samples: int = 0,
    seed: int = 0,
    options: TableOptions = UNKNOWN,
    note: Note,
) -> Any:
    """A frame with the predicted mean of each row of a table, and the columns requested."""
    if not all(0 <= level <= 1 for level in quantiles):
        raise NkcmeError(
            f"quantiles must lie between 0 and 1; got {', '.join(map(str, quantiles))}"
        )
    if interval is not None and not 0 < interval < 1:
        raise NkcmeError(f"the interval's coverage must lie between 0 and 1; got {interval:g}")
    model, X = load_with_features(model_path, table, note, options)
    columns = {"mean": model.predict(X).reshape(-1)}
    if quantiles:
        values = model.predict_quantiles(X, list(quantiles))
        columns |= {f"q{level!r}": values[:, j] for j, level in enumerate(quantiles)}
    if interval is not None:
        lower, upper = model.predict_interval(X, interval).T
        columns |= {f"lower_{interval!r}": lower, f"upper_{interval!r}": upper}
    if samples:
        drawn = model.sample(X, samples, random_state=seed)
        columns |= {f"sample_{i}": sample for i, sample in enumerate(drawn, start=1)}
    return to_frame(columns)
