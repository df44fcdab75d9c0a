"""How a cell of each experiment is performed: fit all its runs as one program, then score each."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from benchmarks.experiments import peers, specs
from benchmarks.experiments.curves import pack
from benchmarks.experiments.specs import Cell
from nkcme import metrics
from nkcme.datasets.plane import load_plane
from nkcme.datasets.problem import Problem, Toy
from nkcme.datasets.toy import evaluate_was1, load_toy
from nkcme.errors import NkcmeError
from nkcme.estimators import ESTIMATORS, ConditionalEstimator
from nkcme.evaluation import Evaluation, ask_rows
from nkcme.rl.loop import train
from nkcme.rl.result import agent_from_config, thin
from nkcme.rl.settings import Settings

if TYPE_CHECKING:
    from nkcme.datasets.uci_formats import UciTable

#: What a run gave: a part of its row, or the error that ended it.
Outcome = dict[str, Any] | Exception

#: Marks the stream of the toys' test rows, which meets neither training data nor true draws.
_TEST_STREAM = 2
#: And that of true draws of several outputs, and of draws from a perfect model.
_TRUTH_STREAM = 3

#: At so many of the evaluation points the samples of seed 0 are kept, for the pictures.
_SHOWN_POINTS = 40


def perform(cell: Cell, runs: Sequence[int]) -> Iterator[tuple[int, Outcome]]:
    """Do the runs of a cell; each is given when it is finished."""
    yield from _PERFORMERS[cell.experiment](cell, runs)


def draw(
    model: ConditionalEstimator, X: np.ndarray, how: str, n_draws: int, seed: int
) -> np.ndarray:
    """Samples of a method's own kind, draws first: (n_draws, n_rows)."""
    if how == "quantiles":
        return model.predict_quantiles(X, (np.arange(n_draws) + 0.5) / n_draws).T
    return model.sample(X, n_draws, method=how, random_state=seed)


# --- toy --------------------------------------------------------------------------------------


def _perform_toy(cell: Cell, runs: Sequence[int]) -> Iterator[tuple[int, Outcome]]:
    toy = load_toy(cell.dataset)
    n_train = cell.protocol["n_train"]
    return _fit_and_score(
        cell,
        runs,
        lambda seed: toy.make(n_train, seed),
        lambda model, seed: _score_toy(cell, toy, model, seed),
    )


def _score_toy(cell: Cell, toy: Toy, model: ConditionalEstimator, seed: int) -> dict[str, Any]:
    """WAS1 by the paper's protocol; the rest on fresh rows, by the predicted distribution."""
    kept: list[np.ndarray] = []

    def sampler(X: np.ndarray) -> np.ndarray:
        kept.append(draw(model, X, cell.protocol["draws"], cell.protocol["n_draws"], seed))
        return kept[-1]

    n_points, n_test = cell.protocol["n_points"], cell.protocol["n_test"]
    was1, sample_seconds = _timed(lambda: evaluate_was1(toy, sampler, seed, n_points))
    outcome: dict[str, Any] = {
        "metrics": {"was1_x100": 100 * was1},
        "seconds": {"sample": sample_seconds},
    }
    if seed == 0:
        shown = slice(None, None, max(n_points // _SHOWN_POINTS, 1))
        outcome["samples"] = {
            "x": toy.evaluation_points(n_points)[shown].round(4).tolist(),
            "y": kept[0][:, shown].round(4).tolist(),
        }
    if n_test:
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(_TEST_STREAM,)))
        x = toy.sample_x(n_test, rng)
        y = toy.sample(x, rng)
        asked, outcome["seconds"]["predict"] = _timed(lambda: ask_rows(model, x[:, None], y))
        bins = np.bincount(np.minimum((asked.pit * 10).astype(int), 9), minlength=10)
        scores, outcome["notes"] = _scores(asked)
        outcome["bins"] = bins.tolist()
        outcome["metrics"] |= {"qice_percent": 100 * metrics.qice_from_counts(bins), **scores}
    return outcome


# --- several outputs --------------------------------------------------------------------------


def _perform_outputs(cell: Cell, runs: Sequence[int]) -> Iterator[tuple[int, Outcome]]:
    problem = load_plane(cell.dataset)
    return _fit_and_score(
        cell,
        runs,
        lambda seed: problem.make(cell.protocol["n_train"], seed),
        lambda model, seed: _score_outputs(cell.protocol, problem, model, seed),
    )


def _score_outputs(
    protocol: dict[str, Any], problem: Problem, model: ConditionalEstimator, seed: int
) -> dict[str, Any]:
    """Draws against true ones at even points, and against fresh rows; a perfect model's beside."""
    truth, test = (
        np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(stream,)))
        for stream in (_TRUTH_STREAM, _TEST_STREAM)
    )
    points = problem.evaluation_points(protocol["n_points"])
    n_draws, n_test_draws = protocol["n_draws"], protocol["n_test_draws"]
    true_draws = problem.sample(points, truth, n_draws)
    x = problem.sample_x(protocol["n_test"], test)
    y = problem.sample(x, test)

    def scores(
        sampler: Callable[[np.ndarray, int], np.ndarray], log_density: np.ndarray
    ) -> dict[str, float]:
        sliced = metrics.sliced_wasserstein1(
            sampler(points, n_draws), true_draws, protocol["n_directions"]
        )
        return {
            "sliced_was1_x100": 100 * float(sliced.mean()),
            "energy_score": float(metrics.energy_score(y, sampler(x, n_test_draws)).mean()),
            "nll": metrics.nll(log_density),
        }

    log_density, predict_seconds = _timed(lambda: model.predict_dist(x[:, None]).logpdf(y))
    ours, sample_seconds = _timed(
        lambda: scores(lambda at, n: model.sample(at[:, None], n, random_state=seed), log_density)
    )
    perfect = scores(lambda at, n: problem.sample(at, truth, n), np.log(problem.pdf(x, y)))
    return {
        "metrics": ours | {f"{name}_floor": value for name, value in perfect.items()},
        "seconds": {"sample": sample_seconds, "predict": predict_seconds},
    }


# --- uci --------------------------------------------------------------------------------------


def _perform_uci(cell: Cell, runs: Sequence[int]) -> Iterator[tuple[int, Outcome]]:
    from nkcme.datasets.uci import load_uci  # may download, so not for the toys

    data = load_uci(cell.dataset)
    if cell.method in specs.PEERS:
        return _perform_peer(cell, data, runs)

    def training(fold: int) -> tuple[np.ndarray, np.ndarray]:
        rows, _ = data.fold(fold)
        return data.X[rows], data.y[rows]

    def score(model: ConditionalEstimator, fold: int) -> dict[str, Any]:
        _, rows = data.fold(fold)
        return _score_uci(cell, model, data.X[rows], data.y[rows], fold)

    return _fit_and_score(cell, runs, training, score)


def _score_uci(
    cell: Cell, model: ConditionalEstimator, X: np.ndarray, y: np.ndarray, fold: int
) -> dict[str, Any]:
    """QICE and RMSE by the same samples, as in the paper; the rest by the distribution."""
    draws, sample_seconds = _timed(
        lambda: draw(model, X, cell.protocol["draws"], cell.protocol["n_draws"], fold)
    )
    bins = metrics.decile_counts(y, draws)
    asked, predict_seconds = _timed(lambda: ask_rows(model, X, y))
    scores, notes = _scores(asked)
    return {
        "metrics": {
            "qice_percent": 100 * metrics.qice_from_counts(bins),
            "rmse": specs.rmse_scale(cell.dataset) * metrics.rmse(y, draws.mean(axis=0)),
            **scores,
        },
        "bins": bins.tolist(),
        "notes": notes,
        "seconds": {"sample": sample_seconds, "predict": predict_seconds},
    }


def _perform_peer(cell: Cell, data: UciTable, runs: Sequence[int]) -> Iterator[tuple[int, Outcome]]:
    """Fold by fold, in a process each; a fold that fails does not end the others."""
    for fold in runs:
        train_rows, test_rows = data.fold(fold)
        try:
            outcome = peers.perform_fold(
                cell, data.X[train_rows], data.y[train_rows],
                data.X[test_rows], data.y[test_rows], seed=fold,
            )  # fmt: skip
        except NkcmeError as error:
            yield fold, error
        else:
            yield fold, outcome


# --- growth with n ----------------------------------------------------------------------------


def _perform_scaling(cell: Cell, runs: Sequence[int]) -> Iterator[tuple[int, Outcome]]:
    """Time two fits of one table, one of twice the epochs of the other, and a prediction.

    Their difference is the price of a step; what is left of the shorter one does not depend on
    steps: encoding the table, and what a method solves on all rows at the end. Everything is done
    once before it is timed, so nothing of it is compilation.
    """
    n = int(cell.dataset)
    for run in runs:
        rng = np.random.default_rng(run)
        X = rng.normal(size=(n, cell.protocol["n_inputs"]))
        y = X[:, 0] + np.exp(0.3 * X[:, 1]) * rng.normal(size=n)
        estimator = _estimator(cell).set_params(random_state=run)
        seconds = _seconds_of_second_fit(estimator, X, y)
        result: dict[str, Any] = {"fit_seconds": seconds}
        steps = getattr(estimator, "n_steps_", None)
        if steps is not None and "epochs" in cell.parameters:
            twice = _estimator(cell).set_params(random_state=run)
            twice.set_params(
                **{k: 2 * v for k, v in cell.parameters.items() if k in ("epochs", "mean_epochs")}
            )
            longer = _seconds_of_second_fit(twice, X, y)
            # On a busy machine the difference of two short fits can be noise; it is never negative.
            step = max(longer - seconds, 0.0) / (twice.n_steps_ - steps)
            rest = max(seconds - steps * step, 0.0)
            result |= {
                "fit_seconds": rest + specs.SCALING_STEPS * step,
                "seconds_a_step": step,
                "seconds_without_steps": rest,
                "measured_steps": steps,
            }
        rows = X[: cell.protocol["n_predicted"]]
        estimator.predict_interval(rows)
        _, seconds = _timed(partial(estimator.predict_interval, rows))
        result["predict_seconds"] = seconds * specs.SCALING_PREDICTED / len(rows)
        yield run, {"metrics": result}


def _seconds_of_second_fit(estimator: Any, X: np.ndarray, y: np.ndarray) -> float:
    estimator.fit(X, y)
    return _timed(lambda: estimator.fit(X, y))[1]


def _perform_year(cell: Cell, runs: Sequence[int]) -> Iterator[tuple[int, Outcome]]:
    """The recipe for Year on a generated table of its size: seconds a step, and peak memory."""
    n_rows, n_test = cell.protocol["n_rows"], cell.protocol["n_test"]
    for run in runs:
        rng = np.random.default_rng(run)
        X = rng.normal(size=(n_rows, cell.protocol["n_inputs"]))
        y = X[:, 0] + np.exp(0.3 * X[:, 1]) * rng.normal(size=n_rows)
        before = _peak_memory()
        model = _estimator(cell).set_params(random_state=run)
        fit = partial(model.fit, X[:-n_test], y[:-n_test])
        first, again = _timed(fit)[1], _timed(fit)[1]
        interval, predicted = _timed(partial(model.predict_interval, X[-n_test:]))
        yield (
            run,
            {
                "metrics": {
                    "fit_seconds_with_compilation": first,
                    "fit_seconds": again,
                    "steps": model.n_steps_,
                    "seconds_a_step": again / model.n_steps_,
                    "predict_seconds": predicted,
                    "coverage": metrics.coverage(y[-n_test:], interval),
                    "table_gib": (X.nbytes + y.nbytes) / 2**30,
                    "host_gib_before": before["host_gib"],
                    **{f"{name}_peak": value for name, value in _peak_memory().items()},
                }
            },
        )


def _peak_memory() -> dict[str, float]:
    """The most this process has held so far, in GiB: of the host and, where known, the device."""
    import resource  # which Windows lacks

    unit = 1 if sys.platform == "darwin" else 1024  # getrusage counts in KiB, but not on a Mac
    held = {"host_gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**30}
    stats = jax.devices()[0].memory_stats() or {}
    if "peak_bytes_in_use" in stats:
        held["device_gib"] = stats["peak_bytes_in_use"] / 2**30
    return held


# --- reinforcement learning -------------------------------------------------------------------


def _perform_rl(cell: Cell, runs: Sequence[int]) -> Iterator[tuple[int, Outcome]]:
    """Train the agents of all seeds as one program; what was warned of is noted in their rows."""
    agent = agent_from_config(cell.parameters["agent"])
    settings = Settings(**cell.parameters["settings"])
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        result, seconds = _timed(lambda: train(cell.dataset, agent, settings, seeds=list(runs)))
    if result.interrupted:
        raise KeyboardInterrupt
    curve = result.curve
    last_fifth, area = curve.last_fifth(), curve.area()
    for k, run in enumerate(runs):
        returns, span = thin(curve.returns[:, k], cell.protocol["curve_points"])
        yield (
            run,
            {
                "metrics": {"last_fifth": float(last_fifth[k]), "area": float(area[k])},
                "curve": {"every": span * settings.eval_every, "returns": pack(returns)},
                "seconds": {"fit_all": seconds, "fitted_together": len(runs)},
                "steps": result.n_steps,
                "notes": [str(w.message) for w in warned],
            },
        )


# --- shared -----------------------------------------------------------------------------------


def _fit_and_score(
    cell: Cell,
    runs: Sequence[int],
    training: Callable[[int], tuple[np.ndarray, np.ndarray]],
    score: Callable[[ConditionalEstimator, int], dict[str, Any]],
) -> Iterator[tuple[int, Outcome]]:
    """Fit all runs at once, run k with random state k, and score one after the other."""
    datasets = [training(run) for run in runs]
    models, seconds = _timed(lambda: _estimator(cell).fit_many(datasets, random_states=list(runs)))
    for run, model in zip(runs, models, strict=True):
        try:
            outcome = score(model, run)
        except Exception as error:
            yield run, error
        else:
            outcome["seconds"] |= {"fit_all": seconds, "fitted_together": len(runs)}
            outcome["steps"] = getattr(model, "n_steps_", None)
            yield run, outcome


def _estimator(cell: Cell) -> Any:
    if cell.estimator not in ESTIMATORS:
        raise NkcmeError(
            f"{cell.method} needs the estimator {cell.estimator}; there are {', '.join(ESTIMATORS)}"
        )
    return ESTIMATORS[cell.estimator](**cell.parameters)


def _scores(asked: Evaluation) -> tuple[dict[str, float | None], list[str]]:
    """Scores of the distribution itself, and what has to be said about them."""
    scores: dict[str, float | None] = {
        "crps": float(asked.crps.mean()),
        "coverage": metrics.coverage(asked.y, asked.interval),
        "width": metrics.interval_width(asked.interval),
    }
    zero = int(np.isneginf(asked.log_density).sum())
    if zero:
        note = f"nll is infinite: density 0 at {zero} of {len(asked)} rows"
        return scores | {"nll": None}, [note]
    return scores | {"nll": metrics.nll(asked.log_density)}, []


def _timed(work: Callable[[], Any]) -> tuple[Any, float]:
    start = time.perf_counter()
    return work(), time.perf_counter() - start


_PERFORMERS = {
    "toy": _perform_toy,
    "toy-quick": _perform_toy,
    specs.OUTPUTS: _perform_outputs,
    "uci": _perform_uci,
    "scaling": _perform_scaling,
    "year": _perform_year,
    "rl": _perform_rl,
}
