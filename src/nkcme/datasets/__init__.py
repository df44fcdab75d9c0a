"""Data to try the library on: toy problems whose truth is known, and the UCI tables."""

from nkcme.datasets.toy import TOYS, Toy, load_toy
from nkcme.datasets.uci import UCI, UciSet, UciTable, load_uci

__all__ = ["TOYS", "UCI", "Toy", "UciSet", "UciTable", "load_toy", "load_uci"]
