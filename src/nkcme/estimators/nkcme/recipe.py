"""The recipe: every constant of `NKCME` that is not one of its parameters, with its reason.

Each value says what it was tuned on. ``NOTHING`` is a convention, a published value or a bound that
was never varied. Everything else was chosen while looking at scores on that data. Where the same
data are scored in the documents, those scores are optimistic; docs/findings.md has the trials.
"""

from __future__ import annotations

from dataclasses import MISSING, asdict, dataclass, fields, is_dataclass
from typing import Any

import numpy as np

from nkcme.errors import ModelFileError
from nkcme.estimators.nkcme.constants import (
    BRANCHES,
    CONFIRMED,
    NOTHING,
    TABLES,
    TOY,
    TOY_AND_UCI,
    TWO_OUTPUTS,
    UCI,
    Constants,
    constant,
)
from nkcme.estimators.nkcme.law_recipe import LawRecipe, SupportRecipe, TransformRecipe
from nkcme.estimators.nkcme.location_recipe import (
    BoostingRecipe,
    ForestRecipe,
    LocationRecipe,
    NetworkRecipe,
    StoppingRecipe,
)
from nkcme.estimators.nkcme.stream_recipe import LARGE, StreamRecipe

__all__ = [
    "DEFAULT",
    "BoostingRecipe",
    "ComponentRecipe",
    "EmbeddingRecipe",
    "ForestRecipe",
    "LocationRecipe",
    "NetworkRecipe",
    "Recipe",
    "StepRule",
    "StoppingRecipe",
    "StreamRecipe",
]


@dataclass(frozen=True)
class StepRule:
    """Training steps for a table of n rows: ``steps * sqrt(n / rows)``, between two bounds.

    The result is rounded down to hundreds, so that tables of about one size share a program.
    """

    steps: int
    rows: int
    least: int
    most: int

    def __call__(self, n_rows: int) -> int:
        wanted = int(np.clip(self.steps * np.sqrt(n_rows / self.rows), self.least, self.most))
        return wanted // 100 * 100 or wanted


@dataclass(frozen=True, repr=False)
class ComponentRecipe(Constants):
    """Weights from normal components, which the network of fixed atoms gives for one output."""

    n_components: int = constant(
        16,
        "8 to 16 are equally good on branches; with 8, eleven values of y share components, and "
        "their masses are off by up to 2 points.",
        BRANCHES,
    )
    activation: str = constant(
        "silu", "Equal on branches; on smooth shapes relu is worse.", BRANCHES
    )
    steps: StepRule = constant(
        StepRule(1500, 5000, 1000, 10_000),
        "1,500 steps instead of 1,000: W1 ratio 1.45 instead of 1.59 for five branches in three "
        "inputs, and little change elsewhere.",
        BRANCHES,
    )
    start_std: float = constant(
        0.3, "Standard deviations at the start, of standardised y.", NOTHING
    )
    least_std: float = constant(
        0.2,
        "In atom spacings; 0.5 is no better, and a point mass would reach other atoms.",
        BRANCHES,
    )
    uniform_share: float = constant(
        0.001, "The share of a uniform distribution in the likelihood: an outlier is one.", NOTHING
    )


@dataclass(frozen=True, repr=False)
class EmbeddingRecipe(Constants):
    """The network that gives the weights, and the atoms that carry them."""

    hidden: tuple[int, ...] = constant((64, 64, 64), "Three layers of 128 are no better.", TOY)
    activation: str = constant("relu", "WAS1 4.94 on bimodal; silu 4.99.", TOY)
    bandwidth: float = constant(1.0, "Starting wide trains coarse to fine.", TOY)
    learning_rate: float = constant(1e-2, "2e-2 diverges with signed weights.", TOY)
    bandwidth_learning_rate: float = constant(1e-2, "The bandwidth needs a rate of 1e-2.", TOY)
    beta2: float = constant(0.99, "A short memory of squared gradients suits short runs.", TOY)
    schedule: str = constant("cosine", "A falling rate makes short runs as good as long ones.", TOY)
    batch_size: int = constant(256, "128 with 3,000 steps is no better.", TOY)
    steps: StepRule = constant(
        StepRule(2000, 5000, 2000, 20_000),
        "2,000 steps up to 5,000 rows, where the length is fixed.",
        TOY_AND_UCI,
    )
    stopping: StoppingRecipe = constant(
        StoppingRecipe(least_gain=0.005),
        "When cross-fitted ensembles end; 100 to 3,200 steps are best.",
        TABLES,
    )
    averaging: float = constant(
        0.2, "Their parameters are averaged over this share of the steps.", TABLES
    )
    open_ended_decay: float = constant(
        0.5, "Their weight decay, relative to that of a fixed length.", TABLES
    )
    open_ended_batch_size: int = constant(128, "Their minibatch; with 256 they overfit.", TABLES)
    large_table_rows: int = constant(20_000, "The rows from which it is larger:", NOTHING)
    large_batch_size: int = constant(
        512,
        "with this many CRPS is 1.9 % lower on keggdirected, 0.1 % on diamonds.",
        TABLES,
    )
    decay_factor: float = constant(
        120.0,
        "Weight decay (120 p / n)^0.8 for p inputs. With 40, log densities are worse, with 360 all "
        "scores.",
        CONFIRMED,
    )
    decay_power: float = constant(0.8, "Weight decay (120 p / n)^0.8 for p inputs.", UCI)
    most_decay: float = constant(3.0, "More decay leaves nothing to learn.", UCI)
    several_outputs_decay: float = constant(
        4.0, "Several outputs: few rows per atom, so four times the decay.", TWO_OUTPUTS
    )
    floor_rows: int = constant(
        5000, "Bandwidth floor (5000 / n)^0.6 atom spacings; 1,500 makes no difference.", CONFIRMED
    )
    floor_power: float = constant(0.6, "Bandwidth floor (5000 / n)^0.6 atom spacings.", UCI)
    least_floor: float = constant(1.0, "Below one spacing the density is a comb.", TOY)
    most_floor: float = constant(10.0, "A bound that few hundred rows do not reach.", UCI)
    least_bandwidth: float = constant(
        0.18,
        "In atom spacings, also for the paper's unbounded bandwidth, which would vanish where y "
        "takes few values and some are atoms.",
        "Naval's test folds (also scored)",
    )
    n_atoms: int = constant(100, "30 to 400 make no difference.", TOY_AND_UCI)
    n_atoms_several_outputs: int = constant(
        300, "More atoms where they cover a volume.", TWO_OUTPUTS
    )
    quantile_share: float = constant(
        0.5, "Half of the atoms at quantiles, half even: neither gaps nor coarse places.", UCI
    )
    quantile_margin: float = constant(
        0.05, "Atoms reach beyond the outermost y by this share of its range.", UCI
    )
    rows_per_cluster: int = constant(
        5, "Fewer rows per atom of several outputs would not determine a covariance.", TWO_OUTPUTS
    )
    widening: float = constant(
        2.0, "Covariances of atoms are 1 + 2 / d times those of clusters: no gaps.", TWO_OUTPUTS
    )
    even_up_to: float = constant(
        10.0, "Standard deviations of y that an even grid may span; beyond, quantiles.", TOY
    )

    components: ComponentRecipe = constant(ComponentRecipe(), "See `ComponentRecipe`.", BRANCHES)

    def weight_decay(self, n_rows: int, n_inputs: int, n_outputs: int) -> float:
        """AdamW's weight decay: strong for small or wide tables, which a network overfits."""
        decay = (self.decay_factor * n_inputs / n_rows) ** self.decay_power
        factor = 1.0 if n_outputs == 1 else self.several_outputs_decay
        return min(self.most_decay, factor * decay)

    def bandwidth_floor(self, n_rows: int) -> float:
        """The least bandwidth, in atom spacings: wider where rows are too few for a fine grid."""
        floor = (self.floor_rows / n_rows) ** self.floor_power
        return float(np.clip(floor, self.least_floor, self.most_floor))

    def open_ended_batch(self, n_rows: int) -> int:
        """The minibatch of cross-fitted ensembles for a table of ``n_rows``."""
        large = n_rows >= self.large_table_rows
        return self.large_batch_size if large else self.open_ended_batch_size

    def count_atoms(self, n_outputs: int) -> int:
        """How many atoms there are."""
        return self.n_atoms if n_outputs == 1 else self.n_atoms_several_outputs


@dataclass(frozen=True, repr=False)
class Recipe(Constants):
    """Every constant of the default of `NKCME` that is not one of its parameters.

    `NKCME` takes a recipe; with None it uses `DEFAULT`. Change single values with
    `dataclasses.replace`.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from nkcme import NKCME, Recipe
    >>> model = NKCME(recipe=replace(Recipe(), n_folds=10))
    """

    n_folds: int = constant(5, "Ten folds cost twice as much and are no better.", UCI)
    n_repeats: int = constant(2, "Repeats of the folds; with one, CRPS is 1.6 % worse.", CONFIRMED)
    few_repeats_rows: int = constant(100_000, "Above, one repeat: a table long to learn.", NOTHING)
    least_rows: int = constant(20, "Distinct rows below which none are held out.", NOTHING)
    most_copies: int = constant(
        100_000, "Repeated rows stay separate rows in tables up to this size.", NOTHING
    )
    surely_explained: float = constant(
        0.95,
        "A location model that explains this share of y is kept without comparison. With 0.8, "
        "elevators is worse; always to compare changes nothing.",
        CONFIRMED,
    )
    surely_explained_small: float = constant(
        0.5,
        "The same for small tables, where fixed atoms learn slowly: with 0.95, autompg is worse.",
        CONFIRMED,
    )
    small_table_rows: int = constant(2000, "What is small, for the value above.", UCI)
    location: LocationRecipe = constant(LocationRecipe(), "See `LocationRecipe`.", UCI)
    embedding: EmbeddingRecipe = constant(EmbeddingRecipe(), "See `EmbeddingRecipe`.", TOY_AND_UCI)
    law: LawRecipe = constant(LawRecipe(), "See `LawRecipe`.", TABLES)
    support: SupportRecipe = constant(SupportRecipe(), "See `SupportRecipe`.", TABLES)
    transform: TransformRecipe = constant(TransformRecipe(), "See `TransformRecipe`.", TABLES)
    stream: StreamRecipe = constant(StreamRecipe(), "See `StreamRecipe`.", LARGE)

    def count_repeats(self, n_rows: int) -> int:
        """Repeats of the folds for a table of ``n_rows``."""
        return self.n_repeats if n_rows <= self.few_repeats_rows else 1

    def explains_enough(self, n_rows: int) -> float:
        """The share of y that a location model must explain to be kept without comparison."""
        small = n_rows < self.small_table_rows
        return self.surely_explained_small if small else self.surely_explained

    def to_config(self) -> dict[str, Any]:
        """The recipe as JSON has it."""
        return asdict(self)

    @classmethod
    def from_config(cls, config: Any) -> Recipe:
        """The recipe that a model file describes; what the file lacks has its default."""
        return _from_config(cls, config)


DEFAULT = Recipe()


def _from_config(kind: type[Any], config: Any) -> Any:
    """A recipe of some kind from JSON of an untrusted file."""
    known = {f.name: f for f in fields(kind)}
    if not isinstance(config, dict) or set(config) - set(known):
        raise ModelFileError(f"the recipe in the model file is not a {kind.__name__}")
    values = {}
    for name, value in config.items():
        default = known[name].default
        like = 0 if default is MISSING else default  # a StepRule has whole numbers and no defaults
        values[name] = _value_from_config(f"{kind.__name__}.{name}", value, like)
    try:
        return kind(**values)
    except TypeError as error:
        raise ModelFileError(f"the recipe in the model file is incomplete: {error}") from error


def _value_from_config(name: str, value: Any, like: Any) -> Any:
    """A value of a file, of the type that the default has."""
    if is_dataclass(like):
        return _from_config(type(like), value)
    if isinstance(like, tuple):
        if not isinstance(value, list) or not value:
            raise ModelFileError(f"{name} in the model file must be a list; got {value!r}")
        return tuple(_value_from_config(name, one, like[0]) for one in value)
    if like is None and value is None:
        return None
    expected: tuple[type, ...] = (str,) if isinstance(like, str) else (int, float)
    if isinstance(value, bool) or not isinstance(value, expected):
        raise ModelFileError(f"{name} in the model file must be a number or text; got {value!r}")
    if not isinstance(like, str | float) and not isinstance(value, int):
        raise ModelFileError(f"{name} in the model file must be a whole number; got {value!r}")
    return value
