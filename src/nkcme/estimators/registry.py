"""The estimators by name; a class is imported when it is first asked for.

Names alone need neither JAX nor scikit-learn, which take seconds to import.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from importlib import import_module
from typing import TYPE_CHECKING, TypeVar

from nkcme.errors import NkcmeError

if TYPE_CHECKING:
    from nkcme.estimators.base import ConditionalEstimator

#: The modules of the estimators of this library, in the order in which messages list them.
HOMES = {
    "NKCME": "nkcme.estimators.nkcme.estimator",
    "KernelCME": "nkcme.estimators.kernel_cme",
    "DeepFeatureCME": "nkcme.estimators.deep_feature_cme",
    "MDN": "nkcme.estimators.mdn",
    "CARD": "nkcme.estimators.card",
    "SplineFlow": "nkcme.estimators.spline_flow",
}

EstimatorClass = TypeVar("EstimatorClass", bound="type[ConditionalEstimator]")


class _Classes(MutableMapping[str, "type[ConditionalEstimator]"]):
    """Classes by name, of which those in `HOMES` are imported on first use."""

    def __init__(self) -> None:
        self._classes: dict[str, type[ConditionalEstimator] | None] = dict.fromkeys(HOMES)

    def __getitem__(self, name: str) -> type[ConditionalEstimator]:
        found = self._classes[name]
        if found is None:
            found = self._classes[name] = getattr(import_module(HOMES[name]), name)
        return found

    def __setitem__(self, name: str, cls: type[ConditionalEstimator]) -> None:
        self._classes[name] = cls

    def __delitem__(self, name: str) -> None:
        del self._classes[name]

    def __contains__(self, name: object) -> bool:  # the inherited one would import the class
        return name in self._classes

    def __iter__(self) -> Iterator[str]:
        return iter(self._classes)

    def __len__(self) -> int:
        return len(self._classes)


#: The estimators that `load` and the command line know, by name.
ESTIMATORS: MutableMapping[str, type[ConditionalEstimator]] = _Classes()


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
    from nkcme.estimators.base import ConditionalEstimator

    if not isinstance(cls, type) or not issubclass(cls, ConditionalEstimator):
        raise NkcmeError(f"only a subclass of ConditionalEstimator can be registered; got {cls!r}")
    if cls.__name__ in ESTIMATORS:
        raise NkcmeError(
            f"an estimator named {cls.__name__!r} is registered already; choose another class name"
        )
    ESTIMATORS[cls.__name__] = cls
    return cls
