"""CARD: a diffusion model guided by a conditional mean (Han, Zheng and Zhou, 2022)."""

from nkcme.estimators.card.estimator import CARD

__all__ = ["CARD"]
