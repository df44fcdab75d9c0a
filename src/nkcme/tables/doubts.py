"""Doubts about how a column was read, or whether it should be used: one line each, with advice."""

from __future__ import annotations

import re

import numpy as np

from nkcme.tables.column_encoding import Column
from nkcme.tables.column_reading import Reading, texts_and_families
from nkcme.tables.columns import RawColumn
from nkcme.tables.dates import COMPACT, find_date_notations, parse_date
from nkcme.tables.messages import listed_values, shown
from nkcme.tables.text_numbers import is_code, parse_number

#: Fewer rows show nothing.
LEAST_ROWS = 20

#: A rank correlation with y, or a share of its variance, that no honest feature has.
GIVEN_AWAY = 0.999

#: The share of the texts of a column that are numbers which makes the others look like mistakes.
_MOSTLY = 0.8

_KEY_NAME = re.compile(r"(?:.*[\W_])?(?:id|key|index|idx|uuid|nr|row)", re.IGNORECASE)


def doubts_of(
    raw: RawColumn, reading: Reading, column: Column, label: str, y: np.ndarray, chosen: bool
) -> list[str]:
    """The doubts about one column.

    Parameters
    ----------
    raw, reading, column
        The values, how they were read, and what was learned.
    label : str
        The name of the column, for messages.
    y : array (n, d)
    chosen : bool
        Whether the user chose the type, about which there are no doubts then.
    """
    if column.kind == "empty":
        return [f"{label} has no value"]
    if column.kind == "unused":
        return [] if chosen else [_about_unused_text(raw, label)]
    found = [] if chosen else _about_type(raw, reading, column, label)
    if _is_constant(raw, column):
        return [*found, f"{label} is constant and carries no information"]
    return found + _about_target(raw, column, label, y)


def _about_unused_text(raw: RawColumn, label: str) -> str:
    if find_date_notations(texts_and_families(raw)[0]):
        return (
            f"{label} looks like dates, such as {shown(raw.present[0])}, and is not used; "
            f"{advice(label, 'date')} reads them"
        )
    return (
        f"{label} has a different text in each of {len(raw.present)} rows, such as "
        f"{shown(raw.present[0])}, and is not used; {advice(label, 'text')} keeps it"
    )


def _about_type(raw: RawColumn, reading: Reading, column: Column, label: str) -> list[str]:
    if column.kind == "numeric":
        return _about_numbers(raw, reading, column, label)
    if not column.has_categories or raw.declared:
        return []
    texts, families = texts_and_families(raw)
    n_levels = len(set(raw.labels()) - {None})
    found = []
    if column.kind == "text":
        found.append(
            f"{label} has {n_levels} levels in {len(raw.present)} rows: the most frequent ones and "
            f"hashed words are used; {advice(label, 'drop')} leaves it out"
        )
    elif n_levels == len(raw.present) >= LEAST_ROWS:
        found.append(
            f"{label} has a different text in every row, as a key has; {advice(label, 'drop')} "
            "leaves it out"
        )
    if texts and not families and find_date_notations(texts):
        found.append(
            f"{label} looks like dates, such as {shown(min(texts))}, and is kept as text; "
            f"{advice(label, 'date')} reads them"
        )
    strays = sorted(text for text in texts if not any(parse_number(text, m) for m in ".,"))
    if 0 < len(strays) <= (1.0 - _MOSTLY) * len(texts) and not any(map(is_code, texts)):
        found.append(
            f"{label} is numbers but for {listed_values(strays)}, and is kept as text; correct "
            "these, or name them as missing values with --na"
        )
    return found


def _about_numbers(raw: RawColumn, reading: Reading, column: Column, label: str) -> list[str]:
    found = []
    if reading.could_differ:
        texts, _ = texts_and_families(raw)
        example = next(text for text in sorted(texts) if "," in text or "." in text)
        number = parse_number(example, reading.notation)
        assert number is not None  # it was read with this notation
        found.append(
            f"{label} has {shown(example)}, read as {number.value:g}; if that is wrong, give the "
            "decimal mark with --decimal"
        )
    values = column.numbers(raw)[:, 0]
    values = values[~np.isnan(values)]
    if len(values) < LEAST_ROWS or not np.all(values == np.rint(values)):
        return found
    n_distinct, span = len(np.unique(values)), values.max() - values.min()
    if n_distinct == len(values) and (span < 2 * len(values) or _KEY_NAME.fullmatch(label[1:-1])):
        found.append(
            f"{label} is a different whole number in every row, as a key or a row number is; "
            f"{advice(label, 'drop')} leaves it out"
        )
    elif values.min() > 1900_00_00 and values.max() < 2100_00_00 and _are_compact_dates(values):
        found.append(
            f"{label} looks like dates, such as {values[0]:.0f}, and is kept as numbers; "
            f"{advice(label, 'date')} reads them"
        )
    return found


def _are_compact_dates(values: np.ndarray) -> bool:
    return all(parse_date(f"{value:.0f}", COMPACT) is not None for value in np.unique(values))


def _is_constant(raw: RawColumn, column: Column) -> bool:
    if column.has_categories:
        return len(column.categories) == 1 and not column.has_missing
    return not column.has_missing and all(number.scale == 0 for number in column.number_columns)


def _about_target(raw: RawColumn, column: Column, label: str, y: np.ndarray) -> list[str]:
    if column.has_categories:
        given = any(_share_explained(raw.labels(), one) >= GIVEN_AWAY for one in y.T)
        how = "its levels determine the target"
    else:
        values = column.numbers(raw)[:, 0]
        given = any(abs(rank_correlation(values, one)) >= GIVEN_AWAY for one in y.T)
        how = "its order is that of the target"
    if not given:
        return []
    return [
        f"{label} gives the target away: {how}. If it is not known before the target is, "
        f"{advice(label, 'drop')} leaves it out"
    ]


def rank_correlation(values: np.ndarray, y: np.ndarray) -> float:
    """Spearman's correlation of the rows in which values are present; 0 where it shows nothing."""
    present = ~np.isnan(values)
    values, y = values[present], y[present]
    if len(y) < LEAST_ROWS:
        return 0.0
    a, b = _ranks(values), _ranks(y)
    spread = float(a.std() * b.std())
    return float(np.mean((a - a.mean()) * (b - b.mean()))) / spread if spread else 0.0


def _ranks(values: np.ndarray) -> np.ndarray:
    """Ranks, those of equal values averaged."""
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(count) - 0.5 * (count + 1))[place]


def _share_explained(labels: list[str | None], y: np.ndarray) -> float:
    """The share of the variance of y between levels; 0 where there are too few rows per level."""
    _, place = np.unique([label or "" for label in labels], return_inverse=True)
    count = np.bincount(place)
    total = float(np.var(y))
    if len(y) < LEAST_ROWS or 2 * len(count) > len(y) or not total > 0:
        return 0.0
    scale = np.abs(y).max()
    mean = np.bincount(place, weights=y / scale) / count
    return 1.0 - float(np.mean(np.square(y / scale - mean[place]))) / float(np.var(y / scale))


def advice(label: str, wanted: str) -> str:
    """How the type of a column is chosen, on the command line and in Python."""
    name = label.strip("'")
    option = f"--drop {name}" if wanted == "drop" else f"--types {name}={wanted}"
    return f"{option} (in Python columns={{{label}: {wanted!r}}})"
