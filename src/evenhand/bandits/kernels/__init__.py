"""The training loop over people, compiled by Numba. It checks nothing: callers check their arrays."""

from evenhand.bandits.kernels.padding import probabilities, train

__all__ = ["probabilities", "train"]
