"""What each metric means, in one sentence for reports and the command line."""

EXPLANATIONS: dict[str, str] = {
    "was1": (
        "Average distance, in units of y, by which predicted draws must be moved to become draws "
        "of the true distribution (Wasserstein-1); lower is better, 0 is perfect."
    ),
    "qice": (
        "Average gap between the share of true values in each tenth of the prediction and the 10 % "
        "that belong there; lower is better, and a perfect model still shows the scatter of a "
        "finite test set."
    ),
    "rmse": (
        "Typical error of the predicted mean, in units of y (root mean squared error); "
        "lower is better."
    ),
    "crps": (
        "Error of the whole predicted distribution, in units of y, equal to the absolute error "
        "when the prediction is a single value; lower is better."
    ),
    "sliced_was1": (
        "For several outputs, the Wasserstein-1 distance between draws and truth along one "
        "direction, averaged over directions; lower is better, 0 is perfect."
    ),
    "energy_score": (
        "Error of the whole predicted joint distribution of several outputs, equal to the distance "
        "when the prediction is a single point, and to the CRPS for one output; lower is better."
    ),
    "nll": (
        "Average surprise at the true values, minus the logarithm of the predicted density there; "
        "lower is better, and it can be negative."
    ),
    "pit": (
        "Where each true value falls in its predicted distribution, from 0 (below everything) to "
        "1 (above everything); the flatter its histogram the better."
    ),
    "coverage": (
        "Share of true values inside their predicted interval; the closer to the interval's "
        "nominal level the better."
    ),
    "interval_width": (
        "Average length of the predicted intervals, in units of y; lower is better among models "
        "whose coverage is right."
    ),
}
