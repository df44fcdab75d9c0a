"""Models of y and of log y on tables with y above zero, and what ``transform="auto"`` chooses.

``python -m benchmarks log-transform`` adds rows to results/log-transform-trial-DEVICE.jsonl: for
each table the scores of `NKCME` with either transform on fold 0, with at most some training rows,
and the same for one table of some simulated designs; and for tables and simulated tables the
comparison of quick models by which "auto" decides.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.experiments.protocols.tables import predict
from benchmarks.experiments.table_files import TableFile, find_tables, load_table
from benchmarks.experiments.table_scores import score
from benchmarks.provenance import device_name, provenance
from benchmarks.timing import timed
from nkcme import NKCME
from nkcme.estimators.nkcme.law_recipe import TransformRecipe
from nkcme.estimators.nkcme.transform_choice import compare
from nkcme.tables.encoding import TableEncoder

#: Rows and seeds of simulated tables.
SIZES, SEEDS = (1000, 5000), range(5)

#: Designs on which models are fitted, for the first seed and size, and their test rows.
FITTED, N_TEST = (
    ("log-normal, noise 0.5", "gamma, multiplied", "gamma, added to a wide range"),
    5000,
)

Draw = Callable[[np.ndarray, np.random.Generator], np.ndarray]


def _trend(X: np.ndarray) -> np.ndarray:
    return X[:, 0] + 0.5 * np.sin(2 * X[:, 1])


#: Simulated y given four standard normal inputs: noise that multiplies y, or that adds to it.
DESIGNS: dict[str, Draw] = {
    "log-normal, noise 0.2": lambda X, r: np.exp(1 + _trend(X) + 0.2 * r.normal(size=len(X))),
    "log-normal, noise 0.5": lambda X, r: np.exp(1 + _trend(X) + 0.5 * r.normal(size=len(X))),
    "log-normal, noise changes with x": lambda X, r: np.exp(
        2 + _trend(X) + 0.3 * np.exp(0.5 * X[:, 2]) * r.normal(size=len(X))
    ),
    "gamma, multiplied": lambda X, r: np.exp(_trend(X)) * r.gamma(4.0, 0.25, len(X)),
    "gamma, added": lambda X, r: 3 + np.clip(X[:, 0], -2.5, 2.5) + r.gamma(2.0, 0.5, len(X)),
    "gamma, added to a wide range": lambda X, r: (
        0.2 + 1.5 * (np.clip(X[:, 0], -2, 3) + 2) + r.gamma(2.0, 0.5, len(X))
    ),
    "normal, added": lambda X, r: np.maximum(10 + 3 * X[:, 0] + r.normal(size=len(X)), 0.1),
}


def simulated_choices() -> Iterator[dict[str, Any]]:
    """The comparison of quick models on each design."""
    for design, draw in DESIGNS.items():
        for n in SIZES:
            for seed in SEEDS:
                rng = np.random.default_rng(seed)
                X = rng.normal(size=(n, 4))
                about = {"design": design, "rows": n, "seed": seed}
                y = draw(X, rng)
                yield about | _choice(X, y, seed)
                if design in FITTED and (n, seed) == (SIZES[0], SEEDS[0]):
                    X_test = rng.normal(size=(N_TEST, 4))
                    yield from _models(about, pd.DataFrame(X), y, X_test, draw(X_test, rng))


def table_rows(file: TableFile, most_rows: int) -> Iterator[dict[str, Any]]:
    """The comparison of quick models, and the scores of models of y and of log y, on fold 0."""
    table = load_table(file, 10)
    train, test = table.part(0, most_rows)
    X, y, X_test, y_test = table.X.iloc[train], table.y[train], table.X.iloc[test], table.y[test]
    about = {"table": file.name, "rows": len(train), "test_rows": len(test), "fold": 0}
    encoded = TableEncoder.fit(X, standardize="robust").transform(X)
    yield about | _choice(encoded, y, 0)
    yield from _models(about, X, y, X_test, y_test)


def _models(
    about: dict[str, Any], X: Any, y: np.ndarray, X_test: Any, y_test: np.ndarray
) -> Iterator[dict[str, Any]]:
    """The scores of a model of y and of one of log y."""
    for transform in ("none", "log"):
        model = NKCME(transform=transform, random_state=0)
        _, seconds = timed(partial(model.fit, X, y))
        scored = score(y_test, predict(model, pd.DataFrame(X_test), y_test)[0])
        yield about | {"transform": transform, "fit_seconds": seconds, **scored}


def _choice(x: np.ndarray, y: np.ndarray, seed: int) -> dict[str, Any]:
    recipe = TransformRecipe()
    found, seconds = timed(
        lambda: compare(x.astype(np.float32), y[:, None], np.ones(len(y)), seed, recipe)
    )
    chosen = "log" if found.is_clear(recipe) else "none"
    return {"chosen": chosen, **found._asdict(), "choice_seconds": seconds}


def main(
    folder: Path | None, names: Sequence[str], most_rows: int, simulated: bool, out: Path
) -> None:
    """Add a row for each comparison and each model, and print it."""
    files = find_tables(folder, names=names) if names else []
    path = out / f"log-transform-trial-{device_name()}.jsonl"
    out.mkdir(parents=True, exist_ok=True)
    sources = [table_rows(file, most_rows) for file in files]
    sources += [simulated_choices()] if simulated else []
    for rows in sources:
        for row in rows:
            print(json.dumps(row), flush=True)
            with path.open("a", encoding="utf-8") as handle:
                handle.write(json.dumps(row | provenance()) + "\n")
    print(f"Wrote {path}")
