"""A saved model before it is an estimator: its description, columns and target.

Neither JAX nor scikit-learn is imported until the estimator itself is wanted, so that a damaged
file or an unsuitable table is refused at once.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from nkcme.errors import ModelFileError
from nkcme.estimators.registry import ESTIMATORS
from nkcme.estimators.saving import (
    describe,
    description_in_file,
    encoder_in_file,
    estimator_from_file,
    from_json,
    parameters_in_file,
    scaler_in_file,
    target_name_in_file,
)

if TYPE_CHECKING:
    from nkcme.estimators.base import ConditionalEstimator
    from nkcme.tables.encoding import TableEncoder


class SavedModel(NamedTuple):
    """The contents of a model directory: whole and unaltered, but not trusted.

    Each property checks what it reads, and raises ModelFileError.
    """

    path: Path
    config: dict[str, Any]
    arrays: dict[str, np.ndarray]

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """The model that `save` wrote at a path."""
        from nkcme.model_files import read_model  # needs safetensors, which not all machines have

        saved = cls(Path(path), *read_model(path))
        with saved._errors_name_the_path():
            name = saved.config.get("estimator")
            if not isinstance(name, str) or name not in ESTIMATORS:
                raise ModelFileError(f"expected a model of {', '.join(ESTIMATORS)}; got {name!r}")
        return saved

    @property
    def encoder(self) -> TableEncoder:
        """How tables are encoded."""
        with self._errors_name_the_path():
            return encoder_in_file(self.config)

    @property
    def n_outputs(self) -> int:
        with self._errors_name_the_path():
            return len(scaler_in_file(self.config).location)

    @property
    def target_name(self) -> str | None:
        with self._errors_name_the_path():
            return target_name_in_file(self.config)

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters that the model was fitted with."""
        with self._errors_name_the_path():
            return {k: from_json(v) for k, v in parameters_in_file(self.config).items()}

    @property
    def description(self) -> dict[str, Any]:
        """Facts about what was learned, by name.

        A file of an earlier version has none; its estimator gives them.
        """
        with self._errors_name_the_path():
            described = description_in_file(self.config)
        return describe(self.estimator()) if described is None else described

    def estimator(self) -> ConditionalEstimator:
        """The fitted estimator; everything in the file is checked."""
        with self._errors_name_the_path():
            return estimator_from_file(
                ESTIMATORS[self.config["estimator"]], self.config, self.arrays
            )

    @contextmanager
    def _errors_name_the_path(self) -> Iterator[None]:
        try:
            yield
        except ModelFileError as error:
            # A text in the file may be as long as the file; a message is one line.
            reason = textwrap.shorten(str(error), 300, placeholder=" ...")
            raise ModelFileError(f"{self.path}: {reason}") from error


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
    return SavedModel.read(path).estimator()
