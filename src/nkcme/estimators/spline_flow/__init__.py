"""SplineFlow: a conditional neural spline flow (Durkan et al., 2019)."""

from nkcme.estimators.spline_flow.estimator import SplineFlow

__all__ = ["SplineFlow"]
