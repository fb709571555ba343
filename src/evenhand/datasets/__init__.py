"""The paper's data sets, and public education data; `evenhand.tables` reads your own tables."""

from __future__ import annotations

from evenhand.datasets.adult import load_adult
from evenhand.datasets.catalogue import available, load
from evenhand.datasets.compas import load_compas
from evenhand.datasets.education import STAR_TASKS, load_law, load_star
from evenhand.datasets.german import load_german
from evenhand.datasets.health import load_health
from evenhand.datasets.registrar import Registrar, load_registrar
from evenhand.datasets.simulated import MAJORS, simulate_registrar
from evenhand.datasets.wheels import DataUnavailableError, TamperedFileError
from evenhand.tables.dataset import Dataset

__all__ = [
    "MAJORS",
    "STAR_TASKS",
    "DataUnavailableError",
    "Dataset",
    "Registrar",
    "TamperedFileError",
    "available",
    "load",
    "load_adult",
    "load_compas",
    "load_german",
    "load_health",
    "load_law",
    "load_registrar",
    "load_star",
    "simulate_registrar",
]
