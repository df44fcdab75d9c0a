"""The default of this tree and that of another commit, fitted to the same folds side by side.

``python -m benchmarks commits ../before`` fits every fold in a new process of each tree,
with several random states, and adds a row for each fit to results/commits-DEVICE.jsonl. A finished
row is not run again. Initial weights alone move the CRPS of a fold by some percent, so it is the
mean over folds and random states, with its standard error, that says whether a change did harm.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import nkcme
from benchmarks.experiments.table_files import FoldedTable, find_tables, load_table
from benchmarks.provenance import commit_of, device_name, provenance
from nkcme.errors import NkcmeError

#: What a process of either tree runs; its arguments are the files of the rows, and a random state.
_PROGRAM = """
import json, sys
import numpy as np
import pandas as pd
from nkcme import NKCME
(X, y), (X_test, y_test) = (
    (table.drop(columns="__y__"), table["__y__"].to_numpy())
    for table in map(pd.read_parquet, sys.argv[1:3])
)
model = NKCME(random_state=int(sys.argv[3]), verbose=False).fit(X, y)
dist = model.predict_dist(X_test)
print(json.dumps({
    "crps": float(dist.crps(y_test).mean()),
    "rmse": float(np.sqrt(np.mean(np.square(dist.mean() - y_test)))),
    "fit_seconds": model.fit_seconds_["total"],
}))
"""

#: What tells rows apart.
_KEY = ("table", "fold", "seed", "commit_fitted")


def main(
    before: Path,
    folder: Path | None,
    names: Sequence[str],
    n_folds: int,
    seeds: Sequence[int],
    out: Path,
) -> None:
    """Add the missing rows, and print how the tables compare."""
    if not (before / "src" / "nkcme").is_dir():
        raise NkcmeError(
            f"{before} is no checkout of nkcme: it has no src/nkcme; make one with "
            "git worktree add DIRECTORY COMMIT"
        )
    trees = {commit_of(source): source for source in (before / "src", _own_source())}
    if len(trees) == 1:
        raise NkcmeError(f"both trees are of commit {next(iter(trees))}; check out another one")
    old, new = trees
    path = out / f"commits-{device_name()}.jsonl"
    out.mkdir(parents=True, exist_ok=True)
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    rows = [json.loads(line) for line in lines]
    finished = {tuple(row[key] for key in _KEY) for row in rows}
    for file in find_tables(folder, names=names):
        table = load_table(file, 10)
        for fold, seed in product(range(min(n_folds, table.n_folds)), seeds):
            missing = [name for name in trees if (file.name, fold, seed, name) not in finished]
            for name, fitted in _fits(table, fold, seed, {n: trees[n] for n in missing}):
                about = dict(zip(_KEY, (file.name, fold, seed, name), strict=True))
                rows.append(about | fitted | provenance())
                with path.open("a", encoding="utf-8") as handle:
                    handle.write(json.dumps(rows[-1]) + "\n")
        print(json.dumps(compared(file.name, old, new, rows)), flush=True)
    print(f"Wrote {path}")


def compared(table: str, before: str, after: str, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The mean of ln(after / before) over fits of the same fold and random state, in percent."""
    by_tree = [
        {
            (row["fold"], row["seed"]): row
            for row in rows
            if row["table"] == table and row["commit_fitted"] == commit
        }
        for commit in (before, after)
    ]
    both = sorted(by_tree[0].keys() & by_tree[1].keys())
    found: dict[str, Any] = {"table": table, "pairs": len(both)}
    for score in ("crps", "rmse", "fit_seconds"):
        values = [np.array([of_tree[key][score] for key in both]) for of_tree in by_tree]
        change = 100.0 * np.log(values[1] / values[0])
        found[f"{score}_change_percent"] = float(change.mean())
        if len(both) > 1:
            found[f"{score}_standard_error"] = float(change.std(ddof=1) / np.sqrt(len(both)))
    return found


def _own_source() -> Path:
    return Path(nkcme.__file__).parents[1]


def _fits(
    table: FoldedTable, fold: int, seed: int, trees: dict[str, Path]
) -> Iterator[tuple[str, dict[str, float]]]:
    """The scores of a fit by each tree."""
    with tempfile.TemporaryDirectory() as place:
        files = [str(Path(place, name)) for name in ("train.parquet", "test.parquet")]
        for file, chosen in zip(files, table.fold(fold), strict=True):
            table.X.iloc[chosen].assign(__y__=table.y[chosen]).to_parquet(file)
        for name, source in trees.items():
            done = subprocess.run(
                [sys.executable, "-c", _PROGRAM, *files, str(seed)],
                capture_output=True,
                text=True,
                env=os.environ | {"PYTHONPATH": str(source)},
            )
            if done.returncode:
                raise RuntimeError(f"a fit of {name} failed: {done.stderr[-500:]}")
            yield name, json.loads(done.stdout.splitlines()[-1])
