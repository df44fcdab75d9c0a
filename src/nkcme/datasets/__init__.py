"""Data to try the library on: toy problems whose truth is known, and the UCI tables."""

from nkcme.datasets.plane import PLANE, load_plane
from nkcme.datasets.toy import TOYS, Toy, load_toy
from nkcme.datasets.uci import UCI, UciSet, UciTable, load_uci

__all__ = [
    "PLANE",
    "TOYS",
    "UCI",
    "Toy",
    "UciSet",
    "UciTable",
    "load_plane",
    "load_toy",
    "load_uci",
]
