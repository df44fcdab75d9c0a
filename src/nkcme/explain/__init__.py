"""Which inputs move a predicted distribution: its centre, its spread, its tails, any quantile."""

from nkcme.explain.permutation import Importance, permutation_importance
from nkcme.explain.shap_values import shap_values

__all__ = ["Importance", "permutation_importance", "shap_values"]
