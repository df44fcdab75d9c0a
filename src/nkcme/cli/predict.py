"""The command `nkcme predict`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nkcme.cli.loading import Note, load_features
from nkcme.prediction.frames import frame_like
from nkcme.prediction.models import predicting
from nkcme.prediction.predictor import Predictor
from nkcme.tables.table_options import UNKNOWN, TableOptions


def predict_table(
    predictor: Predictor,
    table: Path,
    *,
    samples: int = 0,
    seed: int = 0,
    options: TableOptions = UNKNOWN,
    note: Note,
) -> Any:
    """A frame with the predicted mean of each row of a table, and the columns requested."""
    saved, frame, X = load_features(Path(predictor.path), table, note, options, predictor.keep)
    model = predicting(saved)
    columns = predictor.request.columns(model, X)
    if samples:
        drawn = model.sample(X, samples, random_state=seed)
        columns |= {f"sample_{i}": sample for i, sample in enumerate(drawn, start=1)}
    return frame_like(frame, predictor.keep, columns)
