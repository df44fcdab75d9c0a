"""A generated table of apartments with a known true distribution, clean and as people have it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from nkcme.short_repr import shapes_in_repr
from nkcme.tables.files import to_frame

if TYPE_CHECKING:
    import pandas as pd

DISTRICTS = ("Altstadt", "Bahnhof", "Hafen", "Nord", "Ost", "Park", "Süd", "West")
HEATINGS = ("district heating", "gas", "heat pump", "oil")
FIRST_DAY = np.datetime64("2021-01-01")
N_DAYS = 1461


@shapes_in_repr
class Apartments(NamedTuple):
    """A table of apartments sold, in two forms, and the law of their prices.

    Attributes
    ----------
    X : DataFrame
        The features, cleaned by hand: numbers, booleans, dates and categories.
    price : array (n,)
        In EUR. Its logarithm is normal, with ``log_mean`` (n,) and ``log_std`` (n,).
    messy : DataFrame
        The same rows with the price, as text: ISO dates, ``1.200,5``, ``EUR 310.000``, yes and no,
        ``-`` for missing numbers, and an id.
    """

    X: pd.DataFrame
    price: np.ndarray
    messy: pd.DataFrame
    log_mean: np.ndarray
    log_std: np.ndarray

    def ppf(self, levels: Any) -> np.ndarray:
        """The true quantiles (n, levels) of the price."""
        from scipy.special import ndtri  # only here: the command line starts without SciPy

        spread = self.log_std[:, None] * ndtri(np.asarray(levels, np.float64))
        return np.exp(self.log_mean[:, None] + spread)


def load_apartments(n_rows: int = 1000, *, decimal: str = ",", seed: int = 0) -> Apartments:
    """Generate apartments.

    Area, land, district, age, heating, balcony, floor, season and years move the price; the spread
    is wider for old houses. A sixteenth of the floors and of the areas is missing.

    Parameters
    ----------
    n_rows : int
    decimal : {",", "."}
        The decimal mark of the messy table; the other mark groups thousands.
    seed : int

    Returns
    -------
    Apartments

    Examples
    --------
    >>> from nkcme.datasets import load_apartments
    >>> apartments = load_apartments(500)
    >>> low, high = apartments.ppf([0.05, 0.95]).T
    """
    rng = np.random.default_rng(seed)
    day = rng.integers(0, N_DAYS, n_rows)
    area = np.round(rng.gamma(9.0, 9.0, n_rows) + 20.0, 1)
    land = np.round(rng.lognormal(6.3, 0.7, n_rows), 1)
    rooms = np.clip(np.rint(area / 28.0 + rng.normal(0.0, 0.7, n_rows)), 1, 9)
    floor = rng.integers(0, 9, n_rows).astype(np.float64)
    age = rng.integers(0, 120, n_rows)
    balcony, lift = rng.random(n_rows) < 0.6, rng.random(n_rows) < 0.5
    district = rng.integers(0, len(DISTRICTS), n_rows)
    heating = rng.integers(0, len(HEATINGS), n_rows)
    season = np.cos(2.0 * np.pi * (day - 150) / 365.2425)
    log_mean = (
        12.0
        + 0.8 * np.log(area / 90.0)
        + 0.10 * np.log(land / 500.0)
        + np.linspace(-0.25, 0.3, len(DISTRICTS))[district]
        + np.array([0.05, 0.0, 0.12, -0.08])[heating]
        + 0.06 * balcony
        + 0.015 * floor * lift
        + 0.05 * season
        + 0.25 * day / N_DAYS
        - 0.002 * age
    )
    log_std = 0.06 + 0.0012 * age
    price = np.exp(log_mean + log_std * rng.standard_normal(n_rows))
    hidden = rng.random((2, n_rows)) < 1 / 16
    area, floor = np.where(hidden[0], np.nan, area), np.where(hidden[1], np.nan, floor)
    price = np.rint(price / 100.0) * 100.0
    clean = {
        "sold": FIRST_DAY + day,
        "area": area,
        "land": land,
        "rooms": rooms,
        "floor": floor,
        "age": age,
        "balcony": balcony,
        "lift": lift,
        "district": np.array(DISTRICTS, object)[district],
        "heating": np.array(HEATINGS, object)[heating],
    }
    messy = {
        "id": [f"A-{number:06d}" for number in rng.permutation(n_rows)],
        "sold": np.datetime_as_string(FIRST_DAY + day).tolist(),
        "area": [_written(value, decimal, 1) for value in area],
        "land": [f"{_written(value, decimal, 1)} m²" for value in land],
        "rooms": [_written(value, decimal, 0) for value in rooms],
        "floor": [_written(value, decimal, 0) for value in floor],
        "age": [str(value) for value in age],
        "balcony": np.where(balcony, "yes", "no").tolist(),
        "lift": np.where(lift, "Yes", "No").tolist(),
        "district": clean["district"],
        "heating": clean["heating"],
        "price": [f"EUR {_written(value, decimal, 0)}" for value in price],
    }
    return Apartments(to_frame(clean), price, to_frame(messy), log_mean, log_std)


def _written(value: float, decimal: str, digits: int) -> str:
    """A number as people write it, "-" where it is missing."""
    if np.isnan(value):
        return "-"
    text = f"{value:,.{digits}f}"
    return text if decimal == "." else text.translate(str.maketrans(",.", ".,"))
