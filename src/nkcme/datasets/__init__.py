"""Data to try the library on: toy problems whose truth is known."""

from nkcme.datasets.toy import TOYS, Toy, load_toy

__all__ = ["TOYS", "Toy", "load_toy"]
