"""What is run, as data: methods, data sets, recipes, seeds or folds, and the paper's numbers.

A `Cell` is one method on one data set, with all its seeds or folds. Nothing here runs anything.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from nkcme import presets
from nkcme.datasets.plane import PLANE
from nkcme.datasets.problem import N_EVALUATION_POINTS, N_TRAIN
from nkcme.datasets.toy import N_DRAWS, TOYS
from nkcme.errors import NkcmeError


class Method(NamedTuple):
    """A column: whose estimator, how it draws samples, and how it is called in print.

    ``draws`` is ``"herd"`` or ``"independent"`` as in `sample`, or ``"quantiles"``: the
    mid-quantiles (i + 1/2) / n of the predicted distribution, the best n points to stand for it.
    """

    label: str
    estimator: str
    draws: str
    in_paper: bool = True


METHODS: dict[str, Method] = {
    "nkcme": Method("NKCME()", "NKCME", "quantiles", in_paper=False),
    "nkcme-quick": Method("quick", "NKCME", "quantiles", in_paper=False),
    "nkcme-joint": Method("joint", "NKCME", "herd"),
    "nkcme-iterative": Method("iterative", "NKCME", "herd"),
    "df-median": Method("DF median", "DeepFeatureCME", "herd"),
    "df-0.1": Method("DF 0.1", "DeepFeatureCME", "herd"),
    "mdn": Method("MDN", "MDN", "independent"),
    "nsf": Method("NSF", "SplineFlow", "independent"),
    "card": Method("CARD", "CARD", "independent"),
    "kernel-cme": Method("KernelCME()", "KernelCME", "herd", in_paper=False),
}

#: The default learns in several phases, so that its growth with n is not measured with the others';
#: that of one network is.
DEFAULT, ONE_NETWORK = "nkcme", "nkcme-quick"


class Peer(NamedTuple):
    """What people use instead: a package of its own environment, its estimator and its settings.

    ``draws`` is ``"quantiles"`` or ``"independent"``, as for a `Method`.
    """

    label: str
    requirement: str
    estimator: str
    parameters: dict[str, Any]
    draws: str


#: With the settings they come with (NGBoost's 500 trees are its default too), on one thread.
PEERS: dict[str, Peer] = {
    "ngboost": Peer("NGBoost", "ngboost>=0.5", "NGBRegressor", {"n_estimators": 500}, "quantiles"),
    "quantile-forest": Peer(
        "quantile-forest", "quantile-forest>=1.4", "RandomForestQuantileRegressor",
        {"n_estimators": 100}, "quantiles",
    ),
    "treeffuser": Peer(
        "Treeffuser", "treeffuser>=0.2", "Treeffuser", {"n_jobs": 1}, "independent"
    ),
}  # fmt: skip

#: The scores of the paper's tables, as `paper.json` and the rows name them; lower is better.
TITLES = {"was1_x100": "WAS1 × 100", "qice_percent": "QICE, %", "rmse": "RMSE"}

#: Where the rows of an experiment are scored against the paper, and by what.
PAPER_METRICS = {
    "toy": ("was1_x100",),
    "toy-quick": ("was1_x100",),
    "uci": ("qice_percent", "rmse"),
}

N_SEEDS = 10
_UCI_DRAWS = 1000
_TOY_TEST_ROWS = 1000

#: Treeffuser takes 0.1 s (concrete) to 35 s (protein) for one draw at each test row: on a
#: large set it is given fewer. Where a peer is not given all folds, so many of the first: the whole
#: is to take about an hour of one core.
_PEER_DRAWS = 50
_FEWER_PEER_DRAWS = {"kin8nm": 20, "naval": 20, "power": 20, "protein": 20}
_PEER_FOLDS = {
    "ngboost": {"kin8nm": 5, "naval": 5, "power": 5, "protein": 1},
    "quantile-forest": {"kin8nm": 10, "naval": 10, "power": 10, "protein": 5},
    "treeffuser": {"kin8nm": 2, "naval": 1, "power": 5, "protein": 1},
}

#: UCI sets on which the classical estimator, whose cost grows with the cube of n, is run.
_SMALL = ("boston", "concrete", "energy")

#: Why the cells of a data set stay empty. Asked for by name it is run like any other.
WHY_EMPTY = {
    "year": (
        "YearPredictionMSD was not at hand where these were run (its 515,345 rows are downloaded "
        "on request only); the same recipe is run on a generated table of its size below"
    )
}

# --- the quick toy benchmark ------------------------------------------------------------------

QUICK = "toy-quick"
#: No training is longer than about so many steps (a twenty-fifth of the paper's longest; shorter
#: recipes are run whole), and two seeds are run.
QUICK_STEPS = 4000
_QUICK_SEEDS = 2
#: Only WAS1 is scored, and at fewer points: a thousand networks in turn for every draw is what
#: CARD costs, and it would take most of the time.
_QUICK = {"n_points": 40, "n_test": 0}

# --- several outputs --------------------------------------------------------------------------

OUTPUTS = "outputs"
#: What the rows of two outputs are scored by; lower is better.
OUTPUTS_TITLES = {
    "sliced_was1_x100": "sliced WAS1 × 100",
    "energy_score": "energy score",
    "nll": "NLL",
}
_OUTPUTS_METHODS = (DEFAULT, ONE_NETWORK, "nsf")
_OUTPUTS_SEEDS = 5

# --- growth with n ----------------------------------------------------------------------------

SIZES = ("1000", "10000", "100000", "1000000")
#: Rows up to which methods go that cannot go further.
_LARGEST = {"kernel-cme": 10_000}
SCALING_BATCH = 256
SCALING_STEPS = 500
#: Predictions are timed on so many rows, or on fewer and multiplied: CARD takes minutes for all.
SCALING_PREDICTED = 1000
_FEWER_PREDICTED = {"card": 64}  # a size that is not padded
#: The classical estimator with so many landmarks (Nystrom) goes as far as the others.
NYSTROM = "kernel-cme-nystrom"
_N_INDUCING = 500


@dataclass(frozen=True)
class Cell:
    """One method on one data set, for seeds or folds 0 .. n_runs - 1."""

    experiment: str
    dataset: str
    method: str
    estimator: str
    parameters: dict[str, Any]
    protocol: dict[str, Any]
    n_runs: int

    @property
    def name(self) -> str:
        return f"{self.dataset}--{self.method}"

    @property
    def fingerprint(self) -> str:
        """Of what is run: rows with another one are not of this cell.

        Parameters of NKCME that an earlier version did not have, at the values that stand for its
        doing without, are no part of it: rows from before they were there are of the same recipe.
        """
        before = presets.QUICK if self.estimator == "NKCME" else {}
        own = {k: v for k, v in self.parameters.items() if k not in before or v != before[k]}
        text = json.dumps([self.estimator, own, self.protocol], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def owns(self, row: dict[str, Any]) -> bool:
        """Whether a row is of this cell as it is specified today."""
        return bool(row["fingerprint"] == self.fingerprint)


def toy_cells(*, quick: bool = False) -> list[Cell]:
    """The paper's table 1: every method on the three toy problems, ten seeds."""
    cells = [
        Cell(
            experiment="toy",
            dataset=toy,
            method=name,
            estimator=method.estimator,
            parameters=_parameters(name, toy),
            protocol={
                "draws": method.draws,
                "n_draws": N_DRAWS,
                "n_train": N_TRAIN,
                "n_points": N_EVALUATION_POINTS,
                "n_test": _TOY_TEST_ROWS,
            },
            n_runs=N_SEEDS,
        )
        for toy in TOYS
        for name, method in METHODS.items()
    ]
    if not quick:
        return cells
    # These have no steps to save, and would take a large part of the time.
    return [_miniature(cell) for cell in cells if cell.method not in ("kernel-cme", DEFAULT)]


def uci_cells() -> list[Cell]:
    """The paper's tables of QICE and RMSE: every method on its eight UCI sets, all their folds."""
    folds: dict[str, int] = _numbers()["uci_folds"]
    return [
        Cell(
            experiment="uci",
            dataset=dataset,
            method=name,
            estimator=method.estimator,
            parameters=_parameters(name, dataset),
            protocol={"draws": method.draws, "n_draws": _UCI_DRAWS},
            n_runs=n_folds,
        )
        for dataset, n_folds in folds.items()
        for name, method in METHODS.items()
        if name != "kernel-cme" or dataset in _SMALL
    ]


def peer_cells() -> list[Cell]:
    """What people use instead, on the folds of `uci_cells`; on large sets on the first of them."""
    folds: dict[str, int] = _numbers()["uci_folds"]
    return [
        Cell(
            experiment="uci",
            dataset=dataset,
            method=name,
            estimator=peer.estimator,
            parameters=peer.parameters,
            protocol={
                "draws": peer.draws,
                "n_draws": (
                    _UCI_DRAWS
                    if peer.draws == "quantiles"
                    else _FEWER_PEER_DRAWS.get(dataset, _PEER_DRAWS)
                ),
                "requirement": peer.requirement,
                "threads": 1,
            },
            n_runs=_PEER_FOLDS[name].get(dataset, n_folds),
        )
        for dataset, n_folds in folds.items()
        for name, peer in PEERS.items()
    ]


def outputs_cells() -> list[Cell]:
    """Two outputs whose dependence is known: our recipes and the spline flow's default, five
    seeds."""
    return [
        Cell(
            experiment=OUTPUTS,
            dataset=problem,
            method=name,
            estimator=METHODS[name].estimator,
            parameters=_OUR_PARAMETERS.get(name, {}),
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


def scaling_cells() -> list[Cell]:
    """Every method on generated tables of growing length, by the recipe for a large UCI set."""
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


def year_cells() -> list[Cell]:
    """The paper's recipe for Year on a generated table of its size, for one pass over the rows."""
    n_rows, n_inputs = _numbers()["uci_shape"]["year"]
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


def choose(
    cells: Sequence[Cell],
    *,
    methods: Sequence[str] = (),
    sets: Sequence[str] = (),
    n_runs: int | None = None,
) -> list[Cell]:
    """The cells of some methods and data sets (all unless named), with fewer runs if asked."""
    for what, chosen, known in (
        ("method", methods, {cell.method: None for cell in cells}),
        ("data set", sets, {cell.dataset: None for cell in cells}),
    ):
        if other := [name for name in chosen if name not in known]:
            raise NkcmeError(
                f"there is no {what} {other[0]!r} in this benchmark; there are {', '.join(known)}"
            )
    return [
        cell if n_runs is None else replace(cell, n_runs=min(n_runs, cell.n_runs))
        for cell in cells
        if (not methods or cell.method in methods)
        and (cell.dataset in sets if sets else cell.dataset not in WHY_EMPTY)
    ]


# --- the paper's numbers ----------------------------------------------------------------------


class Published(NamedTuple):
    """A number of the paper's tables; Year's have no deviation, for it has one fold."""

    mean: float
    std: float | None


def published(metric: str, dataset: str, method: str) -> Published | None:
    """The paper's number, or None where it has none."""
    found = _numbers().get(metric, {}).get(dataset, {}).get(method)
    return None if found is None else Published(found["mean"], found["std"])


def floor_under(metric: str, dataset: str) -> float | None:
    """What a perfect model scores, where that is known."""
    value = _numbers().get(f"{metric}_floor", {}).get(dataset)
    return None if value is None else float(value)


def rmse_scale(dataset: str) -> float:
    """What the paper multiplies the RMSE of a data set by."""
    return float(_numbers()["rmse_scale"].get(dataset, 1))


@cache
def _numbers() -> dict[str, Any]:
    return json.loads((files("benchmarks.experiments") / "paper.json").read_text(encoding="utf-8"))


# --- recipes ----------------------------------------------------------------------------------


#: What sets the default apart, named so that no rows of another version's are taken for its own.
_OUR_PARAMETERS: dict[str, dict[str, Any]] = {
    DEFAULT: {"center": "auto", "n_members": None, "recalibrate": "auto", "atoms": "auto"},
    ONE_NETWORK: presets.QUICK,
}


def _parameters(method: str, dataset: str) -> dict[str, Any]:
    if METHODS[method].in_paper:
        return presets.paper(method, dataset)
    return _OUR_PARAMETERS.get(method, {})


def _miniature(cell: Cell) -> Cell:
    """A cell of the quick benchmark: the same recipe, at most so many steps, two seeds."""
    shorter = dict(cell.parameters)
    for name in ("epochs", "mean_epochs"):
        if name in shorter:
            steps_an_epoch = N_TRAIN // shorter["batch_size"]
            shorter[name] = min(shorter[name], QUICK_STEPS // steps_an_epoch)
    return replace(
        cell,
        experiment=QUICK,
        parameters=shorter,
        protocol=cell.protocol | _QUICK,
        n_runs=_QUICK_SEEDS,
    )


def _scaling_parameters(method: str, n: int) -> dict[str, Any]:
    """The recipe of Protein with one batch size for all, about as many steps whatever n is."""
    if method == NYSTROM:
        return {"n_inducing": _N_INDUCING}
    if method == "kernel-cme":
        return {"max_rows": _LARGEST[method]}
    epochs = max(SCALING_STEPS // max(n // SCALING_BATCH, 1), 1)
    same = {"batch_size": SCALING_BATCH, "epochs": epochs}
    if method == "card":
        same["mean_epochs"] = epochs
    return _parameters(method, "protein") | same
