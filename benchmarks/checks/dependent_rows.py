"""Coverage of new groups and of later rows, where rows of a table depend on each other.

``python -m benchmarks dependent-rows`` fits `NKCME` with ``groups=`` or ``times=`` to simulated
tables, scores it on new groups or later rows, and adds a row for each table to
results/dependent-rows-DEVICE.jsonl. A finished row is not run again. With ``--ignored`` the same
tables are fitted as if rows were independent, and with ``--variant`` by another recipe, which is to
be chosen on `TRIAL_DESIGNS`.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.experiments.simulations.dependent_designs import (
    DESIGNS,
    TRIAL_DESIGNS,
    DependentDesign,
)
from benchmarks.experiments.table_scores import INTERVALS, interval_shares
from benchmarks.provenance import device_name, provenance
from benchmarks.timing import timed
from nkcme import NKCME, Recipe
from nkcme.errors import NkcmeError

#: What tells rows apart.
_KEY = ("design", "size", "seed", "respected", "variant")

_RECIPE = Recipe()

#: Recipes by the names of variants; None is the default.
VARIANTS = {
    None: _RECIPE,
    "random-folds": replace(_RECIPE, law=replace(_RECIPE.law, folds_by_time="random")),
    "block-folds": replace(_RECIPE, law=replace(_RECIPE.law, folds_by_time="blocks")),
    "many-folds": replace(_RECIPE, n_folds=12),
}


def main(names: Sequence[str], n_seeds: int, ignored: bool, variant: str | None, out: Path) -> None:
    """Add a row for each table, print it, and the mean over seeds at the end."""
    known = {design.name: design for design in (*DESIGNS, *TRIAL_DESIGNS)}
    if variant not in VARIANTS:
        raise NkcmeError(f"--variant must be one of {', '.join(filter(None, VARIANTS))}")
    unknown = [name for name in names if name not in known]
    if unknown:
        raise NkcmeError(f"--designs must be names from {', '.join(known)}; got {unknown[0]!r}")
    path = out / f"dependent-rows-{device_name()}.jsonl"
    out.mkdir(parents=True, exist_ok=True)
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    rows = {tuple(map(row.get, _KEY)): row for row in map(json.loads, lines)}
    for design in (known[name] for name in names or [one.name for one in DESIGNS]):
        for size in design.sizes:
            for seed in range(n_seeds):
                key = (design.name, size, seed, not ignored, variant)
                if key in rows:
                    continue
                about = dict(zip(_KEY, key, strict=True))
                model = NKCME(recipe=VARIANTS[variant], random_state=seed)
                rows[key] = about | score(design, size, seed, model, respected=not ignored)
                print(json.dumps(rows[key]), flush=True)
                with path.open("a", encoding="utf-8") as handle:
                    handle.write(json.dumps(rows[key] | provenance()) + "\n")
    print(summary(list(rows.values())))
    print(f"Wrote {path}")


def score(
    design: DependentDesign, size: int, seed: int, model: NKCME, *, respected: bool
) -> dict[str, Any]:
    """The scores of one table, by a fit that knows of groups and times or by one that does not."""
    number = [one.name for one in (*DESIGNS, *TRIAL_DESIGNS)].index(design.name)
    table = design.make(size, np.random.default_rng([number, size, seed]))
    known: dict[str, Any] = (
        {("times" if design.by_time else "groups"): table.codes} if respected else {}
    )
    _, seconds = timed(lambda: model.fit(table.X, table.y, **known))
    predicted = model.predict_dist(table.X_test)
    low, high = predicted.ppf(np.array(INTERVALS["coverage"])).T
    upto = predicted.cdf(table.y_test)
    return {
        "rows": len(table.y),
        "test_rows": len(table.y_test),
        "fit_seconds": seconds,
        "crps": float(predicted.crps(table.y_test).mean()),
        **interval_shares(np.stack([upto - predicted.pmf(table.y_test), upto], axis=1)),
        "width": float(np.mean(high - low)),
    }


def summary(rows: Sequence[dict[str, Any]]) -> str:
    """One line for each design and size: coverage of 90 % intervals, its mean over seeds and the
    standard error of that, the least and the most, and the mean CRPS."""
    found = defaultdict(list)
    for row in rows:
        found[row["design"], row["size"], row["respected"], row.get("variant")].append(row)
    lines = ["design size respected variant seeds coverage error least most crps"]
    for (design, size, respected, variant), of_design in found.items():
        coverage = np.array([row["coverage"] for row in of_design])
        n = len(coverage)
        error = coverage.std(ddof=1) / np.sqrt(n) if n > 1 else np.nan
        crps = np.mean([row["crps"] for row in of_design])
        lines.append(
            f"{design} {size} {respected} {variant or '-'} {n} {coverage.mean():.3f} {error:.3f} "
            f"{coverage.min():.3f} {coverage.max():.3f} {crps:.4g}"
        )
    return "\n".join(lines)
