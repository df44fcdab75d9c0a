"""Constants of the default that were first tuned on scored data, varied on development tables.

``python -m benchmarks constants`` fits `NKCME` with the default recipe and with one constant
changed at a time, and adds the scores on fold 0 of each table, with at most some training rows, to
results/constants-trial-DEVICE.jsonl. A finished row is not run again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.experiments.protocols.tables import predict
from benchmarks.experiments.table_files import find_tables, load_table
from benchmarks.experiments.table_scores import score
from benchmarks.provenance import device_name, provenance
from benchmarks.timing import timed
from nkcme import NKCME, Recipe
from nkcme.errors import NkcmeError

Change = Callable[[Recipe], Recipe]


def _embedding(**values: Any) -> Change:
    return lambda recipe: replace(recipe, embedding=replace(recipe.embedding, **values))


def _boosting(**values: Any) -> Change:
    def change(recipe: Recipe) -> Recipe:
        boosting = replace(recipe.location.boosting, **values)
        return replace(recipe, location=replace(recipe.location, boosting=boosting))

    return change


def _location(**values: Any) -> Change:
    return lambda recipe: replace(recipe, location=replace(recipe.location, **values))


def _networks(**values: Any) -> Change:
    def change(recipe: Recipe) -> Recipe:
        networks = tuple(replace(one, **values) for one in recipe.location.networks)
        return replace(recipe, location=replace(recipe.location, networks=networks))

    return change


def _marks(n: int) -> Change:
    def change(recipe: Recipe) -> Recipe:
        networks = tuple(
            replace(one, stopping=replace(one.stopping, marks_per_doubling=n))
            for one in recipe.location.networks
        )
        return replace(recipe, location=replace(recipe.location, networks=networks))

    return change


def _recipe(**values: Any) -> Change:
    return lambda recipe: replace(recipe, **values)


#: The default, and the default with one constant changed. Names say the new value.
VARIANTS: dict[str, Change] = {
    "default": lambda recipe: recipe,
    "embedding.decay_factor 40": _embedding(decay_factor=40.0),
    "embedding.decay_factor 360": _embedding(decay_factor=360.0),
    "embedding.floor_rows 1500": _embedding(floor_rows=1500),
    "embedding.floor_rows 15000": _embedding(floor_rows=15_000),
    "embedding.quantile_share 0.2": _embedding(quantile_share=0.2),
    "embedding.quantile_share 0.8": _embedding(quantile_share=0.8),
    "embedding.n_atoms 50": _embedding(n_atoms=50),
    "embedding.n_atoms 200": _embedding(n_atoms=200),
    "networks.weight_decay 0.003": _networks(weight_decay=0.003),
    "networks.weight_decay 0.1": _networks(weight_decay=0.1),
    "networks.batch_size 64": _networks(batch_size=64),
    "networks.batch_size 128": _networks(batch_size=128),
    "networks.hidden 128": _networks(hidden=(128, 128, 128)),
    "networks 128 at a rate of 0.005 with a decay of 0.01": _networks(
        hidden=(128, 128, 128), learning_rate=5e-3, weight_decay=0.01
    ),
    "boosting.rows_per_leaf 50": _boosting(rows_per_leaf=50),
    "boosting.rows_per_leaf 200": _boosting(rows_per_leaf=200),
    "boosting.n_trees 300": _boosting(n_trees=300),
    "boosting.min_samples_leaf 2": _boosting(min_samples_leaf=2),
    "boosting.min_samples_leaf 15": _boosting(min_samples_leaf=15),
    "boosting.l2 0.1": _boosting(l2=0.1),
    "boosting.l2 10": _boosting(l2=10.0),
    "boosting.least_bins 255": _boosting(least_bins=255),
    "boosting.most_bins 63": _boosting(most_bins=63),
    "boosting.most_bins 127": _boosting(least_bins=127, most_bins=127),
    "networks.stopping.marks_per_doubling 1": _marks(1),
    "location.hopeless_ratio 0": _location(hopeless_ratio=0.0),
    "location.hopeless_ratio 0.4": _location(hopeless_ratio=0.4),
    "n_folds 10": _recipe(n_folds=10),
    "n_repeats 1": _recipe(n_repeats=1),
    "n_repeats 3": _recipe(n_repeats=3),
    "surely_explained 0.8": _recipe(surely_explained=0.8),
    "surely_explained 1": _recipe(surely_explained=1.0),
    "surely_explained_small 0.95": _recipe(surely_explained_small=0.95),
}


def main(
    folder: Path | None,
    names: Sequence[str],
    variants: Sequence[str],
    most_rows: int,
    seed: int,
    out: Path,
) -> None:
    """Add a row for each table and variant, and print it."""
    unknown = [name for name in variants if name not in VARIANTS]
    if unknown:
        known = ", ".join(VARIANTS)
        raise NkcmeError(f"--variants must be names from {known}; got {unknown[0]!r}")
    path = out / f"constants-trial-{device_name()}.jsonl"
    out.mkdir(parents=True, exist_ok=True)
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    finished = [tuple(map(json.loads(line).get, _KEY)) for line in lines]
    for name in variants or VARIANTS:
        for file in find_tables(folder, names=names):
            table = load_table(file, 10)
            train, test = table.part(0, most_rows)
            about = dict(zip(_KEY, (name, file.name, len(train), seed), strict=True))
            if tuple(about.values()) in finished:
                continue
            model = NKCME(recipe=VARIANTS[name](Recipe()), random_state=seed)
            _, seconds = timed(partial(model.fit, table.X.iloc[train], table.y[train]))
            y = table.y[test]
            row = about | {"test_rows": len(test), "fit_seconds": seconds}
            row |= score(y, predict(model, table.X.iloc[test], y)[0])
            print(json.dumps(row), flush=True)
            with path.open("a", encoding="utf-8") as handle:
                handle.write(json.dumps(row | provenance()) + "\n")
    print(f"Wrote {path}")


#: What tells rows apart.
_KEY = ("variant", "table", "rows", "seed")
