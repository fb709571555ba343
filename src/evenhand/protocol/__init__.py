"""The experimental protocol: splits, grids, selection on validation, sweeps, and the paper reproduced."""

from evenhand.metrics.selection import (
    CRITERIA,
    BoundedDiscrimination,
    Criterion,
    HighestDelta,
    LowestDiscrimination,
    Scores,
)
from evenhand.protocol.grids import Method, authors_methods, grid, our_methods, paper_methods
from evenhand.protocol.store import Store, StoreError
from evenhand.protocol.sweep import Sweep
from evenhand.protocol.trial import published_split
from evenhand.tables.preprocessing import Parts, prepare
from evenhand.tables.splits import Split, split

__all__ = [
    "CRITERIA",
    "BoundedDiscrimination",
    "Criterion",
    "HighestDelta",
    "LowestDiscrimination",
    "Method",
    "Parts",
    "Scores",
    "Split",
    "Store",
    "StoreError",
    "Sweep",
    "authors_methods",
    "grid",
    "our_methods",
    "paper_methods",
    "prepare",
    "published_split",
    "split",
]
