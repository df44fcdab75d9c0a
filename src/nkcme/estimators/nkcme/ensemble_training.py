"""How the ensembles of an `NKCME` train: for a number of steps, or until it helps no more."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from nkcme.estimators.nkcme import parameters
from nkcme.estimators.nkcme.ensemble import EnsembleTraining
from nkcme.estimators.training_data import Encoded

if TYPE_CHECKING:
    from nkcme.estimators.nkcme.estimator import NKCME


def ensemble_training(
    model: NKCME, head: str, datasets: Sequence[Encoded], n_repeats: int, open_ended: bool
) -> EnsembleTraining:
    """The training of ensembles with this head; ``open_ended`` for one without a fixed length."""
    recipe = model._recipe.embedding
    options = model._options()._replace(n_steps=partial(parameters.count_steps, model, head))
    spec = partial(model._spec_with, head)
    n_atoms = model.n_atoms or recipe.count_atoms(datasets[0].y.shape[1])
    values = partial(parameters.table_values, model)
    training = EnsembleTraining(spec, values, options, model.atoms, n_atoms, n_repeats, recipe)
    if not open_ended:
        return training
    n_rows = int(np.mean([data.n_rows for data in datasets]))
    return training._replace(
        spec=lambda *sizes: parameters.open_ended(spec(*sizes), recipe),
        options=options._replace(
            batch_size=model.batch_size or recipe.open_ended_batch(n_rows),
            marks=recipe.stopping.marks,
            judge_patience=recipe.stopping.patience,
            least_gain=recipe.stopping.least_gain,
        ),
    )
