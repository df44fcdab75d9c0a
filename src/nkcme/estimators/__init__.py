"""The estimators, by name, and how to load one."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TypeVar

from nkcme.errors import ModelFileError, NkcmeError
from nkcme.estimators.base import ConditionalEstimator, TrainingInterrupted
from nkcme.estimators.card import CARD
from nkcme.estimators.deep_feature_cme import DeepFeatureCME
from nkcme.estimators.kernel_cme import KernelCME
from nkcme.estimators.mdn import MDN
from nkcme.estimators.nkcme.estimator import NKCME
from nkcme.estimators.saving import estimator_from_file
from nkcme.estimators.spline_flow import SplineFlow

#: The estimators that `load` and the command line know, by name.
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
    "register_estimator",
]

EstimatorClass = TypeVar("EstimatorClass", bound=type[ConditionalEstimator])


def register_estimator(cls: EstimatorClass) -> EstimatorClass:
    """Add an estimator to those that `load` and the command line know.

    Parameters
    ----------
    cls : subclass of ConditionalEstimator
        It is registered under the name of the class, which model files store.

    Returns
    -------
    cls
        So that it can be used as a decorator.

    Raises
    ------
    NkcmeError
        If ``cls`` is not a subclass of `ConditionalEstimator`, or if the name is taken.

    Examples
    --------
    >>> from nkcme import MDN
    >>> from nkcme.estimators import ESTIMATORS, register_estimator
    >>> @register_estimator
    ... class WideMDN(MDN):
    ...     pass
    >>> ESTIMATORS.pop("WideMDN") is WideMDN
    True
    """
    if not isinstance(cls, type) or not issubclass(cls, ConditionalEstimator):
        raise NkcmeError(f"only a subclass of ConditionalEstimator can be registered; got {cls!r}")
    if cls.__name__ in ESTIMATORS:
        raise NkcmeError(
            f"an estimator named {cls.__name__!r} is registered already; choose another class name"
        )
    ESTIMATORS[cls.__name__] = cls
    return cls


def load(path: str | Path) -> ConditionalEstimator:
    """Load a model that `save` wrote.

    A model file is JSON and arrays. Loading it runs no code from the file.

    Parameters
    ----------
    path : str or Path
        The directory of the model.

    Returns
    -------
    ConditionalEstimator
        A fitted estimator of the class that was saved.

    Raises
    ------
    ModelFileError
        If anything in the file is not as `save` writes it.
    """
    from nkcme.model_files import read_model  # needs safetensors, which not all machines have

    config, arrays = read_model(path)
    name = config.get("estimator")
    try:
        if not isinstance(name, str) or name not in ESTIMATORS:
            raise ModelFileError(f"expected a model of {', '.join(ESTIMATORS)}; got {name!r}")
        return estimator_from_file(ESTIMATORS[name], config, arrays)
    except ModelFileError as error:
        # A text in the file may be as long as the file; a message is one line.
        reason = textwrap.shorten(str(error), 300, placeholder=" ...")
        raise ModelFileError(f"{path}: {reason}") from error
