"""Fitted estimators and model files: what every estimator's file has in common.

A file is not trusted: everything in it is checked, and whatever does not fit is a ModelFileError.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nkcme.errors import ModelFileError, NkcmeError
from nkcme.tables.encoding import TableEncoder
from nkcme.tables.target import TargetScaler

if TYPE_CHECKING:
    from nkcme.estimators.base import ConditionalEstimator


def save_estimator(estimator: ConditionalEstimator, path: str | Path) -> None:
    """Write a fitted estimator to a model directory."""
    from nkcme.model_files import write_model  # needs safetensors

    learned, arrays = estimator._learned()
    parameters = estimator.get_params(deep=False)
    config = {
        "estimator": type(estimator).__name__,
        "parameters": {name: as_json(name, value) for name, value in parameters.items()},
        "encoder": estimator.encoder_.to_config(),
        "scaler": estimator.scaler_.to_config(),
        "y_ndim": estimator.y_ndim_,
        "target_name": getattr(estimator, "target_name_", None),
        "learned": learned,
        "description": describe(estimator),
    }
    write_model(path, config, arrays)


def describe(estimator: ConditionalEstimator) -> dict[str, Any]:
    """Facts about what a fitted estimator learned, which `nkcme info` shows.

    A class may add its own, by a method `_facts`.
    """
    facts = {
        "kernel": getattr(estimator, "kernel", None),
        "atoms": getattr(estimator, "n_atoms_", getattr(estimator, "n_atoms", None)),
        "bandwidth": getattr(estimator, "bandwidth_", None),
        "steps": getattr(estimator, "n_steps_", None),
        "members": getattr(estimator, "n_members_", None),
        **getattr(estimator, "_facts", dict)(),
    }
    return {name: as_json(name, fact) for name, fact in facts.items() if fact is not None}


def chosen(estimator: ConditionalEstimator) -> str:
    """What a fit chose, as one line of text for the `repr` of an estimator."""
    facts, n_columns = describe(estimator), len(estimator.encoder_.columns)
    target = getattr(estimator, "target_name_", None)
    texts = [
        f"fitted to {n_columns} column{'s' * (n_columns != 1)}",
        f"target {target}" if target is not None else "",
        f"location model {facts['center']}" if "center" in facts else "",
        f"{facts['members']} members" if "members" in facts else "",
        f"{facts['atoms']} atoms" if "atoms" in facts else "",
        f"bandwidth {facts['bandwidth']:.3g}" if "bandwidth" in facts else "",
        "log of y" if facts.get("transform") == "log" else "",
        f"y takes {facts['support']}" if "support" in facts else "",
        "recalibrated" if facts.get("recalibrated") else "",
    ]
    return ", ".join(filter(None, texts))


def estimator_from_file(
    cls: type[ConditionalEstimator], config: dict[str, Any], arrays: dict[str, np.ndarray]
) -> ConditionalEstimator:
    """The estimator of a verified but untrusted model file."""
    parameters = parameters_in_file(config)
    if set(parameters) - set(cls._get_param_names()):
        raise ModelFileError(f"the parameters of this model are not those of {cls.__name__}")
    given = {name: cls._parameter_from_file(name, value) for name, value in parameters.items()}
    estimator = cls(**cls._ABSENT_IN_OLD_FILES | given)
    estimator.encoder_ = encoder_in_file(config)
    from nkcme.tables.table_summary import TableSummary  # nkcme.runtime does not need it

    estimator.columns_ = TableSummary.of_encoder(estimator.encoder_)
    estimator.scaler_ = scaler_in_file(config)
    estimator.n_outputs_ = len(estimator.scaler_.location)
    y_ndim = config.get("y_ndim")
    if y_ndim not in (1, 2) or (y_ndim == 1 < estimator.n_outputs_):
        raise ModelFileError(f"y_ndim must be 1 or 2; the file has {y_ndim!r}")
    estimator.y_ndim_ = int(y_ndim)
    estimator.n_features_in_ = len(estimator.encoder_.columns)
    if estimator.encoder_.feature_names is not None:
        estimator.feature_names_in_ = np.asarray(estimator.encoder_.feature_names, object)
    estimator.target_name_ = target_name_in_file(config)
    learned = config.get("learned")
    if not isinstance(learned, dict):
        raise ModelFileError("the model file lacks its learned state")
    try:
        estimator._check_parameters()
    except (TypeError, ValueError, OverflowError) as error:
        raise ModelFileError(f"the parameters of this model are not usable: {error}") from error
    estimator._relearn(learned, arrays)
    return estimator


def parameters_in_file(config: dict[str, Any]) -> dict[str, Any]:
    """The parameters of the estimator, as JSON has them."""
    parameters = config.get("parameters")
    if not isinstance(parameters, dict):
        raise ModelFileError(
            f"the parameters of this model are not those of {config.get('estimator')}"
        )
    return parameters


def encoder_in_file(config: dict[str, Any]) -> TableEncoder:
    """How tables are encoded."""
    return TableEncoder.from_config(config.get("encoder"))


def scaler_in_file(config: dict[str, Any]) -> TargetScaler:
    """The units of y."""
    return TargetScaler.from_config(config.get("scaler"))


def target_name_in_file(config: dict[str, Any]) -> str | None:
    """The name of the target, where there is one."""
    name = config.get("target_name")
    if not isinstance(name, str | None):
        raise ModelFileError("the name of the target in the file is not text")
    return name


def description_in_file(config: dict[str, Any]) -> dict[str, Any] | None:
    """What `describe` gave; None in files of earlier versions."""
    described = config.get("description")
    facts = described.values() if isinstance(described, dict) else [described]
    if not all(isinstance(fact, bool | int | float | str | None) for fact in facts):
        raise ModelFileError("the description in the file is not text and numbers by name")
    return described


def as_json(name: str, value: Any) -> Any:
    """A parameter as JSON has it: numbers, text, lists, null, or the JSON of its own."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, tuple | list):
        return [as_json(name, one) for one in value]
    if isinstance(value, Mapping):  # keys need not be text
        return {"mapping": [[as_json(name, k), as_json(name, v)] for k, v in value.items()]}
    if isinstance(value, Path):
        return str(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if name == "random_state":  # a generator's state is used up and no part of the model
        return None
    if hasattr(value, "to_config"):
        return value.to_config()
    raise NkcmeError(f"parameter {name} cannot be written to a model file: {value!r}")


def from_json(value: Any) -> Any:
    """A parameter from JSON; lists become tuples."""
    if isinstance(value, dict) and set(value) == {"mapping"}:
        return _mapping_from_json(value["mapping"])
    return tuple(from_json(one) for one in value) if isinstance(value, list) else value


def _mapping_from_json(pairs: Any) -> dict[Any, Any]:
    sound = isinstance(pairs, list) and all(
        isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str | int)
        for pair in pairs
    )
    if not sound:
        raise ModelFileError("a parameter in the file is not a list of pairs")
    return {key: from_json(value) for key, value in pairs}


def count_in_file(config: dict[str, Any], name: str, absent: int | None = None) -> int:
    """A positive whole number of a model file; ``absent`` where old files lack it."""
    count = config.get(name, absent)
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        raise ModelFileError(f"{name} must be a whole number; the file has {count!r}")
    return count
