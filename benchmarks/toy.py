"""WAS1 on the paper's toy data: its two recipes and our default, ten seeds each.

    python -m benchmarks.toy [--seeds 10] [--recipes default paper-joint paper-iterative]

writes results/toy-DEVICE.json. Samples are herded for the paper's recipes and mid-quantiles of the
predicted distribution for the default, 50 at each of 200 points.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import record
from nkcme import NKCME, presets
from nkcme.datasets.toy import N_DRAWS, TOYS, evaluate_was1

#: Table 1 of the paper, x100, and the floor under it (50 true mid-quantiles against 50 draws).
PAPER = {
    "paper-joint": {"bimodal": (5.67, 0.28), "skewed": (4.68, 0.22), "ring": (21.10, 1.14)},
    "paper-iterative": {"bimodal": (5.88, 0.28), "skewed": (4.86, 0.23), "ring": (21.13, 0.99)},
}
FLOOR = {"bimodal": 4.20, "skewed": 4.05, "ring": 17.57}

RECIPES: dict[str, dict[str, Any]] = {
    "default": {},
    "paper-joint": presets.PAPER_TOY,
    "paper-iterative": presets.PAPER_TOY | {"bandwidth_update": "iterative"},
}


def samples(model: NKCME, X: np.ndarray) -> np.ndarray:
    """50 samples a point, draws first, in the way that suits the model."""
    if model.head == "signed":
        return model.sample(X, N_DRAWS, method="herd")
    return model.predict_quantiles(X, (np.arange(N_DRAWS) + 0.5) / N_DRAWS).T


def was1(models: list[NKCME], toy: str) -> list[float]:
    """WAS1 x100 of the model of each seed."""
    return [
        100 * evaluate_was1(TOYS[toy], lambda X, model=model: samples(model, X), seed)
        for seed, model in enumerate(models)
    ]


def run(recipe: str, toy: str, n_seeds: int) -> dict[str, Any]:
    """Fit one recipe to every seed of one toy, and score it."""
    data = [TOYS[toy].make(seed=seed) for seed in range(n_seeds)]
    start = time.perf_counter()
    models = NKCME(random_state=0, **RECIPES[recipe]).fit_many(data)
    seconds = time.perf_counter() - start
    values = was1(models, toy)
    row = {
        "recipe": recipe,
        "toy": toy,
        "seeds": n_seeds,
        "steps": models[0].n_steps_,
        "was1_x100_mean": float(np.mean(values)),
        "was1_x100_std": float(np.std(values)),
        "was1_x100": values,
        "bandwidth": [model.bandwidth_ for model in models],
        "fit_seconds_all_seeds": seconds,
        "floor": FLOOR[toy],
        "parameters": {k: v for k, v in models[0].get_params().items() if k != "random_state"},
    }
    if recipe in PAPER:
        row["paper_mean"], row["paper_std"] = PAPER[recipe][toy]
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--recipes", nargs="+", choices=list(RECIPES), default=list(RECIPES))
    parser.add_argument("--out", type=Path, default=record.RESULTS)
    arguments = parser.parse_args()
    rows = []
    for recipe in arguments.recipes:
        for toy in TOYS:
            rows.append(row := run(recipe, toy, arguments.seeds))
            beside = f" (paper {row['paper_mean']})" if "paper_mean" in row else ""
            print(
                f"{recipe:16s} {toy:8s} {row['was1_x100_mean']:6.2f} +- {row['was1_x100_std']:.2f}"
                f"{beside}, floor {row['floor']}, {row['fit_seconds_all_seeds']:.1f} s",
                flush=True,
            )
    path = record.write(
        f"toy-{record.device_name()}",
        f"python -m benchmarks.toy --seeds {arguments.seeds}",
        {"rows": rows},
        arguments.out,
    )
    print(f"wrote {path}")


if __name__ == "__main__":
    main()
