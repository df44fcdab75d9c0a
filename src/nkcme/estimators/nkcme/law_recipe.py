"""The constants of the law of `NKCME`, of finding the support of y, and of new rows."""

from __future__ import annotations

from dataclasses import dataclass

from nkcme.calibration.calibration_map import BETA_ROWS, UNIFORM_ROWS
from nkcme.estimators.nkcme.constants import (
    DEPENDENT,
    NOTHING,
    SHIFTS,
    TABLES,
    TABLES_AND_POSITIVE,
    TABLES_AND_SHIFTS,
    UCI_AND_TABLES,
    Constants,
    constant,
)


@dataclass(frozen=True, repr=False)
class SupportRecipe(Constants):
    """When the training rows show what values y can take."""

    least_rows: int = constant(50, "Fewer rows show nothing.", NOTHING)
    rows_per_value: float = constant(5.0, "Values are repeated: rows per distinct y.", NOTHING)
    most_new_values: float = constant(
        0.01, "y has few values if at most this share of new rows would have another one.", NOTHING
    )
    frequent_extreme: float = constant(
        0.01, "Whole numbers end where the extreme ones have this share of rows.", NOTHING
    )
    mass_share: float = constant(0.01, "A point mass has at least this share of rows,", NOTHING)
    mass_ratio: float = constant(3.0, "this many times the rows of any other value,", NOTHING)
    least_mass_rows: int = constant(5, "and at least this many rows.", NOTHING)


@dataclass(frozen=True, repr=False)
class TransformRecipe(Constants):
    """When log y is modelled instead of y: quick models of both are compared."""

    least_rows: int = constant(200, "Fewer rows show no clear difference.", NOTHING)
    least_ratio: float = constant(
        2.0, "The 95 % quantile of y is this many times the 5 % one.", NOTHING
    )
    most_rows: int = constant(
        5000, "Rows that are compared on: enough for the least gain, in a second.", NOTHING
    )
    n_folds: int = constant(3, "Folds of the comparison.", NOTHING)
    n_trees: int = constant(60, "Trees of a quick model.", NOTHING)
    n_leaves: int = constant(15, "Leaves of a tree.", NOTHING)
    learning_rate: float = constant(0.15, "Of the quick models.", NOTHING)
    most_levels: int = constant(
        10, "Residuals are those of predictions of about one size: so many groups,", NOTHING
    )
    rows_per_level: int = constant(100, "each with at least as many rows.", NOTHING)
    n_quantiles: int = constant(50, "Quantiles of residuals that make a distribution.", NOTHING)
    least_gain: float = constant(
        0.025,
        "The least share by which quick models of log y have a lower CRPS. Where noise is added to "
        "y they gain up to 0.022, and there `NKCME` loses.",
        TABLES_AND_POSITIVE,
    )
    standard_errors: float = constant(
        2.0, "And the least number of its standard errors.", TABLES_AND_POSITIVE
    )


@dataclass(frozen=True, repr=False)
class NoveltyRecipe(Constants):
    """By how much distributions are widened far from the training rows."""

    usual: float = constant(
        0.99,
        "Distances and disagreements up to this quantile of the training rows are usual. With "
        "0.999, half of the intervals on shifted rows are too short.",
        TABLES_AND_SHIFTS,
    )
    spread_factor: float = constant(
        2.0, "What an excess of the variance between members counts.", TABLES_AND_SHIFTS
    )
    variogram_factor: float = constant(
        2.0, "What an excess of the variogram counts around a location model.", TABLES_AND_SHIFTS
    )
    variogram_factor_fixed: float = constant(
        6.0, "The same for fixed atoms, which continue no trend.", SHIFTS
    )
    change_factor: float = constant(
        0.5,
        "What the squared change of the mean counts, over the way beyond the range of an input. "
        "With 0.25 intervals cover less, with 1 the CRPS is up to 8 % higher.",
        SHIFTS,
    )
    most_rows: int = constant(2000, "Training rows that are looked at.", NOTHING)
    most_centers: int = constant(200, "Cluster centres of their inputs,", NOTHING)
    rows_per_center: int = constant(5, "and the least number of rows for each.", NOTHING)


@dataclass(frozen=True, repr=False)
class LawRecipe(Constants):
    """How an ensemble's weights are read as a calibrated law, with tails."""

    held_out_from: int = constant(
        10_000, "Rows from which some are held out from all training, to calibrate on.", TABLES
    )
    held_out_share: float = constant(0.1, "The share of rows held out.", TABLES)
    least_held_out_groups: int = constant(
        100, "Of fewer groups none is held out: out of fold, all of them calibrate.", NOTHING
    )
    most_held_out: int = constant(5000, "5,000 rows calibrate 90 % intervals to 0.4 %.", NOTHING)
    share_by_time: float = constant(
        0.2,
        "The share, of the last rows, of tables in time: out-of-fold rows have later rows among "
        "their training rows, and new rows have none.",
        NOTHING,
    )
    least_rows_by_time: int = constant(200, "Rows from which these are held out.", NOTHING)
    folds_by_time: str = constant(
        "random",
        "Of the rows before those, whose later neighbours show the error either way. With "
        '"blocks", a location model cannot follow a level that wanders: CRPS is 6 % higher.',
        DEPENDENT,
    )
    prior_shares: tuple[float, ...] = constant(
        (0.0001, 0.001, 0.003, 0.01, 0.03),
        "Candidates for the share of the average prediction in each; the best is used.",
        TABLES,
    )
    overlaps: tuple[float, ...] = constant(
        (0.0, 1.0), "Candidates for how far atoms reach; the best is used.", TABLES
    )
    smoothings: tuple[float, ...] = constant(
        (0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0),
        "Candidates for the smoothing, in bandwidths of the kernel; the best is used.",
        TABLES,
    )
    crps_room: float = constant(
        0.005, "Of laws whose CRPS is at most this much above the lowest, the likeliest.", NOTHING
    )
    tail_share: float = constant(0.02, "The share of residuals that a tail is fitted to.", NOTHING)
    least_tail_rows: int = constant(20, "The least number of residuals for that.", NOTHING)
    n_corrections: int = constant(3, "Corrections of a map by its own counts.", TABLES)
    calibration_uniform_rows: float = constant(
        UNIFORM_ROWS,
        "Pseudo-rows for the identity: fifty rows do not bend the map.",
        UCI_AND_TABLES,
    )
    calibration_beta_rows: tuple[float, ...] = constant(
        BETA_ROWS,
        "Pseudo-rows for a beta distribution; the likeliest number is used.",
        UCI_AND_TABLES,
    )

    novelty: NoveltyRecipe = constant(NoveltyRecipe(), "See `NoveltyRecipe`.", TABLES)

    def n_held_out(self, n_rows: int, *, by_time: bool = False) -> int:
        """How many rows of a table are held out from all training; ``by_time`` for rows that are
        predicted from earlier ones."""
        if by_time and n_rows >= self.least_rows_by_time:
            return int(self.share_by_time * n_rows)
        if n_rows < self.held_out_from:
            return 0
        return int(min(self.held_out_share * n_rows, self.most_held_out))
