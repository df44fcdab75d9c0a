"""Simulated tables whose true conditional law is known, and scores of predictions against it."""
