"""NKCME: the paper's estimator. A network gives the weights, the kernel's bandwidth is learned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from nkcme.estimators.nkcme import parameters
from nkcme.estimators.nkcme.background_fits import BackgroundFits
from nkcme.estimators.nkcme.calibrating import fit_law
from nkcme.estimators.nkcme.candidate import Candidate
from nkcme.estimators.nkcme.embedding_network import Spec, make_task
from nkcme.estimators.nkcme.ensemble_training import ensemble_training
from nkcme.estimators.nkcme.fitted_model import TrainedModel
from nkcme.estimators.nkcme.fitting_large_tables import FitsLargeTables
from nkcme.estimators.nkcme.folds import Folds, hold_out
from nkcme.estimators.nkcme.hidden_parameter import HiddenParameter, WithHiddenParameter
from nkcme.estimators.nkcme.law import Law
from nkcme.estimators.nkcme.location_fitting import fit_location_models, read_trees
from nkcme.estimators.nkcme.location_networks import LOCATION, REFINED
from nkcme.estimators.nkcme.prediction import PredictingEstimator
from nkcme.estimators.nkcme.recipe import DEFAULT, Recipe
from nkcme.estimators.nkcme.selection import FIXED, LOCATED, SCALED, select
from nkcme.estimators.nkcme.training_defaults import WithTrainingDefaults
from nkcme.estimators.nkcme.transform_choice import understand_target
from nkcme.estimators.training_data import Encoded, Target
from nkcme.training.cores import available_cores

#: About which share of a fit each stage is, for its progress bar.
_STAGES = {LOCATION: 0.5, REFINED: 0.1, LOCATED: 0.2, FIXED: 0.15, SCALED: 0.05}


class NKCME(WithHiddenParameter, FitsLargeTables, WithTrainingDefaults, PredictingEstimator):
    """Neural-kernel conditional mean embedding: P(y | x) of any shape, from a table.

    The distribution is an element of a reproducing kernel Hilbert space,
    sum_a w_a(x) k(eta_a, .), with weights from a neural network and a learned bandwidth. `fit`
    takes these steps:

    1. Assign the rows to folds, several times over.
    2. Fit the location model m(x), a stack of networks and gradient boosting, to every training
       fold. Its out-of-fold predictions give residuals as for new rows.
    3. Fit an ensemble of embeddings to the residuals, one member per training fold. With atoms at
       m(x) + zeta_a, the embedding moves with x.
    4. Fit an ensemble with fixed atoms as well, whose weights are those of normal components, and
       keep the one with the better out-of-fold score.
    5. Learn how the weights are read as a law of y: calibration map, tails and support. Large
       tables hold some rows out from steps 1 to 4 for that, others use out-of-fold predictions.

    A prediction averages all members in the Hilbert space and reads them by that law.
    `presets.QUICK` is one network without steps 1, 2, 4 and 5; `presets` has the paper's recipes.

    Parameters
    ----------
    kernel : {"gaussian", "laplace", "cauchy"}
        The density kernel in which distributions are embedded.
    center : {"auto", "none", "mean", "mean-scale"}, regressor or list
        The location model, which the atoms move with. "none": atoms are the same for every x.
        "mean": m(x), stacked from networks and gradient boosting. "mean-scale": with a scale s(x)
        by boosting, common to all outputs; the embedding is that of (y - m(x)) / s(x). A
        scikit-learn regressor, or a list of regressors in which "network" stands for our networks:
        these are cross-fitted and stacked instead. "auto": "mean" where it is clearly better than
        "none" out-of-fold; they are not compared where the mean explains most of y. For several
        outputs also "mean-scale", where that is clearly better than both.
    support : {"auto", "none"}
        What values y can take. "auto" finds few values, whole numbers, a lower bound of zero,
        shares between 0 and 1, and bounds that many rows lie on; ``support_`` says what was found.
        No prediction has mass elsewhere. For one output and weights on the simplex.
    bounds : (float or None, float or None) or None
        The least and the largest value of y, instead of what "auto" finds.
    integer : bool
        Whether y is a whole number; with ``bounds`` or without.
    values : list of float or None
        All values that y can take.
    transform : {"auto", "none", "log"}
        What of y is modelled: y, or its logarithm, which suits positive y whose spread grows with
        its size. Predictions are in units of y either way. "auto": the logarithm where y is
        positive, neither whole numbers nor few values, and quick models of log y have a clearly
        better CRPS in cross-validation, but never with ``center="none"``; ``transform_`` says what
        was chosen. "log" needs y above zero, one output, and weights on the simplex read as law.
    n_members : int or None
        The number of networks that are averaged; with cross-fitting, the number of repeats, each
        with five networks. None: chosen from the number of rows.
    recalibrate : bool or "auto"
        Whether to fit a calibration map. It needs weights on the simplex and one output; "auto"
        fits it for those.
    atoms : {"auto", "grid", "quantile", "learned"}
        Where the locations eta_a are that carry weights. "grid": evenly over the range of y.
        "quantile": half of them at quantiles of y, half evenly over a slightly wider range.
        "learned": the same, around where a first network moves them while it trains. "auto": "grid"
        for y itself where its range is not many standard deviations wide, "quantile" otherwise and
        for residuals. For several outputs they are cluster centres of y.
    n_atoms : int or None
        The number of atoms. None: 100 for one output, 300 for several.
    hidden : tuple of int
        Widths of the network's hidden layers.
    activation : {"relu", "silu", "gelu", "tanh"}
        Of networks that give the weights themselves. For components the recipe has it.
    head : {"simplex", "components", "signed"}
        Weights on the simplex (softmax), from normal components that are trained by maximum
        likelihood and move with x (for one output), or unconstrained as in the paper. With
        "simplex" and ``center="auto"`` the fixed atoms of one output have components.
    spectral_norm : tuple of int
        Layers to normalise by their largest singular value (0 is the first, -1 the last).
    bandwidth : float
        The bandwidth at the start, in units of standardised y (of several outputs, times the root
        of their number, as distances are). Starting wide and letting it shrink trains coarse to
        fine, which reaches better models than starting narrow.
    bandwidth_floor : float or None
        The least bandwidth, in spacings between neighbouring atoms. A finer embedding would only
        fit noise. 0 for the paper's unbounded bandwidth (which is still kept from vanishing).
        None: chosen from the number of rows.
    bandwidth_update : {"joint", "iterative", "fixed"}
        Learn the bandwidth with the weights on one loss, in turns on the SQ loss, or not at all.
    bandwidth_period : int
        With "iterative", update it every ``bandwidth_period`` steps.
    learning_rate : float
        AdamW's step size for the network.
    bandwidth_learning_rate : float or None
        AdamW's step size for the bandwidth, without weight decay. None: the network's, with its
        decay, as in the paper.
    weight_decay : float or None
        AdamW's weight decay. None: chosen from the numbers of rows and inputs.
    beta2 : float
        AdamW's decay rate of squared gradients.
    schedule : {"auto", "cosine", "constant"}
        The course of the learning rates. "auto": cosine, unless networks are cross-fitted and
        ``epochs`` is None. Then training ends where its out-of-fold score has settled.
    batch_size : int or None
        Rows of a step. None: chosen from the number of rows.
    epochs : int or None
        Passes over the data: floor(n / batch_size) * epochs steps. None: as long as it helps, or
        chosen from the number of rows.
    columns : dict or None
        Types of columns by name or position, instead of those found: "number", "boolean",
        "category", "text", "date", "time", or "drop" for a column that is not used.
    standardize : bool, "robust" or "auto"
        Standardise X and y for training; predictions are in the original units. "robust":
        inputs by quantiles, with outliers pulled in, so that a few enormous values do no harm.
        "auto": robust unless ``center="none"``.
    reading : {"auto", "law", "atomic", "smoothed"}
        How predicted embeddings are read (see `Embedding`); "auto" is the law for the simplex,
        atomic for several outputs, and smoothed for signed weights.
    validation_fraction : float
        Share of rows held out to choose the state of training, unless `fit` gets ``X_val``.
    patience : int or None
        Stop after this many chunks (twentieths of the run) without a better score of held-out rows.
    recipe : Recipe or None
        All other constants of the method. None: the default recipe.
    random_state : int, RandomState or None
        The same integer gives the same bits on the same machine.
    verbose : bool or "auto"
        Progress on standard error; "auto" where it is a terminal.
    checkpoint : path or None
        A file that keeps the state of training. A killed fit continues from it to the same bits.

    Attributes
    ----------
    bandwidth_ : float
        The learned bandwidth, in units of standardised y or, with a location model, of its
        residuals; the geometric mean of all members.
    center_ : LocationModel or None
        The fitted location model.
    recalibration_ : CalibrationMap or None
        The fitted calibration map.
    support_ : Support
        The values that y can take.
    transform_ : {"none", "log"}
        What of y is modelled.
    law_ : Law
        How weights are read as distributions: calibration map, tails, transform and support.
    n_atoms_, n_members_, n_steps_ : int
        Atoms, networks that are averaged, and steps trained.
    history_ : dict of arrays
        ``step``, ``loss``, ``bandwidth`` and, with held-out rows, ``validation``, by chunk.
    fit_seconds_ : dict of float
        How long `fit` took, in ``total`` and for ``compilation``. A loaded model has none.
    columns_ : TableSummary
        How each column was read, and doubts about it.
    n_features_in_, feature_names_in_, n_outputs_
        As in all scikit-learn estimators.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from nkcme import NKCME
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = NKCME(random_state=0).fit(X[100:], y[100:])
    >>> intervals = model.predict_interval(X[:100], coverage=0.9)
    """

    def __init__(
        self,
        *,
        kernel: str = "gaussian",
        center: Any = "auto",
        support: str = "auto",
        bounds: tuple[float | None, float | None] | None = None,
        integer: bool = False,
        values: Sequence[float] | None = None,
        transform: str = "auto",
        n_members: int | None = None,
        recalibrate: bool | str = "auto",
        atoms: str = "auto",
        n_atoms: int | None = None,
        hidden: Sequence[int] = DEFAULT.embedding.hidden,
        activation: str = DEFAULT.embedding.activation,
        head: str = "simplex",
        spectral_norm: Sequence[int] = (),
        bandwidth: float = DEFAULT.embedding.bandwidth,
        bandwidth_floor: float | None = None,
        bandwidth_update: str = "joint",
        bandwidth_period: int = 1,
        learning_rate: float = DEFAULT.embedding.learning_rate,
        bandwidth_learning_rate: float | None = DEFAULT.embedding.bandwidth_learning_rate,
        weight_decay: float | None = None,
        beta2: float = DEFAULT.embedding.beta2,
        schedule: str = "auto",
        batch_size: int | None = None,
        epochs: int | None = None,
        columns: Mapping[Any, str] | None = None,
        standardize: bool | str = "auto",
        reading: str = "auto",
        validation_fraction: float = 0.0,
        patience: int | None = None,
        recipe: Recipe | None = None,
        random_state: Any = None,
        verbose: bool | str = "auto",
        checkpoint: str | Path | None = None,
    ):
        self.kernel = kernel
        self.center = center
        self.support = support
        self.bounds = bounds
        self.integer = integer
        self.values = values
        self.transform = transform
        self.n_members = n_members
        self.recalibrate = recalibrate
        self.atoms = atoms
        self.n_atoms = n_atoms
        self.hidden = hidden
        self.activation = activation
        self.head = head
        self.spectral_norm = spectral_norm
        self.bandwidth = bandwidth
        self.bandwidth_floor = bandwidth_floor
        self.bandwidth_update = bandwidth_update
        self.bandwidth_period = bandwidth_period
        self.learning_rate = learning_rate
        self.bandwidth_learning_rate = bandwidth_learning_rate
        self.weight_decay = weight_decay
        self.beta2 = beta2
        self.schedule = schedule
        self.batch_size = batch_size
        self.epochs = epochs
        self.columns = columns
        self.standardize = standardize
        self.reading = reading
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.recipe = recipe
        self.random_state = random_state
        self.verbose = verbose
        self.checkpoint = checkpoint

    transform = HiddenParameter()
    _has_folds = True

    # --- training: the steps of the class's docstring -------------------------------------------

    def _understand_target(self, *rows: Any) -> Target:
        return understand_target(self, *rows)

    def _train(self, datasets: Sequence[Encoded]) -> list[TrainedModel]:
        recipe, run = self._recipe, self._run(datasets)
        located, calibrated = parameters.stages(self, datasets)
        if located or calibrated:
            datasets = [data.with_copies(recipe.most_copies) for data in datasets]
        held_out: list[Encoded | None] = [None] * len(datasets)
        if calibrated:
            parts = [hold_out(data, recipe.law) for data in datasets]
            datasets, held_out = [part[0] for part in parts], [part[1] for part in parts]
        n_repeats = self.n_members or 1
        if self.n_members is None and (located or calibrated):
            n_repeats = recipe.count_repeats(datasets[0].n_rows)
        folds = [Folds.of(data, recipe.n_folds, n_repeats) for data in datasets]
        n_outputs = datasets[0].y.shape[1]
        open_ended = (located or calibrated) and parameters.may_stop_early(self, datasets)
        training = ensemble_training(self, self.head, datasets, n_repeats, open_ended)
        if not located:
            held = folds if calibrated else [None] * len(folds)
            fits = training.fit(list(map(Candidate, datasets, held)), run)
        else:
            with run.in_groups().with_stages(_STAGES) as run:
                located_by = fit_location_models(self.center, datasets, folds, recipe.location, run)
                candidates = list(map(Candidate, datasets, folds, located_by))
                fits = training.fit(candidates, run.group(LOCATED))
                if parameters.has_center(self, "auto") and not any(f.interrupted for f in fits):
                    head = parameters.head_of_fixed_atoms(self, n_outputs)
                    of_fixed = ensemble_training(self, head, datasets, n_repeats, open_ended)
                    fits = select(fits, recipe, {FIXED: of_fixed, SCALED: training}, run)
                for fit in fits:
                    read_trees(fit.candidate.location)
        if not calibrated:
            return [TrainedModel(fit, Law(*fit.candidate.data.target)) for fit in fits]
        must = parameters.must_calibrate(self.recalibrate)
        learn = partial(fit_law, recipe=recipe.law, always_map=must)
        if len(fits) == 1:
            return [TrainedModel(fits[0], learn(fits[0], held_out[0]))]
        jobs = zip(fits, held_out, strict=True)
        # Laws are many short calls: more threads than two wait for Python's lock, and for longer.
        laws = BackgroundFits(lambda job: learn(*job), jobs, min(available_cores(), 2)).results()
        return [TrainedModel(*pair) for pair in zip(fits, laws, strict=True)]

    @property
    def _standardisation(self) -> bool | str:
        return parameters.standardisation_of(self)

    def _n_steps(self, n_rows: int) -> int:
        return parameters.count_steps(self, self.head, n_rows)

    def _spec(self, n_in: int, n_out: int, n_steps: int, n_rows: int) -> Spec:
        return self._spec_with(self.head, n_in, n_out, n_steps, n_rows)

    def _spec_with(self, head: str, n_in: int, n_out: int, n_steps: int, n_rows: int) -> Spec:
        return parameters.make_spec(self, head, self._descent(n_steps), n_in, n_out)

    _task = staticmethod(make_task)

    def _check_own_parameters(self) -> None:
        parameters.check(self)

    def _accept(self, trained: TrainedModel) -> None:  # type: ignore[override]
        fit = trained.fit
        self.model_ = fit.ensemble.members
        self.n_steps_, self.history_ = fit.n_steps, fit.history
        self.center_ = None if fit.candidate.location is None else fit.candidate.location.model
        self.law_ = trained.law
        self._describe()
