"""Data sets: toy problems and a table with a known true distribution, and the UCI tables."""

from nkcme.datasets.apartments import Apartments, load_apartments
from nkcme.datasets.plane import PLANE, load_plane
from nkcme.datasets.problem import Problem, Toy
from nkcme.datasets.toy import TOYS, evaluate_was1, load_toy, was1_floor
from nkcme.datasets.uci import UCI, fetch_uci, find_uci, load_uci
from nkcme.datasets.uci_formats import UciSet, UciTable

__all__ = [
    "PLANE",
    "TOYS",
    "UCI",
    "Apartments",
    "Problem",
    "Toy",
    "UciSet",
    "UciTable",
    "evaluate_was1",
    "fetch_uci",
    "find_uci",
    "load_apartments",
    "load_plane",
    "load_toy",
    "load_uci",
    "was1_floor",
]
