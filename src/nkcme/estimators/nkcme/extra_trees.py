"""Extra trees: a few of them per member, nearly fully grown and so unlike each other.

Their mean over all members is a forest. Where y is nearly a function of few inputs, or rows have
near copies, it is better than boosted trees, which are shallow.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from nkcme.estimators.nkcme.boosted_trees import BoostedTrees
from nkcme.estimators.nkcme.recipe import ForestRecipe

#: The seeds of trees are below it.
_SEEDS = np.iinfo(np.int32).max


@dataclass(frozen=True)
class ExtraTrees:
    """Extremely randomised trees for one output (Geurts, Ernst and Wehenkel, 2006)."""

    recipe: ForestRecipe
    seed: int = 0

    def fit(
        self, x: np.ndarray, y: np.ndarray, weight: np.ndarray, x_held_out: np.ndarray
    ) -> tuple[Callable[[], BoostedTrees], np.ndarray]:
        """Grow trees for rows (n, p), y (n,) and weights (n,).

        Returns a function that reads them, and their predictions (n_held_out,) of held-out rows.
        """
        from sklearn.tree import ExtraTreeRegressor  # not needed to use a model

        # Tree by tree: a forest of scikit-learn changes the filters of warnings while it is
        # fitted, which are those of the process, and members are fitted in several threads. Checks
        # of the input would take a third of the time, and hold Python's lock.
        x, x_held_out = (np.ascontiguousarray(rows, np.float32) for rows in (x, x_held_out))
        y, weight = (np.ascontiguousarray(column, np.float64) for column in (y, weight))
        rng = np.random.RandomState(self.seed)
        trees = [
            ExtraTreeRegressor(max_leaf_nodes=self.recipe.most_leaves, random_state=seed).fit(
                x, y, sample_weight=weight, check_input=False
            )
            for seed in rng.randint(_SEEDS, size=self.recipe.n_trees)
        ]
        predicted = np.zeros(len(x_held_out))
        if len(x_held_out):
            predicted = np.mean(
                [tree.predict(x_held_out, check_input=False) for tree in trees], axis=0
            )
        return partial(BoostedTrees.of_trees, trees), predicted
