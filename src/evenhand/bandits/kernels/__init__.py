"""Numba: the training loop over people. Arrays are assumed clean; the doors are in `training`."""

from evenhand.bandits.kernels.layers import probabilities
from evenhand.bandits.kernels.loop import train

__all__ = ["probabilities", "train"]
