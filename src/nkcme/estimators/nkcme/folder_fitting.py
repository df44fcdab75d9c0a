"""Fitting `NKCME` to a table on disk, of which a sample and a few blocks are in memory.

1. One pass over the table samples rows by a hash of their number and counts what a sample may miss.
2. Columns, scales, support and transform are learned from the sample.
3. The model is trained on the other rows, which are a stream (`stream_training`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np
from sklearn.utils import check_random_state

from nkcme.distributions.transforms import LOG, transformed
from nkcme.errors import NkcmeError
from nkcme.estimators.nkcme.fitted_model import TrainedModel
from nkcme.estimators.nkcme.folder_stream import FolderStream
from nkcme.estimators.nkcme.stream_training import SampleSizes, train_on_stream, unsuited
from nkcme.estimators.training_data import Encoded, Target
from nkcme.tables.arrow_encoding import ArrowEncoder
from nkcme.tables.encoding import TableEncoder
from nkcme.tables.parquet_folder import ParquetFolder
from nkcme.tables.survey import Survey, survey
from nkcme.tables.survey_bytes import survey_from_bytes, survey_to_bytes
from nkcme.tables.table_summary import TableSummary
from nkcme.tables.target import TargetScaler
from nkcme.training.processes import gathered

if TYPE_CHECKING:
    import pyarrow

    from nkcme.estimators.nkcme.estimator import NKCME


class FolderFit(NamedTuple):
    """What `fit_folder` returns: the learned attributes of the table, and the trained model."""

    attributes: dict[str, Any]
    trained: TrainedModel
    held_out: pyarrow.Table  # rows that nothing was learned from


def fit_folder(model: NKCME, folder: ParquetFolder, target: str) -> FolderFit:
    """Fit the parameters of ``model``, which is not changed, to a table on disk."""
    if (name := unsuited(model)) is not None:
        raise NkcmeError(
            f"{name}={getattr(model, name)!r} is for tables in memory: a table that is read from "
            "disk is fitted with the default, or pass the table itself as X and y"
        )
    recipe = model._recipe.stream
    n_members = model.n_members or recipe.n_members
    sizes = SampleSizes.of(folder.n_rows, n_members, recipe)
    seed = int(check_random_state(model.random_state).randint(2**31 - 1))
    share = sizes.total / folder.n_rows
    found = _surveyed(folder, target, share, seed)
    described = _Described.of(model, folder, target, found, seed)
    held_out, calibration, judged, samples = described.samples(sizes)
    stream = FolderStream(
        seed=seed,
        n_lanes=lanes_for(jax.process_count(), recipe.n_lanes),
        samples=samples,
        folder=folder,
        target=target,
        encoder=described.arrow,
        scaler=described.scaler,
        transform=described.about.transform,
        sampled_share=share,
    )
    trained = train_on_stream(model, judged, calibration, stream, n_members)
    return FolderFit(described.attributes(model), trained, held_out)


def _surveyed(folder: ParquetFolder, target: str, share: float, seed: int) -> Survey:
    """The survey of the whole table; each process looks at some of the row groups."""
    own = folder.groups[jax.process_index() :: jax.process_count()]
    found = survey(folder, target, share, seed, own)
    if jax.process_count() == 1:
        return found
    return Survey.joined([survey_from_bytes(one) for one in gathered(survey_to_bytes(found))])


def lanes_for(n_processes: int, n_lanes: int) -> int:
    """The number of lanes: that of the recipe, if as many are for each process, or the next."""
    return n_processes * -(-n_lanes // n_processes)


class _Described(NamedTuple):
    """What was learned of the columns of a table from the sampled rows."""

    target: str
    names: list[str]
    found: Survey
    some: pyarrow.Table  # the rows that it was learned from
    encoder: TableEncoder
    arrow: ArrowEncoder
    about: Target
    scaler: TargetScaler
    seed: int
    n_rows: int

    @classmethod
    def of(
        cls, model: NKCME, folder: ParquetFolder, target: str, found: Survey, seed: int
    ) -> _Described:
        from pyarrow import concat_tables

        names = [name for name in folder.names if name != target]
        n_some = model._recipe.stream.described_rows
        _, sample = found.in_order(seed)
        tables = [sample.slice(0, n_some), found.witness_table()]
        some = concat_tables(tables, promote_options="permissive")
        standardize = model._standardisation
        X = some.select(names)
        encoder = TableEncoder.fit(X, standardize=standardize, types=model.columns)
        arrow = ArrowEncoder(encoder)
        y = _target_of(some, target)
        about = model._understand_target(arrow.transform(X), y, np.ones(len(y)), seed)
        scaler = TargetScaler.fit(
            transformed(y, about.transform),
            standardize=bool(standardize),
            logarithmic=about.transform == LOG,
        )
        n_rows = folder.n_rows
        return cls(target, names, found, some, encoder, arrow, about, scaler, seed, n_rows)

    def samples(self, sizes: SampleSizes) -> tuple[pyarrow.Table, Encoded, Encoded, list[Encoded]]:
        """The sampled rows that are held out from everything, those for calibration, for judging,
        and for the trees of each member."""
        _, sample = self.found.in_order(self.seed)
        # Hashes give about as many rows as are wanted: the trees get the rest.
        ends = np.cumsum([*sizes[:3], *[sizes.boosting] * sizes.n_members])
        ends[-1] = max(ends[-1], sample.num_rows)
        starts = [0, *ends[:-1].tolist()]
        parts = [
            sample.slice(start, end - start)
            for start, end in zip(starts, ends.tolist(), strict=True)
        ]
        calibration, judged, *samples = map(self._encoded, parts[1:])
        return parts[0], calibration, judged, samples

    def _encoded(self, rows: pyarrow.Table) -> Encoded:
        y = transformed(_target_of(rows, self.target), self.about.transform)
        return Encoded(
            self.arrow.transform(rows),
            self.scaler.transform(y),
            np.ones(rows.num_rows),
            None,
            None,
            self.n_rows,
            self.seed,
            self.scaler,
            self.about,
        )

    def attributes(self, model: NKCME) -> dict[str, Any]:
        """The attributes of a fitted estimator that describe the table."""
        X, y = self.some.select(self.names), _target_of(self.some, self.target)
        summary = TableSummary.of(X, self.encoder, y, model.columns)
        columns = tuple(
            replace(column, missing=self.found.missing.get(str(column.name), 0))
            for column in summary.columns
        )
        return {
            "y_ndim_": 1,
            "n_outputs_": 1,
            "encoder_": self.encoder,
            "columns_": replace(summary, columns=columns),
            "scaler_": self.scaler,
            "n_features_in_": len(self.names),
            "feature_names_in_": np.array(self.names, dtype=object),
        }


def _target_of(table: pyarrow.Table, target: str) -> np.ndarray:
    """The target (n, 1) of some rows."""
    return table.column(target).to_numpy().astype(np.float64)[:, None]
