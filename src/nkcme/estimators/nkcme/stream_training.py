"""Training `NKCME` on a stream of rows, of tables that are too large for cross-fitting.

1. Some rows are sampled, the others are the stream.
2. The location model is fitted: trees to sampled rows, networks to the stream. Its stack is fitted
   to sampled rows that are new to all of them.
3. Ensembles of embeddings are trained on the other half of the stream, and compared on the same
   sampled rows.
4. The law is learned from sampled rows that nothing else has used.

There are no folds: every member predicts all sampled rows as new ones. Each is held out by all
members, which is what `held_out_by_all` says, and the rest is as with cross-fitting.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from nkcme.estimators.fingerprint import fingerprint
from nkcme.estimators.nkcme import parameters
from nkcme.estimators.nkcme.calibrating import fit_law
from nkcme.estimators.nkcme.candidate import Candidate
from nkcme.estimators.nkcme.ensemble_training import ensemble_training
from nkcme.estimators.nkcme.fitted_model import TrainedModel
from nkcme.estimators.nkcme.folds import Folds
from nkcme.estimators.nkcme.law import Law
from nkcme.estimators.nkcme.location_fitting import fit_location_models
from nkcme.estimators.nkcme.location_recipe import StoppingRecipe
from nkcme.estimators.nkcme.recipe import Recipe
from nkcme.estimators.nkcme.selection import FIXED, LOCATED, select
from nkcme.estimators.nkcme.stream_recipe import StreamRecipe
from nkcme.estimators.nkcme.training_stream import TrainingStream
from nkcme.estimators.replica_training import Run
from nkcme.estimators.training_data import Encoded
from nkcme.training.chunks import Checkpoint
from nkcme.training.processes import is_first

if TYPE_CHECKING:
    from nkcme.estimators.nkcme.estimator import NKCME


class SampleSizes(NamedTuple):
    """How many rows of a table are sampled for what."""

    held_out: int
    calibration: int
    judged: int
    boosting: int  # for each member
    n_members: int

    @classmethod
    def of(cls, n_rows: int, n_members: int, recipe: StreamRecipe) -> SampleSizes:
        """The sizes for a table of ``n_rows``; trees get fewer rows where it is small."""
        most = int(recipe.most_sampled * n_rows)
        held_out = min(recipe.held_out_rows, most // 8)
        calibration = min(recipe.calibration_rows, most // 8)
        judged = min(recipe.judged_rows, most // 4)
        rest = most - held_out - calibration - judged
        boosting = min(recipe.boosting_rows, rest // n_members)
        return cls(held_out, calibration, judged, boosting, n_members)

    @property
    def total(self) -> int:
        """The rows of all."""
        return sum(self[:3]) + self.n_members * self.boosting


def unsuited(model: NKCME) -> str | None:
    """The name of a parameter with a value that training on a stream does not have."""
    named = isinstance(model.center, str) and model.center != "mean-scale"
    refused = {
        "center": not named,
        "head": model.head == "signed",
        "epochs": model.epochs is not None,
        "patience": model.patience is not None,
        "validation_fraction": bool(model.validation_fraction),
        "schedule": model.schedule != "auto",
        "atoms": model.atoms == "learned",
    }
    return next((name for name, is_refused in refused.items() if is_refused), None)


def held_out_by_all(n_rows: int, n_members: int) -> Folds:
    """Folds of rows that no member has trained on: one repeat for each member."""
    return Folds(np.zeros((n_members, n_rows), np.intp), 1)


def train_on_stream(
    model: NKCME, judged: Encoded, calibration: Encoded, stream: TrainingStream, n_members: int
) -> TrainedModel:
    """The steps of `NKCME._train` with networks that train on a stream.

    Parameters
    ----------
    model : NKCME
        Its parameters; it is not changed.
    judged : Encoded
        Sampled rows that decide when training ends and how bases are stacked.
    calibration : Encoded
        Sampled rows that the law is learned from.
    stream : TrainingStream
    n_members : int
        Networks of each kind.
    """
    recipe = for_streams(model._recipe)
    streaming = copy.copy(model)
    streaming.recipe = recipe
    folds = held_out_by_all(len(judged.x), n_members)
    located, calibrated = parameters.stages(streaming, [judged])
    training = ensemble_training(streaming, model.head, [judged], n_members, open_ended=True)
    training = training._replace(stream=stream)
    with _run(model, judged, stream).in_groups().with_stages(_STAGES) as run:
        if not located:
            fit = training.fit([Candidate(judged, folds)], run.group(FIXED))[0]
        else:
            (location,) = fit_location_models(
                model.center, [judged], [folds], recipe.location, run, stream
            )
            fits = training.fit([Candidate(judged, folds, location)], run.group(LOCATED))
            if parameters.has_center(model, "auto") and not fits[0].interrupted:
                head = parameters.head_of_fixed_atoms(model, 1)
                of_fixed = ensemble_training(streaming, head, [judged], n_members, open_ended=True)
                fits = select(fits, recipe, {FIXED: of_fixed._replace(stream=stream)}, run)
            fit = fits[0]
    if not calibrated:
        return TrainedModel(fit, Law(*judged.target))
    learn = partial(fit_law, always_map=parameters.must_calibrate(model.recalibrate))
    return TrainedModel(fit, learn(fit, calibration, recipe.law))


#: About which share of a fit each stage is, for its progress bar.
_STAGES = {"location": 0.5, "location-refined": 0.1, LOCATED: 0.25, FIXED: 0.15}


def _run(model: NKCME, judged: Encoded, stream: TrainingStream) -> Run:
    if model.checkpoint is None:
        return Run(model.verbose)
    silent = {"checkpoint", "verbose", "random_state"}
    chosen = {k: v for k, v in model.get_params(deep=False).items() if k not in silent}
    digests = [judged.digest(), stream.digest()]
    file = model._checkpoint_file()
    return Run(model.verbose, file if is_first() else _ReadOnly(file), fingerprint(chosen, digests))


class _ReadOnly:
    """The checkpoint of a run for processes that do not write it."""

    def __init__(self, file: Checkpoint):
        self._file = file

    def __str__(self) -> str:
        return str(self._file)

    def load(self) -> tuple[dict[str, Any], dict[str, np.ndarray]] | None:
        return self._file.load()

    def save(self, config: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        pass


def for_streams(recipe: Recipe) -> Recipe:
    """The recipe with minibatches and lengths of training for streams."""
    stream = recipe.stream

    def stopping(least: int = 1) -> StoppingRecipe:
        return StoppingRecipe(
            stream.block_steps, least * stream.block_steps, stream.most_steps, stream.least_gain
        )

    network = replace(
        recipe.location.networks[-1],
        batch_size=stream.batch_size,
        stopping=stopping(least=8),
    )
    embedding = replace(
        recipe.embedding,
        stopping=stopping(),
        open_ended_batch_size=stream.batch_size,
        large_batch_size=stream.batch_size,
    )
    location = replace(recipe.location, networks=(network,))
    return replace(recipe, location=location, embedding=embedding)
