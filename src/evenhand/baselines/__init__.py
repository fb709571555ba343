"""Baselines: the paper's four methods (LR, Rawlsian, LFR and ALFR), and three from other libraries."""

from __future__ import annotations

from evenhand.baselines.adapters import (
    ExponentiatedGradientClassifier,
    OxonFairClassifier,
    ThresholdOptimizerClassifier,
)
from evenhand.baselines.alfr import ALFR
from evenhand.baselines.lfr import LFR
from evenhand.baselines.logistic import LR
from evenhand.baselines.rawlsian import Rawlsian
from evenhand.metrics.collapse import CollapseWarning

__all__ = [
    "ALFR",
    "LFR",
    "LR",
    "CollapseWarning",
    "ExponentiatedGradientClassifier",
    "OxonFairClassifier",
    "Rawlsian",
    "ThresholdOptimizerClassifier",
]
