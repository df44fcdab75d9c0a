"""Loading of saved models for prediction with NumPy."""

from __future__ import annotations

import textwrap
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from nkcme.errors import ModelFileError
from nkcme.runtime.model import LearnedModel, RuntimeModel
from nkcme.tables.encoding import TableEncoder
from nkcme.tables.target import TargetScaler

#: The function that reads the file of each estimator, and its module, imported on first use.
READERS = {
    "NKCME": ("read_nkcme", "nkcme.runtime.neural_embedding"),
    "MDN": ("read_mdn", "nkcme.runtime.baselines"),
    "KernelCME": ("read_kernel_cme", "nkcme.runtime.baselines"),
    "DeepFeatureCME": ("read_deep_feature_cme", "nkcme.runtime.baselines"),
}


def load(path: str | Path) -> RuntimeModel:
    """Load a model that `save` wrote, to predict with NumPy alone.

    A model file is JSON and arrays. Loading it runs no code from the file.

    Parameters
    ----------
    path : str or Path
        The directory of the model.

    Returns
    -------
    RuntimeModel

    Raises
    ------
    ModelFileError
        If anything in the file is not as `save` writes it, or if the estimator needs the full
        library.
    """
    from nkcme.model_files import read_model

    return model_of(path, *read_model(path))


def model_of(
    path: str | Path, config: dict[str, Any], arrays: dict[str, np.ndarray]
) -> RuntimeModel:
    """The model of a file whose contents were read."""
    try:
        return _model(config, arrays)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        # A text in the file may be as long as the file; a message is one line.
        reason = str(error) if isinstance(error, ModelFileError) else f"it is damaged: {error!r}"
        raise ModelFileError(
            f"{path}: {textwrap.shorten(reason, 300, placeholder=' ...')}"
        ) from error


def _model(config: dict[str, Any], arrays: dict[str, np.ndarray]) -> RuntimeModel:
    name = config.get("estimator")
    if name not in READERS:
        raise ModelFileError(
            f"nkcme.runtime predicts with models of {', '.join(READERS)}, and this one is of "
            f"{name!r}, which needs the full library; load it with nkcme.load"
        )
    encoder = TableEncoder.from_config(config.get("encoder"))
    scaler = TargetScaler.from_config(config.get("scaler"))
    y_ndim, target_name = config.get("y_ndim"), config.get("target_name")
    if y_ndim not in (1, 2) or (y_ndim == 1 < len(scaler.location)):
        raise ModelFileError(f"y_ndim must be 1 or 2; the file has {y_ndim!r}")
    if not isinstance(target_name, str | None):
        raise ModelFileError("the name of the target in the file is not text")
    parameters, learned = config.get("parameters"), config.get("learned")
    if not isinstance(parameters, dict) or not isinstance(learned, dict):
        raise ModelFileError("the model file lacks its parameters or its learned state")
    function, home = READERS[name]
    read = getattr(import_module(home), function)
    predictor: LearnedModel = read(parameters, learned, arrays, encoder.n_outputs, scaler)
    return RuntimeModel(
        name, encoder, scaler, predictor, y_ndim=int(y_ndim), target_name=target_name
    )
