"""The estimators, by name, and how to load one."""

from __future__ import annotations

import textwrap
from pathlib import Path

from nkcme.errors import ModelFileError
from nkcme.estimators.base import ConditionalEstimator, TrainingInterrupted
from nkcme.estimators.card import CARD
from nkcme.estimators.deep_feature_cme import DeepFeatureCME
from nkcme.estimators.kernel_cme import KernelCME
from nkcme.estimators.mdn import MDN
from nkcme.estimators.nkcme.estimator import NKCME
from nkcme.estimators.spline_flow import SplineFlow

ESTIMATORS: dict[str, type[ConditionalEstimator]] = {
    cls.__name__: cls for cls in (NKCME, KernelCME, DeepFeatureCME, MDN, CARD, SplineFlow)
}

__all__ = [
    "CARD",
    "ESTIMATORS",
    "MDN",
    "NKCME",
    "ConditionalEstimator",
    "DeepFeatureCME",
    "KernelCME",
    "SplineFlow",
    "TrainingInterrupted",
    "load",
]


def load(path: str | Path) -> ConditionalEstimator:
    """The model that `save` wrote to the directory ``path``.

    Model files are JSON and numbers: loading one runs no code of its author's. Whatever is wrong
    with a file is a `ModelFileError` that says what.
    """
    from nkcme.model_files import read_model  # needs safetensors, which not all machines have

    config, arrays = read_model(path)
    name = config.get("estimator")
    try:
        if not isinstance(name, str) or name not in ESTIMATORS:
            raise ModelFileError(f"expected a model of {', '.join(ESTIMATORS)}; got {name!r}")
        return ESTIMATORS[name]._from_file(config, arrays)
    except ModelFileError as error:
        # What a file says may be as long as the file; a message is one line.
        reason = textwrap.shorten(str(error), 300, placeholder=" ...")
        raise ModelFileError(f"{path}: {reason}") from error
