"""Every estimator in a size that fits in a moment. A new one needs an entry here to be tested."""

from __future__ import annotations

from typing import Any

import pytest

from nkcme.estimators import ESTIMATORS, ConditionalEstimator
from nkcme.estimators.nkcme.recipe import (
    BoostingRecipe,
    ComponentRecipe,
    EmbeddingRecipe,
    ForestRecipe,
    LocationRecipe,
    NetworkRecipe,
    Recipe,
    StepRule,
    StoppingRecipe,
)


def small_recipe(
    network_steps: int = 300, steps: int = 200, n_trees: int = 50, width: int = 32, **changes: Any
) -> Recipe:
    """The default recipe with small networks, few steps and few trees."""
    networks = NetworkRecipe(
        hidden=(width,),
        batch_size=64,
        stopping=StoppingRecipe(first=network_steps // 2, most=network_steps),
    )
    location = LocationRecipe(
        networks=(networks,),
        boosting=BoostingRecipe(n_trees=n_trees),
        forest=ForestRecipe(n_trees=2, most_leaves=50, least_weight=0.0),
        hopeless_ratio=0.0,  # few trees and steps say nothing
    )
    rule = StepRule(steps, 1, steps, steps)
    embedding = EmbeddingRecipe(
        steps=rule,
        stopping=StoppingRecipe(first=steps // 2, most=steps),
        components=ComponentRecipe(steps=rule),
    )
    return Recipe(**{"location": location, "embedding": embedding} | changes)


TINY_RECIPE = small_recipe(network_steps=4, steps=2, n_trees=2, width=8, n_folds=2, n_repeats=1)

TINY: dict[str, dict[str, Any]] = {
    "CARD": {
        "hidden": (8,),
        "noise_hidden": (8,),
        "n_diffusion_steps": 10,
        "n_draws": 20,
        "mean_epochs": 1,
        "epochs": 1,
        "random_state": 0,
    },
    "DeepFeatureCME": {"hidden": (8, 8), "epochs": 1, "random_state": 0},
    "KernelCME": {"random_state": 0},
    "MDN": {"hidden": (8,), "n_components": 3, "epochs": 1, "random_state": 0},
    # The default but for its size: location model, comparison and calibration map included.
    "NKCME": {"recipe": TINY_RECIPE, "hidden": (8,), "n_atoms": 10, "random_state": 0},
    "SplineFlow": {
        "n_layers": 1,
        "n_bins": 4,
        "hidden": (8,),
        "epochs": 1,
        "validation_fraction": 0.0,
        "random_state": 0,
    },
}

every_estimator = pytest.mark.parametrize("name", ESTIMATORS)


def tiny(name: str, **changes: Any) -> ConditionalEstimator:
    return ESTIMATORS[name](**TINY[name] | changes)
