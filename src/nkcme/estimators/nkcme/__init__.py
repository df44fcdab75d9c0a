"""The paper's estimator."""
