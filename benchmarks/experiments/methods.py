"""The methods that are compared: this library's estimators, and packages of others (peers)."""

from __future__ import annotations

from typing import Any, NamedTuple

from nkcme import presets


class Method(NamedTuple):
    """A column of the tables: its label, its estimator, and how samples are drawn from it.

    ``sampling`` is ``"herd"`` or ``"independent"`` as in `sample`, or ``"quantiles"``: the
    quantiles at (i + 1/2) / n, the n points that represent a predicted distribution best.
    """

    label: str
    estimator: str
    sampling: str
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

#: The library's default, and one network of it (`presets.QUICK`).
DEFAULT, ONE_NETWORK = "nkcme", "nkcme-quick"

#: The parameters that distinguish our two recipes from older versions of them. The default's are
#: given explicitly so that rows of another version's default do not match.
OUR_PARAMETERS: dict[str, dict[str, Any]] = {
    DEFAULT: {"center": "auto", "n_members": None, "recalibrate": "auto", "atoms": "auto"},
    ONE_NETWORK: presets.QUICK,
}


def recipe(method: str, dataset: str) -> dict[str, Any]:
    """The parameters of a method on a data set: the paper's, or ours for methods it lacks."""
    if METHODS[method].in_paper:
        return presets.paper(method, dataset)
    return OUR_PARAMETERS.get(method, {})


class Peer(NamedTuple):
    """A package of others: its requirement, and its estimator with the parameters to set.

    ``sampling`` is ``"quantiles"`` or ``"independent"``, as for a `Method`.
    """

    label: str
    requirement: str
    estimator: str
    parameters: dict[str, Any]
    sampling: str


#: The levels of the quantile regressions of CatBoost and LightGBM; quantiles between them are
#: interpolated.
_FITTED_LEVELS = [0.001, 0.005, *(k / 20 for k in range(1, 20)), 0.995, 0.999]

#: On one thread, NGBoost, quantile-forest and Treeffuser with their default settings (500 trees is
#: NGBoost's default too). CatBoost fits one model of all levels, LightGBM one model per level.
PEERS: dict[str, Peer] = {
    "ngboost": Peer("NGBoost", "ngboost>=0.5", "NGBRegressor", {"n_estimators": 500}, "quantiles"),
    "quantile-forest": Peer(
        "quantile-forest", "quantile-forest>=1.4", "RandomForestQuantileRegressor",
        {"n_estimators": 100}, "quantiles",
    ),
    "treeffuser": Peer(
        "Treeffuser", "treeffuser>=0.2", "Treeffuser", {"n_jobs": 1}, "independent"
    ),
    "catboost": Peer(
        "CatBoost", "catboost>=1.2", "CatBoostRegressor",
        {"iterations": 1000, "levels": _FITTED_LEVELS}, "quantiles",
    ),
    "lightgbm": Peer(
        "LightGBM", "lightgbm>=4", "Booster",
        {"num_iterations": 500, "learning_rate": 0.05, "levels": _FITTED_LEVELS}, "quantiles",
    ),
}  # fmt: skip


def label(method: str) -> str:
    """The printed name of a method or a peer."""
    return PEERS[method].label if method in PEERS else METHODS[method].label
