"""The start of new processes: imports, `nkcme info`, and commands that are refused.

``python -m benchmarks start-speed`` writes results/start-DEVICE.json. Beside the seconds on the
clock stands the processor time, which other work on the machine changes less.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import nkcme
from benchmarks.provenance import commit_of, device_name, write_result
from nkcme import NKCME

_ROWS = 300


def main(repeats: int, before: Path | None, out: Path) -> None:
    """Measure every case in new processes of this tree and, with ``before``, of another one."""
    trees = {"after": Path(nkcme.__file__).parents[1]}
    if before is not None:
        trees["before"] = before / "src"
    with tempfile.TemporaryDirectory() as folder:
        cases = _cases(Path(folder))
        seconds: dict[str, dict[str, list[tuple[float, float]]]] = {
            name: {tree: [] for tree in trees} for name in cases
        }
        for _ in range(1 + repeats):  # the first fills the cache of files and is not counted
            for name, command in cases.items():
                for tree, source in trees.items():
                    seconds[name][tree].append(_run(command, source))
    measured: dict[str, Any] = {
        name: {tree: _summary(runs[1:]) for tree, runs in of_case.items()}
        for name, of_case in seconds.items()
    }
    for tree in trees:
        bare = measured["import numpy"][tree]["least_seconds"]
        load = measured["from nkcme import load"][tree]
        load["least_seconds_over_numpy"] = load["least_seconds"] - bare
    print(json.dumps(measured, indent=2))
    commits = {tree: commit_of(source) for tree, source in trees.items()}
    results = {"repeats": repeats, "commits": commits, "cases": measured}
    write_result(f"start-{device_name()}", "python -m benchmarks start-speed", results, out)


def _cases(folder: Path) -> dict[str, list[str]]:
    """The arguments of Python for each case, with the files that they need."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(_ROWS, 3))
    y = X[:, 0] + rng.normal(size=_ROWS)
    model, damaged = folder / "model", folder / "damaged"
    NKCME(random_state=0).fit(X, y).save(model)
    damaged.mkdir()
    for file in model.iterdir():
        content = file.read_bytes()
        (damaged / file.name).write_bytes(content if file.suffix == ".json" else content[:-100])
    table, text = folder / "table.csv", folder / "text.csv"
    rows = [f"{','.join(map(str, x))},{value}" for x, value in zip(X, y, strict=True)]
    table.write_text("\n".join(["a,b,c,y", *rows]) + "\n", encoding="utf-8")
    text.write_text("a,b,c\n" + "1,2,n/k\n" * _ROWS, encoding="utf-8")
    fit = ["fit", str(table), "--out", str(folder / "new")]
    commands = {
        "nkcme --help": ["--help"],
        "nkcme info": ["info", str(model)],
        "info of a damaged model": ["info", str(damaged)],
        "fit: no such table": ["fit", "absent.csv", "--target", "y", *fit[2:]],
        "fit: no such column": [*fit, "--target", "z"],
        "fit: no such kernel": [*fit, "--target", "y", "--kernel", "cubic"],
        "fit: y outside the bounds": [*fit, "--target", "y", "--bounds", "100,"],
        "predict: text instead of numbers": ["predict", str(model), str(text)],
    }
    return {
        "import numpy": ["-c", "import numpy"],
        "from nkcme import load": ["-c", "from nkcme import load"],
        **{name: ["-m", "nkcme", *arguments] for name, arguments in commands.items()},
    }


def _run(command: list[str], source: Path) -> tuple[float, float]:
    """The seconds of a process on the clock, and on the processor."""
    environment = os.environ | {"PYTHONPATH": str(source)}
    before, start = os.times(), time.perf_counter()
    done = subprocess.run([sys.executable, *command], capture_output=True, env=environment)
    seconds, after = time.perf_counter() - start, os.times()
    if done.returncode not in (0, 2):
        raise RuntimeError(f"{command} failed: {done.stderr.decode()[-500:]}")
    spent = sum(after[2:4]) - sum(before[2:4])  # user and system time of children
    return seconds, spent


def _summary(runs: list[tuple[float, float]]) -> dict[str, float]:
    seconds, spent = zip(*runs, strict=True)
    return {
        "median_seconds": float(np.median(seconds)),
        "least_seconds": min(seconds),
        "median_processor_seconds": float(np.median(spent)),
    }
