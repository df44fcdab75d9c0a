"""The constants of fits to tables that do not fit into memory."""

from __future__ import annotations

from dataclasses import dataclass

from nkcme.estimators.nkcme.constants import NOTHING, Constants, constant

#: What the constants of streams were tuned on.
LARGE = "simulated large tables (also scored)"


@dataclass(frozen=True, repr=False)
class StreamRecipe(Constants):
    """How a table is divided that is read as a stream, and how it is read.

    Some rows, chosen by a hash of their number, are sampled into memory: some that nothing is
    learned from, some that calibrate the law, some that are new to all networks and trees and
    decide when training ends, and some that trees are grown on. Networks train on the rows that are
    not sampled: one half is for the location model, the other for the embedding of its residuals.
    """

    from_rows: int = constant(
        500_000, "Tables of fewer rows are read whole: cross-fitting uses them better.", NOTHING
    )
    n_members: int = constant(2, "Networks of each kind; every one sees the whole stream.", NOTHING)
    calibration_rows: int = constant(20_000, "Rows that the law is learned from.", NOTHING)
    held_out_rows: int = constant(
        20_000, "Rows that nothing is learned from, to score the model by.", NOTHING
    )
    judged_rows: int = constant(
        50_000, "Rows that the stack is fitted to, and that training is judged by.", NOTHING
    )
    boosting_rows: int = constant(300_000, "Rows that the trees of a member are grown on.", NOTHING)
    described_rows: int = constant(
        200_000, "Rows that columns, scales and the support of y are learned from.", NOTHING
    )
    most_sampled: float = constant(0.5, "The largest share of the table in memory.", NOTHING)
    batch_size: int = constant(2048, "Rows of a minibatch, of all processes together.", NOTHING)
    block_steps: int = constant(64, "Minibatches that are read and shuffled together.", NOTHING)
    n_lanes: int = constant(
        8, "Places of the table that each minibatch has rows of, and the most processes.", NOTHING
    )
    most_steps: int = constant(4096, "Steps after which a network ends in any case.", NOTHING)
    least_gain: float = constant(
        0.0005, "Training ends where twice the steps improve the score by less than this.", NOTHING
    )
