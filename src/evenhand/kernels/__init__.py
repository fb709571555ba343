"""Numba: the training loop over people. Arrays are assumed clean; the doors are in `training`."""

from evenhand.kernels.layers import probabilities
from evenhand.kernels.loop import train

__all__ = ["probabilities", "train"]
