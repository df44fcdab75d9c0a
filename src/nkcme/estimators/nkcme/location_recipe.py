"""The constants of the location model of `NKCME`, and of when networks have trained long enough."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from nkcme.estimators.nkcme.constants import (
    NOTHING,
    TABLES,
    TABLES_AND_EXACT,
    TOY,
    UCI,
    Constants,
    constant,
)


@dataclass(frozen=True, repr=False)
class StoppingRecipe(Constants):
    """When cross-fitted networks have trained long enough, by rows they were not trained on.

    The mean of all members is scored after ``first`` steps, and ``marks_per_doubling`` times
    whenever the steps have doubled.
    """

    first: int = constant(
        100, "Steps before the first score; tables of noise need no more.", TABLES
    )
    least: int = constant(
        100,
        "Steps before which a score that does not improve is no reason to end.",
        TABLES_AND_EXACT,
    )
    most: int = constant(6400, "Steps after which training ends in any case.", TABLES)
    least_gain: float = constant(
        0.03,
        "Training ends where twice the steps improve the score by less than this. From 20,000 rows "
        "on 0.01: diamonds is better by 0.5 %, in twice the time.",
        TABLES,
    )

    marks_per_doubling: int = constant(
        1,
        "Scores while the steps double. With two, bike's CRPS is 2 % lower.",
        TABLES,
    )
    patience: int = constant(
        1,
        "Scores in a row that gain too little before training ends. From 5,000 rows on two: one "
        "does so by chance, and the error of pol was 3 % larger; smaller tables had the same error "
        "with one, in up to a third less time.",
        TABLES,
    )

    @property
    def marks(self) -> tuple[int, ...]:
        """The steps after which networks are scored, multiples of the first."""
        n_marks = int(self.marks_per_doubling * np.log2(self.most / self.first) + 1e-9)
        doublings = np.arange(n_marks + 1) / self.marks_per_doubling
        return tuple(int(n) for n in np.unique(np.rint(2.0**doublings)) * self.first)

    @property
    def least_gain_of_mark(self) -> float:
        """The share by which a score must improve from one mark to the next."""
        return 1.0 - (1.0 - self.least_gain) ** (1.0 / self.marks_per_doubling)

    def judged(
        self, scores: np.ndarray, before: np.ndarray, done: int, to_beat: np.ndarray
    ) -> np.ndarray:
        """The scores after ``done`` steps, by which it is decided whether training goes on.

        At best a score falls by the same factor whenever the steps double. Where even that would
        not bring it below ``to_beat`` in the end, it counts as no better than ``before``.
        """
        started = np.isfinite(before)
        ratio = np.divide(scores, before, out=np.ones_like(scores), where=started)
        n_marks = self.marks_per_doubling * np.log2(self.most / done)
        useless = started & (scores * ratio**n_marks > to_beat)
        return np.where(useless, np.maximum(scores, before), scores)


#: When the networks of location models end, for tables up to 5,000 rows.
OF_NETWORKS = StoppingRecipe(least=800, marks_per_doubling=2)

#: For larger ones.
OF_LARGER_NETWORKS = replace(OF_NETWORKS, most=12_800, patience=2)


@dataclass(frozen=True, repr=False)
class NetworkRecipe(Constants):
    """How the networks of a location model are built and trained, for tables of some size."""

    below_rows: int | None = constant(None, "The table sizes this recipe is for.", UCI)
    hidden: tuple[int, ...] = constant(
        (64, 64, 64),
        "Three layers of 128 are slower, and no better up to 20,000 rows; beyond, smooth functions "
        "need them.",
        TABLES_AND_EXACT,
    )
    learning_rate: float = constant(
        1e-2, "AdamW's step size; the mean of states allows more than the last state does.", TABLES
    )
    weight_decay: float = constant(
        0.03, "AdamW's weight decay; 0.01 with half the rate is worse on pol.", TABLES
    )
    beta2: float = constant(0.99, "A short memory of squared gradients suits short runs.", TOY)
    batch_size: int = constant(
        256,
        "With 128, pol is better, and airfoil, sml and bike are worse. A quarter of the rows where "
        "they are fewer.",
        TABLES,
    )
    averaging: float = constant(
        0.1, "Parameters are averaged over this share of the steps; 0.2 learns more slowly.", TABLES
    )
    stopping: StoppingRecipe = constant(
        OF_NETWORKS,
        "See `StoppingRecipe`. Without the least steps, exact functions ended after 200 by chance.",
        TABLES,
    )
    precise: float = constant(
        0.1,
        "Networks with a smaller error, in standard deviations of y, are refined; others gain 1 % "
        "or nothing.",
        TABLES_AND_EXACT,
    )
    refining: float = constant(
        0.5,
        "The steps of refining, as a share of the most before: scores at a constant rate do not "
        "show how many exact functions need.",
        TABLES_AND_EXACT,
    )
    refining_reach: float = constant(
        4.0,
        "They are refined if their error is below this many times that of the other bases: "
        "refining lowers it by up to as much.",
        TABLES_AND_EXACT,
    )
    refining_rate: float = constant(
        3e-3, "The rate that falls to zero; 1e-2 ends at larger errors.", TABLES_AND_EXACT
    )
    refining_decay: float = constant(
        0.001, "Weight decay of refining: exact functions need none.", TABLES_AND_EXACT
    )

    def suits(self, n_rows: int) -> bool:
        """Whether the recipe is for tables of ``n_rows``."""
        return self.below_rows is None or n_rows < self.below_rows

    def batch(self, n_rows: int) -> int:
        """The minibatch for a table of ``n_rows``: below ``batch_size`` the power of two that is
        closest to a quarter of them, so that small tables share a few programs."""
        return min(self.batch_size, 2 ** round(np.log2(max(n_rows / 4, 1))))


#: Networks by the size of the table. How long they train is decided by the rows held out: tables of
#: much noise need a few hundred steps; where noise is small or rows are many, networks that overfit
#: are averaged.
NETWORKS = (
    NetworkRecipe(below_rows=5000),
    NetworkRecipe(below_rows=20_000, stopping=OF_LARGER_NETWORKS),
    NetworkRecipe(
        hidden=(128, 128, 128),
        batch_size=512,
        stopping=replace(OF_LARGER_NETWORKS, least_gain=0.01),
    ),
)


@dataclass(frozen=True, repr=False)
class BoostingRecipe(Constants):
    """Gradient boosting as a base of a location model."""

    n_trees: int = constant(
        600, "The most trees. With 300, airfoil's CRPS is 2.6 % higher; noisy tables stop.", TABLES
    )
    learning_rate: float = constant(
        0.15, "As good as 0.1 in the mean of all members, with a quarter fewer trees.", TABLES
    )
    first_trees: int = constant(
        100, "Trees that all members grow before any grows more; see `LocationRecipe`.", NOTHING
    )
    stage_trees: int = constant(10, "The number of trees is a multiple of this.", NOTHING)
    patience: float = constant(
        2.0, "A member ends after this many times the trees that are best for it.", TABLES
    )
    patience_trees: int = constant(50, "And so many more.", TABLES)
    least_leaves: int = constant(8, "Small tables: 8 to 15 leaves are best.", UCI)
    most_leaves: int = constant(127, "Protein: 127 leaves have RMSE 3.55, 31 have 3.78.", UCI)
    rows_per_leaf: int = constant(100, "Leaves grow with the number of rows.", UCI)
    min_samples_leaf: int = constant(5, "Small tables need small leaves.", UCI)
    l2: float = constant(1.0, "A little shrinkage of the leaves.", UCI)
    most_bins: int = constant(
        255, "Bins of an input; with 127, bike's CRPS is 10 % higher, with 63, 20 %.", TABLES
    )
    least_bins: int = constant(
        63, "Small tables: as good as 255, and a tree takes half the time.", TABLES
    )
    rows_per_bin: int = constant(
        10, "Bins grow with the number of rows; 63 and 127 alone were compared.", NOTHING
    )
    max_features: float = constant(
        0.75,
        "The share of the inputs that a split chooses from: members differ, and their mean is "
        "better. With 0.5, bike's error is half as large again.",
        TABLES,
    )

    def n_leaves(self, n_rows: int) -> int:
        """Leaves of a tree for a table of ``n_rows``."""
        return int(np.clip(n_rows // self.rows_per_leaf, self.least_leaves, self.most_leaves))

    def n_bins(self, n_rows: int) -> int:
        """Bins of an input for a table of ``n_rows``."""
        return int(np.clip(n_rows // self.rows_per_bin, self.least_bins, self.most_bins))

    @property
    def stage_sizes(self) -> list[int]:
        """The trees of each stage; after each it is checked whether they are enough."""
        n_stages, rest = divmod(self.n_trees, self.stage_trees)
        return [self.stage_trees] * n_stages + [rest] * (rest > 0)

    def is_enough(self, n_stages: int, best: int) -> bool:
        """Whether a member for which ``best`` stages are best needs no more than ``n_stages``."""
        n_trees = self.stage_trees * (n_stages - self.patience * best)
        return n_trees >= self.patience_trees


@dataclass(frozen=True, repr=False)
class ForestRecipe(Constants):
    """Extra trees as a base of a location model."""

    n_trees: int = constant(10, "Per member; twenty are no better in the mean of all.", TABLES)
    most_leaves: int = constant(
        1000, "As good as fully grown trees, and the size of a file is bounded.", TABLES
    )
    least_weight: float = constant(
        0.05, "With a smaller weight in the stack they are not kept: files are smaller.", NOTHING
    )


@dataclass(frozen=True, repr=False)
class LocationRecipe(Constants):
    """The location model: a cross-fitted stack of networks, gradient boosting and extra trees."""

    networks: tuple[NetworkRecipe, ...] = constant(
        NETWORKS, "By the number of rows; longer training and wider networks for more.", TABLES
    )
    boosting: BoostingRecipe = constant(
        BoostingRecipe(), "Best on Boston, Concrete and Power.", UCI
    )
    forest: ForestRecipe = constant(
        ForestRecipe(), "Best on bike, whose y is nearly a function of few inputs.", TABLES
    )
    scale_boosting: BoostingRecipe = constant(
        BoostingRecipe(
            n_trees=100,
            learning_rate=0.05,
            most_leaves=8,
            least_bins=255,
            min_samples_leaf=20,
            l2=0.0,
        ),
        "A scale varies slowly with x; small trees and few of them.",
        UCI,
    )
    hopeless_ratio: float = constant(
        0.5,
        "Trees are left out where networks have an error below this many times that of the first "
        "trees; with 0.6 they are on airfoil, whose CRPS is then 1 % higher;",
        TABLES,
    )
    hopeless_gain: float = constant(
        0.005, "and a stack with the first trees lowers it by less than this share.", NOTHING
    )
    enough_ratio: float = constant(
        0.7,
        "Trees grow no further where networks have an error below this many times that which trees "
        "would reach if every doubling gained as much as the last; on airfoil, whose trees learn "
        "slowly and matter, it is 0.8 or more,",
        TABLES,
    )
    enough_gain: float = constant(
        0.005,
        "and the last doubling lowered the error of a stack by less than this share. The stacks of "
        "pol and sml then have 100 and 200 trees instead of 600, and an error 0.02 and 0.04 % "
        "higher.",
        TABLES,
    )
    least_bias_share: float = constant(
        0.05, "The share of the squared error that more members never remove.", NOTHING
    )
    least_residual: float = constant(
        0.01, "Smaller residuals count as this when a scale is learned: they are chance.", NOTHING
    )

    def network(self, n_rows: int) -> NetworkRecipe:
        """The recipe of the networks for a table of ``n_rows``."""
        return next(recipe for recipe in self.networks if recipe.suits(n_rows))
