"""Template for a toy problem: a data set with a known true distribution.

Copy this file, replace everything marked TODO, and import your copy: `load_toy` then knows the
problem. docs/add-a-data-set.md explains each step.
"""

import numpy as np

from nkcme.datasets import TOYS, Toy
from nkcme.datasets.mixture import Gaussian, Mixture

# TODO: the name for `load_toy`.
NAME = "my-problem"

# TODO: the lowest and the highest x. Inputs are uniform between them.
X_RANGE = (0.0, 1.0)


def conditional(x):
    """TODO: the formula of y given x, in one line."""
    # TODO: the weight of each component, as arrays of the shape of x. They sum to one.
    weights = (np.full_like(x, 0.5), np.full_like(x, 0.5))
    # TODO: the components, with parameters of the shape of x. A component is a Gaussian, or any
    # frozen law of scipy.stats.
    scale = np.full_like(x, 0.1)
    components = (Gaussian(x, scale), Gaussian(-x, scale))
    return Mixture(weights, components)


TOYS[NAME] = Toy(NAME, X_RANGE, conditional)
