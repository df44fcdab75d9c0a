"""Fitting `NKCME` to a table on disk, of which a sample and a few blocks are in memory.

1. One pass over the table samples rows by a hash of their number and counts what a sample may miss.
2. Columns, scales, support and transform are learned from the sample.
3. The location model is fitted: trees to sampled rows, networks to the stream. Its stack is fitted
   to sampled rows that are new to all of them.
4. Ensembles of embeddings are trained on the other half of the stream, and compared on the same
   sampled rows.
5. The law is learned from sampled rows that nothing else has used.

There are no folds: every member predicts all sampled rows as new ones. Each is held out by all
members, which is what `held_out_by_all` says, and the rest is as for a table in memory.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np
from sklearn.utils import check_random_state

from nkcme.distributions.transforms import LOG, transformed
from nkcme.errors import NkcmeError
from nkcme.estimators.fingerprint import fingerprint
from nkcme.estimators.nkcme import parameters
from nkcme.estimators.nkcme.calibrating import fit_law
from nkcme.estimators.nkcme.candidate import Candidate
from nkcme.estimators.nkcme.ensemble_training import ensemble_training
from nkcme.estimators.nkcme.fitted_model import TrainedModel
from nkcme.estimators.nkcme.folds import Folds
from nkcme.estimators.nkcme.law import Law
from nkcme.estimators.nkcme.location_fitting import fit_location_models
from nkcme.estimators.nkcme.location_recipe import StoppingRecipe
from nkcme.estimators.nkcme.recipe import Recipe
from nkcme.estimators.nkcme.selection import FIXED, LOCATED, select
from nkcme.estimators.nkcme.stream_recipe import StreamRecipe
from nkcme.estimators.nkcme.training_stream import TrainingStream
from nkcme.estimators.replica_training import Run
from nkcme.estimators.training_data import Encoded, Target
from nkcme.tables.arrow_encoding import ArrowEncoder
from nkcme.tables.encoding import TableEncoder
from nkcme.tables.parquet_folder import ParquetFolder
from nkcme.tables.survey import Survey, survey
from nkcme.tables.survey_bytes import survey_from_bytes, survey_to_bytes
from nkcme.tables.table_summary import TableSummary
from nkcme.tables.target import TargetScaler
from nkcme.training.chunks import Checkpoint
from nkcme.training.processes import gathered, is_first

if TYPE_CHECKING:
    import pyarrow

    from nkcme.estimators.nkcme.estimator import NKCME


class StreamedFit(NamedTuple):
    """What `fit_stream` returns: the learned attributes of the table, and the trained model."""

    attributes: dict[str, Any]
    trained: TrainedModel
    held_out: pyarrow.Table  # rows that nothing was learned from


class SampleSizes(NamedTuple):
    """How many rows of a table are sampled for what."""

    held_out: int
    calibration: int
    judged: int
    boosting: int  # for each member
    n_members: int

    @classmethod
    def of(cls, n_rows: int, n_members: int, recipe: StreamRecipe) -> SampleSizes:
        """The sizes for a table of ``n_rows``; trees get fewer rows where it is small."""
        most = int(recipe.most_sampled * n_rows)
        held_out = min(recipe.held_out_rows, most // 8)
        calibration = min(recipe.calibration_rows, most // 8)
        judged = min(recipe.judged_rows, most // 4)
        rest = most - held_out - calibration - judged
        boosting = min(recipe.boosting_rows, rest // n_members)
        return cls(held_out, calibration, judged, boosting, n_members)

    @property
    def total(self) -> int:
        """The rows of all."""
        return sum(self[:3]) + self.n_members * self.boosting


def check_parameters(model: NKCME) -> None:
    """Refuse parameters that fits to tables on disk do not have."""
    named = isinstance(model.center, str) and model.center != "mean-scale"
    refused = {
        "center": not named,
        "head": model.head == "signed",
        "epochs": model.epochs is not None,
        "patience": model.patience is not None,
        "validation_fraction": bool(model.validation_fraction),
        "schedule": model.schedule != "auto",
        "atoms": model.atoms == "learned",
    }
    for name in (name for name, is_refused in refused.items() if is_refused):
        raise NkcmeError(
            f"{name}={getattr(model, name)!r} is for tables in memory: a table that is read from "
            "disk is fitted with the default, or pass the table itself as X and y"
        )


def held_out_by_all(n_rows: int, n_members: int) -> Folds:
    """Folds of rows that no member has trained on: one repeat for each member."""
    return Folds(np.zeros((n_members, n_rows), np.intp), 1)


def fit_stream(model: NKCME, folder: ParquetFolder, target: str) -> StreamedFit:
    """Fit the parameters of ``model``, which is not changed, to a table on disk."""
    check_parameters(model)
    recipe = model._recipe.stream
    n_members = model.n_members or recipe.n_members
    sizes = SampleSizes.of(folder.n_rows, n_members, recipe)
    seed = int(check_random_state(model.random_state).randint(2**31 - 1))
    share = sizes.total / folder.n_rows
    found = _surveyed(folder, target, share, seed)
    described = _Described.of(model, folder, target, found, seed)
    held_out, calibration, judged, samples = described.samples(sizes)
    stream = TrainingStream(
        folder,
        target,
        described.arrow,
        described.scaler,
        described.about.transform,
        seed,
        share,
        lanes_for(jax.process_count(), recipe.n_lanes),
        samples,
    )
    trained = _train(model, judged, calibration, stream, n_members)
    return StreamedFit(described.attributes(model), trained, held_out)


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


def _train(
    model: NKCME, judged: Encoded, calibration: Encoded, stream: TrainingStream, n_members: int
) -> TrainedModel:
    """The steps of `NKCME._train` with networks that train on a stream."""
    recipe = for_streams(model._recipe)
    streaming = copy.copy(model)
    streaming.recipe = recipe
    folds = held_out_by_all(len(judged.x), n_members)
    located, calibrated = parameters.stages(streaming, [judged])
    training = ensemble_training(streaming, model.head, [judged], n_members, open_ended=True)
    training = training._replace(stream=stream)
    with _run(model, judged, stream).in_groups().with_stages(_STAGES) as run:
        if not located:
            fit = training.fit([Candidate(judged, folds)], run.group(FIXED))[0]
        else:
            (location,) = fit_location_models(
                model.center, [judged], [folds], recipe.location, run, stream
            )
            fits = training.fit([Candidate(judged, folds, location)], run.group(LOCATED))
            if parameters.has_center(model, "auto") and not fits[0].interrupted:
                head = parameters.head_of_fixed_atoms(model, 1)
                of_fixed = ensemble_training(streaming, head, [judged], n_members, open_ended=True)
                fits = select(fits, recipe, {FIXED: of_fixed._replace(stream=stream)}, run)
            fit = fits[0]
    if not calibrated:
        return TrainedModel(fit, Law(*judged.target))
    learn = partial(fit_law, always_map=parameters.must_calibrate(model.recalibrate))
    return TrainedModel(fit, learn(fit, calibration, recipe.law))


#: About which share of a fit each stage is, for its progress bar.
_STAGES = {"location": 0.5, "location-refined": 0.1, LOCATED: 0.25, FIXED: 0.15}


def _run(model: NKCME, judged: Encoded, stream: TrainingStream) -> Run:
    if model.checkpoint is None:
        return Run(model.verbose)
    silent = {"checkpoint", "verbose", "random_state"}
    chosen = {k: v for k, v in model.get_params(deep=False).items() if k not in silent}
    files = [(str(group.file.name), group.number, group.n_rows) for group in stream.folder.groups]
    digests = [judged.digest(), str(files), str(stream.n_lanes)]
    file = model._checkpoint_file()
    return Run(model.verbose, file if is_first() else _ReadOnly(file), fingerprint(chosen, digests))


class _ReadOnly:
    """The checkpoint of a run for processes that do not write it."""

    def __init__(self, file: Checkpoint):
        self._file = file

    def __str__(self) -> str:
        return str(self._file)

    def load(self) -> tuple[dict[str, Any], dict[str, np.ndarray]] | None:
        return self._file.load()

    def save(self, config: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        pass


def for_streams(recipe: Recipe) -> Recipe:
    """The recipe with minibatches and lengths of training for streams."""
    stream = recipe.stream

    def stopping(least: int = 1) -> StoppingRecipe:
        return StoppingRecipe(
            stream.block_steps, least * stream.block_steps, stream.most_steps, stream.least_gain
        )

    network = replace(
        recipe.location.networks[-1],
        batch_size=stream.batch_size,
        stopping=stopping(least=8),
    )
    embedding = replace(
        recipe.embedding,
        stopping=stopping(),
        open_ended_batch_size=stream.batch_size,
        large_batch_size=stream.batch_size,
    )
    location = replace(recipe.location, networks=(network,))
    return replace(recipe, location=location, embedding=embedding)
