"""The training loop for many models at once on a GPU, compiled by CuPy for each kind of model."""

from evenhand.bandits.cuda.running import train_all, train_and_select
from evenhand.bandits.cuda.watching import asked_of

__all__ = ["asked_of", "train_all", "train_and_select"]
