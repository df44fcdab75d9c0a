"""The command `nkcme warm-up`: compiles programs before they are needed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from nkcme.errors import NkcmeError
from nkcme.estimators import NKCME
from nkcme.estimators.nkcme.recipe import DEFAULT, Recipe, StoppingRecipe
from nkcme.training.compilation import compilation_cache
from nkcme.training.progress import TrainingBar, wants_progress

#: Rows of the predictions after a fit: for each number there is a program.
_PREDICTED = (1, 100)


def warm_up(rows: Sequence[int], columns: Sequence[int]) -> dict[str, Any]:
    """Compile the programs of the default for tables of these sizes, into the cache on disk.

    Tables are generated and fitted with as few steps as the programs allow. What was compiled when
    Ctrl-C is pressed stays in the cache.
    """
    cache = compilation_cache()
    if cache is None:
        raise NkcmeError(
            "there is no compilation cache to fill: it is disabled, or its directory is not "
            "writable"
        )
    before, start = _count_programs(cache), time.perf_counter()
    sizes = list(product(rows, columns))
    bar = TrainingBar(len(sizes), "warm-up") if wants_progress("auto") else nullcontext()
    with bar as shown:
        for done, (n_rows, n_columns) in enumerate(sizes, start=1):
            _fit_and_predict(n_rows, n_columns)
            if shown is not None:
                shown.update(done, {"rows": n_rows, "columns": n_columns})
    return {
        "cache": str(cache),
        "tables": len(sizes),
        "seconds": time.perf_counter() - start,
        "new_programs": _count_programs(cache) - before,
        "programs": _count_programs(cache),
    }


def _fit_and_predict(n_rows: int, n_columns: int) -> None:
    """Fit a table that leaves the default undecided, so that it trains all that it may."""
    rng = np.random.default_rng([n_rows, n_columns])
    X = rng.normal(size=(n_rows, n_columns))
    y = 0.5 * X[:, 0] + rng.normal(size=n_rows)
    model = NKCME(recipe=_short(DEFAULT), random_state=0, verbose=False).fit(X, y)
    for n in _PREDICTED:
        model.predict_interval(X[:n])


def _short(recipe: Recipe) -> Recipe:
    """The same programs, which run for one chunk, and few trees beside them."""

    def once(stopping: StoppingRecipe) -> StoppingRecipe:
        return replace(stopping, most=stopping.first)

    location, embedding = recipe.location, recipe.embedding
    return replace(
        recipe,
        location=replace(
            location,
            # All networks are refined, as those of exact tables are.
            networks=tuple(
                replace(n, stopping=once(n.stopping), precise=np.inf, refining=1.0)
                for n in location.networks
            ),
            boosting=replace(location.boosting, n_trees=2),
            forest=replace(location.forest, n_trees=2),
        ),
        embedding=replace(embedding, stopping=once(embedding.stopping)),
    )


def _count_programs(cache: Path) -> int:
    return sum(1 for file in cache.iterdir() if file.name.endswith("-cache"))
