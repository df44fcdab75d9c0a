"""Kernel ridge regression in closed form."""
