"""A saved model, loaded and asked with NumPy alone: no JAX, no scikit-learn, no compilation.

The numbers are those of the full library, up to rounding.

Examples
--------
>>> from nkcme.runtime import load
>>> model = load("price-model")  # doctest: +SKIP
>>> model.predict_interval({"area": 82.0, "district": "north"}, 0.9)  # doctest: +SKIP
"""

from nkcme.runtime.loading import load
from nkcme.runtime.model import RuntimeModel

__all__ = ["RuntimeModel", "load"]
