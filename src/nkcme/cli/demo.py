"""The command `nkcme demo`: every step on data that the library and scikit-learn include."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_diabetes

from nkcme import presets
from nkcme.cli.evaluate import evaluate_table
from nkcme.cli.fit import fit_table
from nkcme.cli.loading import Note
from nkcme.cli.predict import predict_table
from nkcme.cli.report import report_table
from nkcme.cli.stopping import checkpoint_of
from nkcme.cli.training_rows import TableColumns
from nkcme.datasets.problem import N_TRAIN
from nkcme.datasets.toy import N_DRAWS, evaluate_was1, load_toy, was1_floor
from nkcme.errors import NkcmeError
from nkcme.estimators import NKCME
from nkcme.evaluation import NOMINAL
from nkcme.prediction.predictor import Predictor
from nkcme.tables.files import read_table, write_table

#: Seeds of the ring, trained side by side: enough for a spread, few enough for a demo.
N_SEEDS = 4

#: WAS1 x 100 on the ring: the paper's joint optimisation (its table 1), and a perfect model.
PAPER = {"mean": 21.10, "std": 1.14}
FLOOR = 17.57

TARGET = "progression"
_TEST_SHARE = 0.2
_SHOWN_ROWS = 6


def write_diabetes(out: Path, seed: int) -> dict[str, Path]:
    """Write scikit-learn's diabetes table as two CSV files, the test rows chosen at random.

    Returns their paths and those of the files that `fit_diabetes` writes. Comes first in the demo,
    so that a path that cannot be written is refused before training.
    """
    frame = load_diabetes(as_frame=True, scaled=False).frame.rename(columns={"target": TARGET})
    order = np.random.default_rng(seed).permutation(len(frame))
    n_test = round(_TEST_SHARE * len(frame))
    paths = {
        "train": out / "diabetes-train.csv",
        "test": out / "diabetes-test.csv",
        "model": out / "diabetes-model",
        "report": out / "report.html",
    }
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise NkcmeError(
            f"{out} cannot be made ({error.strerror}); choose another --out"
        ) from error
    write_table(frame.iloc[np.sort(order[n_test:])], paths["train"])
    write_table(frame.iloc[np.sort(order[:n_test])], paths["test"])
    return paths


def fit_ring(seed: int) -> dict[str, Any]:
    """Fit the ring with the quick preset and score it as the paper does, times 100."""
    toy = load_toy("ring")
    seeds = range(seed, seed + N_SEEDS)
    models = NKCME(**presets.QUICK, random_state=seed).fit_many(
        [toy.make(N_TRAIN, s) for s in seeds]
    )
    samplers = (partial(model.sample, n_samples=N_DRAWS, method="herd") for model in models)
    scores = [
        100 * evaluate_was1(toy, sampler, s) for s, sampler in zip(seeds, samplers, strict=True)
    ]
    return {
        "mean": float(np.mean(scores)),
        "std": float(np.std(scores)),
        "seeds": N_SEEDS,
        "steps": models[0].n_steps_,
        "paper": PAPER,
        "floor": FLOOR,
        "floor_of_these_seeds": 100 * was1_floor(toy, seeds),
    }


def fit_diabetes(paths: dict[str, Path], seed: int, note: Note) -> dict[str, Any]:
    """Fit, evaluate, predict and report on the diabetes tables as on any CSV file.

    The model is scored on the rows of the test table, which are not used in training.
    """
    checkpoint_of(paths["model"]).unlink(missing_ok=True)  # left by a demo that was stopped
    fitted = fit_table(
        paths["train"], TableColumns(TARGET), paths["model"], seed=seed, test_size=0.0
    )
    evaluated = evaluate_table(paths["model"], paths["test"], None, note=note)
    note(f"writing {paths['report']} ...")
    report_table(paths["model"], paths["test"], None, paths["report"], note=note)
    return {
        "rows": fitted["rows"],
        "steps": fitted["steps"],
        "seconds": fitted["seconds"],
        "metrics": evaluated["metrics"],
        "intervals": _intervals(paths["model"], paths["test"]),
        "paths": {name: str(path) for name, path in paths.items()},
    }


def _intervals(model: Path, test: Path) -> list[dict[str, Any]]:
    """Intervals of the first test rows beside the true values."""
    predicted = predict_table(Predictor(model, intervals=(NOMINAL,)), test, note=lambda _: None)
    actual = read_table(test)[TARGET]
    return [
        {
            "row": row + 1,
            "lower": float(predicted[f"lower_{NOMINAL}"][row]),
            "upper": float(predicted[f"upper_{NOMINAL}"][row]),
            "mean": float(predicted["mean"][row]),
            "actual": float(actual[row]),
        }
        for row in range(_SHOWN_ROWS)
    ]
