"""Figures of the README and the documentation that need a trained model."""
