"""Predicted distributions."""
