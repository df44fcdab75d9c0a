"""What is learned about one column of a training table."""

from __future__ import annotations

import numpy as np

from nkcme.errors import TableError
from nkcme.tables.calendar_features import FEATURES, useful_features
from nkcme.tables.column_encoding import MAX_CATEGORIES, Column
from nkcme.tables.column_reading import NOUNS, UnreadableValueError, read_column, read_values
from nkcme.tables.columns import RawColumn
from nkcme.tables.sample_weights import are_whole
from nkcme.tables.standardisation import moments, robust_units


def fit_column(
    name: str | None,
    raw: RawColumn,
    weight: np.ndarray,
    *,
    robust: bool = False,
    wanted: str | None = None,
) -> Column:
    """Learn a column from its values and the weights of the rows.

    Parameters
    ----------
    robust : bool
        Whether numbers are scaled by their quantiles.
    wanted : str, optional
        The type that the user chose, one of `nkcme.tables.column_reading.TYPES`.
    """
    counted = weight > 0
    if not counted.all():
        raw, weight = raw.rows(counted), weight[counted]
    reading = read_column(raw, wanted)
    if reading.kind in ("empty", "unused"):
        return Column(name, reading.kind)
    if reading.kind in ("category", "text"):
        return _fit_categories(name, raw, weight, wanted)
    try:
        values = read_values(raw, reading.kind, reading.notation)
    except UnreadableValueError as error:
        raise TableError(
            f"{raw.where} cannot be read as {NOUNS[reading.kind]}, the type that was chosen: it "
            f"has {error}; correct the value or choose another type"
        ) from None
    missing = np.isnan(values)
    if missing.all():
        return Column(name, "empty")
    has_missing = bool(missing.any())
    if reading.kind in FEATURES:
        features: list[Column] = []
        for feature in useful_features(reading.kind, values):
            known = FEATURES[reading.kind][feature]
            units = _units(known.compute(values), weight, robust and not known.is_bounded)
            # One mark for the whole column.
            features.append(
                Column(
                    feature, "numeric", *units[:2], (), has_missing and not features, 0.0, units[2]
                )
            )
        return Column(
            name,
            reading.kind,
            has_missing=has_missing,
            notation=reading.notation,
            features=tuple(features),
        )
    mean, scale, softened = _units(values, weight, robust)
    return Column(
        name,
        reading.kind,
        mean,
        scale,
        has_missing=has_missing,
        softened=softened,
        notation=reading.notation,
    )


def _units(values: np.ndarray, weight: np.ndarray, robust: bool) -> tuple[float, float, bool]:
    """The location and the scale of the present values, and whether far ones are drawn in."""
    present = ~np.isnan(values)
    if not present.all():
        values, weight = values[present], weight[present]
    if robust and (units := robust_units(values, weight)) is not None:
        return (*units, True)
    return (*moments(values, weight), False)


def _fit_categories(
    name: str | None, raw: RawColumn, weight: np.ndarray, wanted: str | None
) -> Column:
    """The most frequent categories, sorted by name; words too where there are more levels."""
    totals: dict[str, float] = {}
    for label, share in zip(raw.labels(), weight.tolist(), strict=True):
        if label is not None:
            totals[label] = totals.get(label, 0.0) + share
    order = sorted(totals, key=lambda label: (-totals[label], label))
    is_text = wanted == "text" or (
        wanted is None and not raw.declared and len(order) > MAX_CATEGORIES
    )
    if is_text and wanted is None and _are_identifiers(raw, totals, weight):
        return Column(name, "unused")
    rare = sum(totals[label] for label in order[MAX_CATEGORIES:])
    return Column(
        name,
        "text" if is_text else "category",
        categories=tuple(sorted(order[:MAX_CATEGORIES])),
        has_missing=bool(raw.missing.any()),
        rare_share=rare / sum(totals.values()),
    )


def _are_identifiers(raw: RawColumn, totals: dict[str, float], weight: np.ndarray) -> bool:
    """Whether every row has a label of its own, without spaces: a key, which predicts nothing."""
    n_present = np.count_nonzero(~raw.missing)
    distinct = max(totals.values()) <= 1.0 if are_whole(weight) else len(totals) == n_present
    return bool(distinct) and not any(" " in label.strip() for label in totals)
