"""The cells of every experiment on tables, as data; `rl_specs` has those of the agents.

Nothing here runs anything.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from benchmarks.experiments import paper
from benchmarks.experiments.cell import Cell
from benchmarks.experiments.methods import (
    DEFAULT,
    METHODS,
    ONE_NETWORK,
    OUR_PARAMETERS,
    PEERS,
    recipe,
)
from nkcme import presets
from nkcme.datasets.plane import PLANE
from nkcme.datasets.problem import N_EVALUATION_POINTS, N_TRAIN
from nkcme.datasets.toy import N_DRAWS, TOYS

# --- toy --------------------------------------------------------------------------------------

_N_SEEDS = 10
_TOY_TEST_ROWS = 1000

QUICK = "toy-quick"
#: The longest training of the quick benchmark, in steps (1/25 of the paper's longest; shorter
#: recipes are unchanged).
QUICK_STEPS = 4000
_QUICK_SEEDS = 2
#: Only WAS1 is scored, and at fewer points: CARD evaluates a thousand networks for every draw, and
#: would take most of the time.
_QUICK_PROTOCOL = {"n_points": 40, "n_test": 0}


def toy_cells(*, quick: bool = False) -> list[Cell]:
    """The paper's table 1: every method on the three toy problems, ten seeds."""
    cells = [
        Cell(
            experiment="toy",
            dataset=toy,
            method=name,
            estimator=method.estimator,
            parameters=recipe(name, toy),
            protocol={
                "draws": method.sampling,
                "n_draws": N_DRAWS,
                "n_train": N_TRAIN,
                "n_points": N_EVALUATION_POINTS,
                "n_test": _TOY_TEST_ROWS,
            },
            n_runs=_N_SEEDS,
        )
        for toy in TOYS
        for name, method in METHODS.items()
    ]
    if not quick:
        return cells
    # These two have no long training to shorten, and would take a large part of the time.
    return [_shortened(cell) for cell in cells if cell.method not in ("kernel-cme", DEFAULT)]


def _shortened(cell: Cell) -> Cell:
    """A cell of the quick benchmark: the same recipe with fewer epochs, seeds and points."""
    shorter = dict(cell.parameters)
    for name in ("epochs", "mean_epochs"):
        if name in shorter:
            steps_per_epoch = N_TRAIN // shorter["batch_size"]
            shorter[name] = min(shorter[name], QUICK_STEPS // steps_per_epoch)
    return replace(
        cell,
        experiment=QUICK,
        parameters=shorter,
        protocol=cell.protocol | _QUICK_PROTOCOL,
        n_runs=_QUICK_SEEDS,
    )


# --- uci --------------------------------------------------------------------------------------

_UCI_DRAWS = 1000

#: UCI sets for the classical estimator; its cost grows with the cube of n.
_SMALL = ("boston", "concrete", "energy")

#: Treeffuser takes 0.1 s (concrete) to 35 s (protein) for one draw at every test row, so it gets
#: fewer draws on large sets.
_PEER_DRAWS = 50
_FEWER_PEER_DRAWS = {"kin8nm": 20, "naval": 20, "power": 20, "protein": 20}
#: The peers that run on the UCI sets. Where one is slow, it gets only the first folds: all together
#: take about an hour of one core.
_PEER_FOLDS = {
    "ngboost": {"kin8nm": 5, "naval": 5, "power": 5, "protein": 1},
    "quantile-forest": {"kin8nm": 10, "naval": 10, "power": 10, "protein": 5},
    "treeffuser": {"kin8nm": 2, "naval": 1, "power": 5, "protein": 1},
}


def uci_cells() -> list[Cell]:
    """The paper's tables of QICE and RMSE: every method on its eight UCI sets, all their folds."""
    return [
        Cell(
            experiment="uci",
            dataset=dataset,
            method=name,
            estimator=method.estimator,
            parameters=recipe(name, dataset),
            protocol={"draws": method.sampling, "n_draws": _UCI_DRAWS},
            n_runs=n_folds,
        )
        for dataset, n_folds in paper.uci_folds().items()
        for name, method in METHODS.items()
        if name != "kernel-cme" or dataset in _SMALL
    ]


def peer_cells() -> list[Cell]:
    """Packages of others on the folds of `uci_cells`, or on the first folds of large sets."""
    return [
        Cell(
            experiment="uci",
            dataset=dataset,
            method=name,
            estimator=peer.estimator,
            parameters=peer.parameters,
            protocol={
                "draws": peer.sampling,
                "n_draws": (
                    _UCI_DRAWS
                    if peer.sampling == "quantiles"
                    else _FEWER_PEER_DRAWS.get(dataset, _PEER_DRAWS)
                ),
                "requirement": peer.requirement,
                "threads": 1,
            },
            n_runs=_PEER_FOLDS[name].get(dataset, n_folds),
        )
        for dataset, n_folds in paper.uci_folds().items()
        for name, peer in PEERS.items()
        if name in _PEER_FOLDS
    ]


# --- several outputs --------------------------------------------------------------------------

OUTPUTS = "outputs"
#: The scores of predictions of two outputs; lower is better.
OUTPUTS_TITLES = {
    "sliced_was1_x100": "sliced WAS1 × 100",
    "energy_score": "energy score",
    "nll": "NLL",
}
_OUTPUTS_METHODS = (DEFAULT, ONE_NETWORK, "nsf")
_OUTPUTS_SEEDS = 5


def outputs_cells() -> list[Cell]:
    """Two outputs with known dependence: our recipes and the spline flow's default, five seeds."""
    return [
        Cell(
            experiment=OUTPUTS,
            dataset=problem,
            method=name,
            estimator=METHODS[name].estimator,
            parameters=OUR_PARAMETERS.get(name, {}),
            protocol={
                "n_train": N_TRAIN,
                "n_points": 50,
                "n_draws": 1000,
                "n_directions": 100,
                "n_test": 1000,
                "n_test_draws": 500,
            },
            n_runs=_OUTPUTS_SEEDS,
        )
        for problem in PLANE
        for name in _OUTPUTS_METHODS
    ]


# --- growth with n ----------------------------------------------------------------------------

SIZES = ("1000", "10000", "100000", "1000000")
#: The most rows for methods that cannot use more.
_LARGEST = {"kernel-cme": 10_000}
SCALING_BATCH = 256
SCALING_STEPS = 500
#: Predictions are timed on this number of rows, or on fewer and extrapolated: CARD takes minutes.
SCALING_PREDICTED = 1000
_FEWER_PREDICTED = {"card": 64}  # a size without padding
#: The classical estimator with landmarks (Nystrom), which has no limit on rows.
NYSTROM = "kernel-cme-nystrom"
_N_INDUCING = 500


def scaling_cells() -> list[Cell]:
    """Every method on generated tables of growing length, by the recipe for a large UCI set.

    Without the default: it trains several models in turn, so its growth is not comparable. That of
    one network of it is measured.
    """
    methods = {name: method.estimator for name, method in METHODS.items() if name != DEFAULT}
    methods[NYSTROM] = "KernelCME"
    return [
        Cell(
            experiment="scaling",
            dataset=size,
            method=name,
            estimator=estimator,
            parameters=_scaling_parameters(name, int(size)),
            protocol={"n_inputs": 10, "n_predicted": _FEWER_PREDICTED.get(name, SCALING_PREDICTED)},
            n_runs=1,
        )
        for size in SIZES
        for name, estimator in methods.items()
        if int(size) <= _LARGEST.get(name, int(size))
    ]


def _scaling_parameters(method: str, n: int) -> dict[str, Any]:
    """The recipe of protein with one batch size for all methods, and about equally many steps."""
    if method == NYSTROM:
        return {"n_inducing": _N_INDUCING}
    if method == "kernel-cme":
        return {"max_rows": _LARGEST[method]}
    epochs = max(SCALING_STEPS // max(n // SCALING_BATCH, 1), 1)
    same = {"batch_size": SCALING_BATCH, "epochs": epochs}
    if method == "card":
        same["mean_epochs"] = epochs
    return recipe(method, "protein") | same


def year_cells() -> list[Cell]:
    """The paper's recipe for Year on a generated table of its size, one epoch."""
    n_rows, n_inputs = paper.uci_shape("year")
    return [
        Cell(
            experiment="year",
            dataset="generated",
            method="nkcme-joint",
            estimator="NKCME",
            parameters=presets.paper("nkcme-joint", "year") | {"epochs": 1},
            protocol={"n_rows": n_rows, "n_inputs": n_inputs, "n_test": 51_630},
            n_runs=1,
        )
    ]
