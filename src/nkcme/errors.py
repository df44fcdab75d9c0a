"""The errors a user can meet. All are ValueErrors, so scikit-learn's tools treat them as bad input.

A message says what was expected, what came and what to do, in one line.
"""


class NkcmeError(ValueError):
    """Base of every error this library raises on purpose."""


class TableError(NkcmeError):
    """A table cannot be read, or its columns are not what the model needs."""


class ModelFileError(NkcmeError):
    """A model directory or checkpoint is missing, damaged, foreign or too new."""


class TrainingError(NkcmeError):
    """Training cannot go on (the loss is not finite, a checkpoint is of another run)."""


class DataError(NkcmeError):
    """A data set is not here, not what was published, or cannot be downloaded."""
