"""What one column of X becomes: standardised numbers, or one 0/1 output per category.

* Numbers and booleans: one output, standardised. A missing value is set to the training mean, and
  an extra 0/1 output marks it where training had missing values too. A column that never varied in
  training carries no information, so it is always encoded as 0.
* Dates and times of day: several such numbers, `nkcme.tables.calendar_features`.
* Categories, text, and mixtures of numbers and text: one 0/1 output for each of the most frequent
  categories, compared by their text. Rare and unseen categories are all zeros. Missing is a
  category too where training had it.
* Text of more levels than that: the same, and its words hashed, `nkcme.tables.hashed_words`.
* A column without any value in training: one output, always 0. An unused column: none.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np

from nkcme.errors import TableError
from nkcme.tables.calendar_features import FEATURES
from nkcme.tables.column_reading import NOUNS, UnreadableValueError, read_values
from nkcme.tables.columns import Kind, RawColumn
from nkcme.tables.config_checks import check, check_keys, finite_number
from nkcme.tables.dates import DATE_NOTATIONS
from nkcme.tables.hashed_words import N_HASHED, hashed_words
from nkcme.tables.messages import shown

MAX_CATEGORIES = 50

#: A column in which more than this share of the training rows had a rare category gives no
#: warning when a new table has many unknown ones: that is what training looked like.
_MANY_RARE = 0.1

_WHOLE_NUMBER = re.compile(r"(-?(?:0|[1-9]\d*))\.0*")


@dataclass(frozen=True)
class UnknownCategories:
    """The rows of one column of a new table that hold categories unknown to the model."""

    column: str
    n_unknown: int
    n_present: int
    example: str
    is_surprising: bool

    def __str__(self) -> str:
        return (
            f"{self.n_unknown} of {self.n_present} rows of {self.column} hold categories unknown "
            f"to the model, such as {shown(self.example)}: they count as none of the known ones"
        )


@dataclass(frozen=True)
class Column:
    """What was learned about one column of X.

    ``mean`` and ``scale`` are those of the present values, or with ``softened`` their median and a
    scale by quantiles; the scale is 0 where they never varied. Softened values are drawn towards
    the median, far ones to `SOFT_LIMIT` scales.
    ``has_missing`` is true where some training values were missing, but not all. ``rare_share`` is
    the share of present training rows with a category that is not among ``categories``.

    ``notation`` is the decimal mark or the notation of dates that were text in training, and
    ``features`` are the numbers that a date or a time of day becomes.

    The kind is also how the column is read from a text file: a category column as text, so that
    the code 01 stays 01 in a file where all codes look like numbers.
    """

    name: str | None
    kind: Kind
    mean: float = 0.0
    scale: float = 0.0
    categories: tuple[str, ...] = ()
    has_missing: bool = False
    rare_share: float = 0.0
    softened: bool = False
    notation: str = ""
    features: tuple[Column, ...] = ()

    @property
    def n_outputs(self) -> int:
        if self.kind == "unused":
            return 0
        if self.features:
            return sum(feature.n_outputs for feature in self.features)
        hashed = N_HASHED if self.kind == "text" else 0
        return max(1, len(self.categories)) + hashed + self.has_missing

    @property
    def number_columns(self) -> Sequence[Column]:
        """The columns of numbers that this one becomes."""
        return self.features or ((self,) if self.kind in ("numeric", "boolean") else ())

    @property
    def is_from_text(self) -> bool:
        """Whether its values are to be read from files as text."""
        return bool(self.notation) or self.kind not in ("numeric", "boolean", "empty")

    @property
    def has_categories(self) -> bool:
        """Whether outputs stand for categories."""
        return self.kind in ("category", "text")

    def numbers(self, raw: RawColumn) -> np.ndarray:
        """The values (n, k) of the `number_columns`, NaN where missing; others are refused."""
        try:
            values = self._read(raw)
        except UnreadableValueError as error:
            needed = NOUNS[self.kind]
            raise TableError(
                f"{raw.where} held {needed} in training but has {error}; convert the column to "
                f"{needed}"
            ) from None
        if not self.features:
            return values[:, None]
        known = FEATURES[self.kind]
        return np.stack([known[str(one.name)].compute(values) for one in self.features], axis=1)

    def _read(self, raw: RawColumn) -> np.ndarray:
        """The values, with the decimal mark of their own file if they fit it, else of training."""
        if self.kind == "numeric" and raw.decimal not in (None, self.notation):
            with suppress(UnreadableValueError):
                return read_values(raw, self.kind, raw.decimal)
        return read_values(raw, self.kind, self.notation)

    def encode_categories(self, raw: RawColumn, outputs: np.ndarray) -> UnknownCategories | None:
        """Fill in the outputs of a column of categories, zeros of shape (rows, n_outputs).

        Returns the rows that match no category, if there are any.
        """
        labels = raw.labels()
        place = {category: code for code, category in enumerate(self.categories)}
        codes = np.array([-1 if x is None else place.get(x, -1) for x in labels])
        unmatched = np.flatnonzero((codes < 0) & ~raw.missing)
        if len(unmatched):
            place = _by_value(self.categories)
            codes[unmatched] = [place.get(_value(str(labels[row])), -1) for row in unmatched]
        known = np.flatnonzero(codes >= 0)
        outputs[known, codes[known]] = 1.0
        if self.has_missing:
            outputs[:, -1] = raw.missing
        if self.kind == "text":
            n_categories = len(self.categories)
            outputs[:, n_categories : n_categories + N_HASHED] = hashed_words(labels)
            return None  # that most texts are new is nothing to report
        unknown = unmatched[codes[unmatched] < 0]
        if not len(unknown):
            return None
        n_present = int(np.count_nonzero(~raw.missing))
        return UnknownCategories(
            raw.where if self.name is None else repr(self.name),
            len(unknown),
            n_present,
            str(labels[unknown[0]]),
            # One unseen category is normal; that most of a column is unknown is not.
            is_surprising=1 < len(unknown) > n_present / 2 and self.rare_share <= _MANY_RARE,
        )

    def to_config(self) -> dict[str, Any]:
        """A description that JSON can hold, exact to the last bit."""
        config = {**vars(self), "categories": [*self.categories]}
        if len(self.categories) < MAX_CATEGORIES:  # none is rare then, and old readers know no key
            del config["rare_share"]
        # As in files of earlier versions.
        for name in ("softened", "notation", "features"):
            if not config[name]:
                del config[name]
        if self.features:
            config["features"] = [feature.to_config() for feature in self.features]
        return config

    @classmethod
    def from_config(cls, config: Any, what: str) -> Column:
        """The column of a description, which is checked."""
        optional = frozenset({"rare_share", "softened", "notation", "features"})
        check_keys(config, set(cls.__dataclass_fields__) - optional, what, optional)
        name, kind, categories = config["name"], config["kind"], config["categories"]
        check(name is None or isinstance(name, str), f"the name of {what} is not text")
        check(isinstance(kind, str) and kind in get_args(Kind), f"the kind of {what} is unknown")
        check(isinstance(config["has_missing"], bool), f"'has_missing' of {what} is no boolean")
        check(
            isinstance(categories, list)
            and all(isinstance(category, str) for category in categories)
            and categories == sorted(set(categories))
            and len(categories) <= MAX_CATEGORIES
            and bool(categories) == (kind in ("category", "text")),
            f"the categories of {what} are not a sorted list of up to {MAX_CATEGORIES} texts",
        )
        softened = config.get("softened", False)
        check(isinstance(softened, bool), f"'softened' of {what} is no boolean")
        mean = finite_number(config["mean"], f"the mean of {what}")
        scale = finite_number(config["scale"], f"the scale of {what}")
        check(
            scale >= 0 and (scale == 0 or math.isfinite(mean / scale)),
            f"the scale of {what} is negative or vanishes beside its mean",
        )
        # Files of earlier versions lack it. With all places taken, any share may have been rare.
        full = len(categories) == MAX_CATEGORIES
        rare_share = finite_number(config.get("rare_share", float(full)), f"'rare_share' of {what}")
        check(0 <= rare_share <= full, f"'rare_share' of {what} is not a share from 0 to 1")
        notation = config.get("notation", "")
        check(
            isinstance(notation, str)
            and notation
            in {"numeric": ("", ".", ","), "date": ("", *DATE_NOTATIONS)}.get(kind, ("",)),
            f"the notation of {what} is unknown",
        )
        return cls(
            name,
            kind,
            mean,
            scale,
            tuple(categories),
            config["has_missing"],
            rare_share,
            softened,
            notation,
            _features_from_config(config.get("features", []), kind, what),
        )


def _features_from_config(configs: Any, kind: str, what: str) -> tuple[Column, ...]:
    """The features of dates or times of day in a description, which is checked."""
    known = FEATURES.get(kind, {})
    check(
        isinstance(configs, list) and len(configs) <= len(known) and bool(configs) == bool(known),
        f"the features of {what} are not a list of those of its kind",
    )
    features = tuple(Column.from_config(config, f"a feature of {what}") for config in configs)
    names = [feature.name for feature in features]
    check(
        len(set(names)) == len(names)
        and set(names) <= set(known)
        and all(feature.kind == "numeric" for feature in features),
        f"the features of {what} are not known numbers",
    )
    return features


def _by_value(categories: tuple[str, ...]) -> dict[str, int]:
    """The codes of categories by `_value`, less those that are ambiguous."""
    values = [_value(category) for category in categories]
    return {value: code for code, value in enumerate(values) if values.count(value) == 1}


def _value(label: str) -> str:
    """A text that equal values share: 1, 1. and 1.0; true, True and TRUE. 01 keeps its zero."""
    word = label.strip().lower()
    if word in ("true", "false"):
        return word
    whole = _WHOLE_NUMBER.fullmatch(label)
    return whole[1] if whole else label
