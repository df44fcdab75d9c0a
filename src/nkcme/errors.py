"""The errors and warnings of this library.

Every error is a ValueError, so scikit-learn's tools treat it as bad input. A message is one line:
what was expected, what was given and what to do.
"""


class NkcmeError(ValueError):
    """Base class of the errors that this library raises.

    Examples
    --------
    >>> import nkcme
    >>> try:
    ...     nkcme.load("no-such-model")
    ... except nkcme.NkcmeError as error:
    ...     print(type(error).__name__)
    ModelFileError
    """


class TableError(NkcmeError):
    """A table cannot be read, or its columns do not fit the model."""


class ModelFileError(NkcmeError):
    """A model directory or checkpoint is missing, damaged, foreign or of a newer version."""


class TrainingError(NkcmeError):
    """Training cannot continue: the loss is not finite, or a checkpoint is of another run."""


class ProcessLostError(TrainingError):
    """One of the processes that fit a model together has died; their checkpoint is kept."""


class DataError(NkcmeError):
    """A data set is missing, differs from the published one, or cannot be downloaded."""


class UnknownCategoryWarning(UserWarning):
    """More than half of the rows of a column hold categories that the model does not know.

    The likely cause is a column that was read with another type than in training, such as the code
    01 as the number 1. A few unseen categories are normal and give no warning.
    """
