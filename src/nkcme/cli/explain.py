"""The command `nkcme explain`."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from nkcme.errors import NkcmeError

if TYPE_CHECKING:
    import numpy as np

    from nkcme.estimators.base import ConditionalEstimator


#: Loads a model, the features of a table, the true y and its name.
Load = Callable[[], tuple["ConditionalEstimator", Any, "np.ndarray", str]]


def explain_table(load: Load, *, quantiles: list[float], repeats: int, seed: int) -> dict[str, Any]:
    """The permutation importance of the inputs of a model on a table that holds the target."""
    from nkcme.evaluation import used_columns
    from nkcme.explain.permutation import permutation_importance
    from nkcme.explain.statistics import checked_levels

    checked_levels(quantiles)  # refused before anything is loaded
    model, X, y, name = load()
    X = used_columns(model, X)
    found = permutation_importance(
        model, X, y, quantiles=quantiles, n_repeats=repeats, random_state=seed
    )
    return {"target": name, "repeats": repeats, **found.to_dict()}


def explain_row(load: Load, row: int, *, quantiles: list[float], seed: int) -> dict[str, Any]:
    """The SHAP values of one row of a table, the others being the background."""
    # A command explains one row: numba would compile for longer than Python takes.
    os.environ.setdefault("NUMBA_DISABLE_JIT", "1")
    from nkcme.evaluation import used_columns
    from nkcme.explain.shap_values import need_shap, shap_values
    from nkcme.explain.statistics import checked_levels

    checked_levels(quantiles)
    need_shap()
    model, X, y, name = load()
    X = used_columns(model, X)
    if row > len(X):
        raise NkcmeError(
            f"the table has {len(X)} rows and no row {row}; choose one from 1 to {len(X)}"
        )
    statistics: list[str | float] = ["mean", "spread", *(quantiles or [0.05, 0.5, 0.95])]
    found = shap_values(
        model, X.iloc[[row - 1]], X, statistics=statistics, n_background=100, random_state=seed
    )
    order = sorted(range(len(X.columns)), key=lambda j: -abs(found.values[0, j, 0]))
    names = found.output_names

    def by_name(values: Any) -> dict[str, float]:
        return dict(zip(names, map(float, values), strict=True))

    return {
        "target": name,
        "row": row,
        "actual": float(y[row - 1]),
        "average": by_name(found.base_values[0]),
        "inputs": [
            {
                "name": found.feature_names[j],
                "value": str(found.data[0, j]),
                **by_name(found.values[0, j]),
            }
            for j in order
        ],
        "predicted": by_name(found.base_values[0] + found.values[0].sum(axis=0)),
    }
