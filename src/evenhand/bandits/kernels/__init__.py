"""Numba: the training loop over people. Arrays are assumed clean; the doors are in `training`."""

from evenhand.bandits.kernels.padding import probabilities, train

__all__ = ["probabilities", "train"]
