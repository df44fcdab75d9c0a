"""Answers to questions: predictions as JSON has them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from nkcme.distributions.base import Distribution
from nkcme.errors import NkcmeError
from nkcme.runtime.model import RuntimeModel
from nkcme.serving.questions import Event, Question, RequestError
from nkcme.tables.messages import note_on_columns


def answer(model: RuntimeModel, question: Question) -> bytes:
    """The body of the answer: a prediction for one row, else ``{"predictions": [...]}``.

    ``notes`` are those of the command line: columns that were ignored, unknown categories.
    """
    (found,) = answers(model, [question])
    if isinstance(found, RequestError):
        raise found
    return found


def answers(model: RuntimeModel, questions: Sequence[Question]) -> list[bytes | RequestError]:
    """The body of the answer to each question, or why it has none; one prediction for all."""
    found: list[bytes | RequestError] = [RequestError("")] * len(questions)
    encoded: list[tuple[int, np.ndarray, list[str]]] = []
    for number, question in enumerate(questions):
        try:
            encoded.append((number, *_encoded(model, question)))
        except RequestError as error:
            found[number] = error
        except NkcmeError as error:
            found[number] = RequestError(" ".join(str(error).split()))
    if not encoded:
        return found
    inputs = [x for _, x, _ in encoded]
    dist = model._distribution(inputs[0] if len(inputs) == 1 else np.concatenate(inputs))
    # What all of them ask is asked once.
    same = all(questions[number].asks == questions[encoded[0][0]].asks for number, _, _ in encoded)
    of_all = predictions_of(dist, questions[encoded[0][0]]) if same else {}
    start = 0
    for number, x, notes in encoded:
        question, rows = questions[number], slice(start, start + len(x))
        start += len(x)
        columns = (
            {name: values[rows] for name, values in of_all.items()}
            if same
            else predictions_of(dist[rows], question)
        )
        found[number] = _body(columns, len(x), question.single, notes)
    return found


def _encoded(model: RuntimeModel, question: Question) -> tuple[np.ndarray, list[str]]:
    """The inputs of the model, and notes."""
    rows, notes = features(model, question.rows)
    encoded = model._encoded_records(rows)
    if encoded is None:
        encoded = model._encode(rows)
        if model.encoder_.has_categories:
            notes += map(str, model.unknown_categories(rows))
    return encoded, notes


def _body(columns: dict[str, list[Any]], n_rows: int, single: bool, notes: list[str]) -> bytes:
    predictions = [{name: values[i] for name, values in columns.items()} for i in range(n_rows)]
    content: dict[str, Any] = predictions[0] if single else {"predictions": predictions}
    if notes:
        content["notes"] = notes
    return _ENCODER.encode(content).encode(errors="backslashreplace")


_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False)


def features(model: RuntimeModel, rows: list[Any]) -> tuple[list[Any], list[str]]:
    """The rows with the model's columns alone, and notes."""
    names = model.encoder_.feature_names
    if isinstance(rows[0], list):
        return rows, []
    if names is None:
        raise RequestError(
            f"the model was fitted on {model.n_features_in_} columns without names; send each row "
            "as a list of values"
        )
    first = rows[0].keys()
    unused = model.encoder_.unused_names
    if len(first) == len(names) and all(row.keys() == first for row in rows):
        ignored = note_on_columns(first, names, unused)
        return rows, [] if ignored is None else [ignored]
    ignored = note_on_columns((name for row in rows for name in row), names, unused)
    chosen = [{name: row.get(name) for name in names} for row in rows]
    return chosen, [] if ignored is None else [ignored]


def predictions_of(dist: Distribution, question: Question) -> dict[str, list[Any]]:
    """What is asked of each distribution, by name."""
    columns: dict[str, list[Any]] = {}
    if question.mean:
        columns["mean"] = _listed(dist.mean())
    # Quantiles and ends of intervals together.
    ends = [end for c in question.intervals for end in ((1.0 - c) / 2.0, (1.0 + c) / 2.0)]
    n = len(question.quantiles)
    if n or ends:
        values = _listed(dist.ppf([*question.quantiles, *ends]))
        levels = list(map(repr, question.quantiles))
        coverages = list(map(repr, question.intervals))
        if n:
            columns["quantiles"] = [dict(zip(levels, row[:n], strict=True)) for row in values]
        if ends:
            columns["intervals"] = [
                dict(zip(coverages, zip(row[n::2], row[n + 1 :: 2], strict=True), strict=True))
                for row in values
            ]
    if question.probabilities:
        of_events = [_probability(dist, event) for event in question.probabilities]
        columns["probabilities"] = _listed(np.stack(of_events, axis=1))
    if question.samples:
        columns["samples"] = _listed(dist.rvs(question.samples, question.seed).T)
    return columns


def _probability(dist: Distribution, event: Event) -> np.ndarray:
    """The probability (n_rows,) of an event."""
    upto = 1.0 if np.isinf(event.high) else dist.cdf(event.high)
    below = 0.0 if np.isinf(event.low) else dist.cdf(event.low)
    if event.closed:
        below = below - dist.pmf(event.low)
    elif np.isfinite(event.high):
        upto = upto - dist.pmf(event.high)
    return np.broadcast_to(np.minimum(np.maximum(upto - below, 0.0), 1.0), (dist.n_rows,))


def _listed(values: np.ndarray) -> list[Any]:
    """Values as JSON has them: numbers that are not finite are null."""
    if np.isfinite(values).all():
        return values.tolist()
    listed = values.astype(object)
    listed[~np.isfinite(values)] = None
    return listed.tolist()
