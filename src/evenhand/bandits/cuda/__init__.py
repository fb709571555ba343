"""CUDA: the training loop for many models at once, compiled by CuPy for what they have in common."""

from evenhand.bandits.cuda.fleet import train_all

__all__ = ["train_all"]
