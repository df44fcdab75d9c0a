"""Predictions over HTTP, by a model that `nkcme.runtime` loads."""
