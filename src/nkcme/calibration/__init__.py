"""Calibration of predicted distributions: the calibration map, and conformal intervals."""
