"""Mutate a valid model directory in thousands of ways and load each copy.

Two outcomes are allowed: the copy loads, or it is refused with `ModelFileError`. Anything else
(another exception, a Rust panic, more than 1 GiB of extra memory) stops the run and names the
case; `--only CASE` with the same seed runs that one again. Half of the mutations recompute the
digests, as an attacker would, so that they reach the checks behind them. From the root of the
repository:

    PYTHONPATH=tests python tests/support/fuzz_model_files.py --n 10000
    PYTHONPATH=tests python tests/support/fuzz_model_files.py --load nkcme:load --model DIR
"""

import argparse
import contextlib
import importlib
import os
import random
import resource
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np

from nkcme.errors import ModelFileError
from nkcme.model_files import write_model
from support.model_file_mutations import CONFIG, MUTATIONS, TENSORS

MAX_GROWTH = 2**30  # bytes


def fuzz(
    load: Callable[[Path], object],
    model_dir: str | os.PathLike[str],
    n: int,
    seed: int,
    only: int | None = None,
) -> dict[str, int]:
    """Load `n` mutated copies of `model_dir`; count the outcomes, in all and by mutation."""
    original = {name: (Path(model_dir) / name).read_bytes() for name in (CONFIG, TENSORS)}
    load(Path(model_dir))  # a valid model loads, and what a first load allocates is not growth
    _forget_peak()
    baseline = _memory(peak=False)
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as scratch:
        target = Path(scratch) / "model"
        for case in range(n) if only is None else [only]:
            rng = random.Random(f"{seed}/{case}")
            mutate = rng.choice(MUTATIONS)
            shutil.rmtree(target, ignore_errors=True)
            target.mkdir()
            where = f"seed {seed}, case {case} ({mutate.__name__})"
            mutate(rng, dict(original), target)
            try:
                load(target)
                outcome = "loaded"
            except ModelFileError as error:
                outcome = "refused"
                if "\n" in str(error) or len(str(error)) > 2000:
                    raise AssertionError(f"{where}: not one line: {error!s:.200}") from error
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # a Rust panic is no Exception
                raise AssertionError(f"{where}: {type(error).__name__}: {error}") from error
            growth = _memory(peak=True) - baseline
            if growth > MAX_GROWTH:
                raise AssertionError(f"{where}: memory grew by {growth / 2**20:.0f} MiB")
            counts.update([outcome, f"{mutate.__name__} {outcome}"])
    counts["growth_bytes"] = _memory(peak=True) - baseline
    return dict(counts)


def _memory(peak: bool) -> int:
    """Bytes resident now, or at most so far; without /proc, at most so far in both cases."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    return int(status.split("VmHWM:" if peak else "VmRSS:")[1].split()[0]) * 1024


def _forget_peak() -> None:
    """Restart the peak, where Linux allows it: what ran before us may have needed far more."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def write_sample_model(path: Path) -> None:
    """A small model with every kind of value and array that the format holds."""
    config = {
        "parameters": {"n_atoms": 8, "hidden": [16, 16], "kernel": "gaussian", "seed": None},
        "columns": [{"name": "größe", "kind": "numeric"}, {"name": "b", "categories": ["x", "y"]}],
        "scalers": {"mean": 0.1, "scale": 1e-30, "robust": True},
    }
    rng = np.random.default_rng(0)
    arrays = {
        "weights": rng.normal(size=(4, 3)).astype(np.float32),
        "atoms": rng.normal(size=8),
        "bandwidth": np.array(0.5, np.float32),
        "steps": np.array([1, 2, 3], np.int32),
        "key": np.array([0, 42], np.uint32),
        "mask": np.array([[True, False]]),
        "nothing": np.zeros((0, 3), np.int64),
    }
    write_model(path, config, arrays)


def main() -> None:
    parser = argparse.ArgumentParser(description="Fuzz the loading of model directories.")
    parser.add_argument("--n", type=int, default=1000, help="number of mutated copies")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="run this one case again")
    parser.add_argument("--load", default="nkcme.model_files:read_model", help="module:function")
    parser.add_argument("--model", type=Path, help="a valid model directory (default: a sample)")
    options = parser.parse_args()
    module, _, function = options.load.partition(":")
    load = getattr(importlib.import_module(module), function)
    with tempfile.TemporaryDirectory() as scratch:
        model = options.model or Path(scratch) / "sample"
        if options.model is None:
            write_sample_model(model)
        counts = fuzz(load, model, options.n, options.seed, options.only)
    for name, count in sorted(counts.items()):
        print(f"{count:>12} {name}")


if __name__ == "__main__":
    main()
