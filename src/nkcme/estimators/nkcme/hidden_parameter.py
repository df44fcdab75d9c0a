"""A parameter that has the name of a method of scikit-learn's."""

from __future__ import annotations

from typing import Any


class HiddenParameter:
    """A parameter that `get_params` and `set_params` know, and that is no attribute otherwise.

    scikit-learn takes whatever has an attribute ``transform`` for a transformer.
    """

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        raise AttributeError(
            f"{self._name} is a parameter, no method: get_params()[{self._name!r}] is its value"
        )

    def __set__(self, instance: Any, value: Any) -> None:
        vars(instance)[self._name] = value


class WithHiddenParameter:
    """The `get_params` of an estimator that has such parameters."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Get the parameters of this estimator.

        Parameters
        ----------
        deep : bool
            Whether those of parameters that are estimators are included.

        Returns
        -------
        dict
        """
        found: dict[str, Any] = {}
        for name in self._get_param_names():  # type: ignore[attr-defined]
            value = vars(self)[name]
            if deep and hasattr(value, "get_params") and not isinstance(value, type):
                found |= {f"{name}__{key}": one for key, one in value.get_params().items()}
            found[name] = value
        return found
