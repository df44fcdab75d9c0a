"""A small table of houses for tests of the command line."""

import numpy as np
import pandas as pd


def make_table(n: int = 60) -> pd.DataFrame:
    """Numbers, text, booleans and one missing value in X; fewer rows than a batch."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=n)
    table = pd.DataFrame(
        {
            "x": x,
            "colour": rng.choice(["red", "green"], size=n),
            "sold": rng.random(n) < 0.5,
            "price": 3 * x + rng.normal(size=n),
        }
    )
    table.loc[4, "x"] = np.nan
    return table
