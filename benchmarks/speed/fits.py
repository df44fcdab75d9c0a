"""How long a fit takes, and how much of it is compilation: each one in a new process.

``python -m benchmarks fit-speed`` writes results/fit-speed-DEVICE.json. A process with an empty
cache compiles all programs; one with a filled cache finds them on disk.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import nkcme
from benchmarks.experiments import peers
from benchmarks.experiments.cell import Cell
from benchmarks.experiments.methods import PEERS
from benchmarks.provenance import device_name, write_result
from nkcme import presets
from nkcme.datasets import load_toy, load_uci
from nkcme.datasets.uci import DATA_VARIABLE
from nkcme.datasets.uci_sets import UCI
from nkcme.errors import NkcmeError

Table = tuple[np.ndarray, np.ndarray]
Seconds = dict[str, float]

_PROGRAM = """
import json, sys, time
import numpy as np
from nkcme import NKCME
with np.load(sys.argv[1]) as table:
    X, y = table["X"], table["y"]
model = NKCME(**json.loads(sys.argv[2]), random_state=0, verbose=False).fit(X, y)
seconds = dict(model.fit_seconds_)
if len(sys.argv) > 3:
    begun = time.perf_counter()
    model.predict_quantiles(X[:1000], [0.05, 0.5, 0.95])
    seconds["first_prediction"] = time.perf_counter() - begun
    again = NKCME(**json.loads(sys.argv[2]), random_state=1, verbose=False).fit(X, y)
    seconds["second_fit"] = again.fit_seconds_["total"]
print(json.dumps(seconds))
"""

#: All folds of a UCI set in one call.
_FOLDS_PROGRAM = """
import json, sys
from nkcme import NKCME
from nkcme.datasets import load_uci
table = load_uci(sys.argv[1])
rows = [table.fold(k)[0] for k in range(table.n_folds)]
folds = [(table.X[own], table.y[own]) for own in rows]
models = NKCME(verbose=False).fit_many(folds, random_states=list(range(len(folds))))
print(json.dumps({"folds": len(folds), **models[0].fit_seconds_}))
"""

#: The peer that the fit of Concrete is compared with.
_PEER = "ngboost"


def main(cases: Sequence[str], repeats: int, out: Path) -> None:
    """Measure the cases with these names."""
    unknown = [name for name in cases if name not in CASES]
    if unknown:
        raise NkcmeError(f"there is no case {unknown[0]!r}; there are {', '.join(CASES)}")
    measured = {}
    for name in cases:
        measured[name] = CASES[name](repeats)
        print(name, json.dumps(measured[name], indent=2), flush=True)
    results = {"repeats": repeats, "cases": measured}
    write_result(f"fit-speed-{device_name()}", "python -m benchmarks fit-speed", results, out)


# --- the cases ----------------------------------------------------------------------------------


def concrete(repeats: int) -> dict[str, Any]:
    """The default with an empty and a filled cache, and NGBoost on the same rows."""
    source, table = _concrete()
    result = {"table": source, "shape": table[0].shape, **_empty_and_filled(table, {}, repeats)}
    result[_PEER] = _peer_seconds(table, repeats)
    return result


def ring(repeats: int) -> dict[str, Any]:
    """The default and the paper's recipe on 5,000 rows of the toy problem."""
    table = load_toy("ring").make(5000)
    return {
        "default": _empty_and_filled(table, {}, repeats),
        "paper": _empty_and_filled(table, presets.PAPER_TOY, repeats),
    }


def wide(repeats: int) -> dict[str, Any]:
    """The default on 5,000 generated rows with 20 columns."""
    return _empty_and_filled(generated(5000, 20), {}, repeats)


def large(repeats: int) -> dict[str, Any]:
    """The default on 100,000 generated rows with 10 columns."""
    return _empty_and_filled(generated(100_000, 10), {}, repeats)


def unseen(repeats: int) -> dict[str, Any]:
    """The default on tables of shapes never seen, each after one other table was fitted."""
    shapes = {"first": (1353, 5), "longer": (2700, 9), "wider": (3700, 26), "concrete": (927, 8)}
    tables = {name: generated(*shape) for name, shape in shapes.items()}
    found: dict[str, list[Seconds]] = {name: [] for name in shapes}
    for _ in range(repeats):
        for name in list(shapes)[1:]:
            with tempfile.TemporaryDirectory() as cache:
                found["first"].append(fit_seconds(tables["first"], {}, cache))
                found[name].append(fit_seconds(tables[name], {}, cache))
    return {name: {"shape": shapes[name], **median_seconds(runs)} for name, runs in found.items()}


def repeated(repeats: int) -> dict[str, Any]:
    """The default on 1,500 generated rows: a first fit, its first prediction, and a second fit in
    the same process."""
    found = []
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as cache:
            found.append(fit_seconds(generated(1500, 5), {}, cache, twice=True))
    return median_seconds(found)


def folds(repeats: int) -> dict[str, Any]:
    """All published folds of each UCI set, fitted together in a new process; the sets share a cache
    of compiled programs, which the first one fills."""
    if not os.environ.get(DATA_VARIABLE):
        raise NkcmeError(f"the case folds needs the UCI sets in the directory of {DATA_VARIABLE}")
    found = {}
    with tempfile.TemporaryDirectory() as cache:
        for name in UCI:
            if name != "year":
                found[name] = _last_json(_FOLDS_PROGRAM, [name], cache)
                print(name, found[name], flush=True)
    return found


CASES: dict[str, Callable[[int], dict[str, Any]]] = {
    "concrete": concrete,
    "ring": ring,
    "wide": wide,
    "large": large,
    "unseen": unseen,
    "repeated": repeated,
    "folds": folds,
}


# --- tables -------------------------------------------------------------------------------------


def generated(n_rows: int, n_columns: int) -> Table:
    """A table with a smooth mean and noise whose spread depends on a column."""
    rng = np.random.default_rng([n_rows, n_columns])
    X = rng.normal(size=(n_rows, n_columns))
    mean = np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] ** 2
    return X, mean + 0.3 * (1 + 0.5 * np.tanh(X[:, 2])) * rng.normal(size=n_rows)


def _concrete() -> tuple[str, Table]:
    """The training rows of the first fold of Concrete, else a generated table of their shape."""
    if not os.environ.get(DATA_VARIABLE):
        return "generated", generated(927, 8)
    table = load_uci("concrete")
    train, _ = table.fold(0)
    return "concrete, fold 0", (table.X[train], table.y[train])


# --- measurements -------------------------------------------------------------------------------


def _empty_and_filled(table: Table, parameters: dict[str, Any], repeats: int) -> dict[str, Any]:
    """The seconds of a first fit, and the median of those that follow."""
    with tempfile.TemporaryDirectory() as cache:
        first = fit_seconds(table, parameters, cache)
        later = [fit_seconds(table, parameters, cache) for _ in range(repeats)]
    return {"empty_cache": first, "filled_cache": median_seconds(later)}


def fit_seconds(
    table: Table, parameters: dict[str, Any], cache: str, *, twice: bool = False
) -> Seconds:
    """``fit_seconds_`` of a fit in a new process, which has this cache of compiled programs;
    ``twice`` adds a prediction and a second fit."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "table.npz")
        np.savez(file, X=table[0], y=table[1])
        return _last_json(_PROGRAM, [str(file), json.dumps(parameters), *["twice"] * twice], cache)


def _last_json(program: str, arguments: Sequence[str], cache: str) -> dict[str, Any]:
    """The JSON that a program prints last, in a new process with this cache."""
    # A cache that the user has configured for JAX, or disabled, must not count.
    environment = {k: v for k, v in os.environ.items() if "COMPILATION_CACHE" not in k}
    environment |= {
        "XDG_CACHE_HOME": cache,
        "PYTHONPATH": os.pathsep.join(
            [str(Path(nkcme.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
        ),
    }
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise RuntimeError(f"a fit failed: {done.stderr[-500:]}")
    return json.loads(done.stdout.splitlines()[-1])


def median_seconds(runs: Sequence[Seconds]) -> Seconds:
    """The median of each kind of seconds."""
    return {name: float(np.median([run[name] for run in runs])) for name in runs[0]}


def _peer_seconds(table: Table, repeats: int) -> Seconds:
    """The seconds of a peer's fits, without the start of its process."""
    peer = PEERS[_PEER]
    cell = Cell("fit-speed", "concrete", _PEER, peer.estimator, peer.parameters, {}, repeats)
    data = peers.FoldData(*table, table[0][:10])
    levels = peers.even_levels(10)
    runs = [peers.predict(cell, data, levels, seed).fit_seconds for seed in range(repeats)]
    return {"total": float(np.median(runs))}
