"""Frames of other libraries, read where pyarrow is not installed: each says what pandas would."""

import datetime
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

from evenhand import (
    CooperativeBandits,
    CooperativeBoosting,
    CooperativeEnsemble,
    GradientBandit,
    audit,
    tabular,
)
from evenhand.baselines import LR
from evenhand.frames import as_pandas
from evenhand.metrics import accuracy, consistency, discrimination, respond

N = 200
_RNG = np.random.default_rng(0)
PEOPLE = pd.DataFrame(
    {
        "skill": _RNG.normal(size=N).round(3),
        "age": _RNG.integers(20, 60, N),
        "job": pd.Categorical(_RNG.choice(["cook", "clerk"], N)),
        "sex": _RNG.choice(["f", "m"], N),
    }
)
HIRED = pd.Series(np.where(PEOPLE["skill"] + (PEOPLE["sex"] == "m") > 0.5, "yes", "no"), name="hired")
KINDS = ("polars", "lazy", "arrow")


def as_kind(frame, kind):
    found = pl.from_pandas(frame)
    return {"polars": found, "lazy": found.lazy(), "arrow": found.to_arrow()}[kind]


def column(values, kind):
    found = pl.from_pandas(values)
    return found.to_arrow() if kind == "arrow" else found


HIDDEN = """
import datetime
import sys
from importlib.machinery import PathFinder


class WithoutArrow(PathFinder):  # as if it were not installed
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.startswith("pyarrow") else super().find_spec(name, path, target)


sys.meta_path[sys.meta_path.index(PathFinder)] = WithoutArrow
import numpy as np
import polars as pl
import evenhand
from evenhand.tables import load_table

n = 200
rng = np.random.default_rng(0)
people = pl.DataFrame({
    "skill": rng.normal(size=n), "age": rng.integers(20, 60, n), "job": rng.choice(["cook", "clerk"], n),
    "since": [datetime.date(2020, 1, 1 + i % 28) for i in range(n)], "sex": rng.choice(["f", "m"], n),
}).with_columns(
    hired=pl.when(pl.col("skill") > 0).then(pl.lit("yes")).otherwise(pl.lit("no")),
    age=pl.when(pl.col("age") < 25).then(None).otherwise(pl.col("age")),
    job=pl.col("job").cast(pl.Categorical),
)
for table in (people, people.lazy()):
    data = load_table(table, label="hired", sensitive="sex")
    assert data.dates == {"since": "ISO8601"}, data.dates
    assert str(data.contexts["job"].dtype) == "category"
    X, y, s = table.drop("hired", "sex"), people["hired"], people["sex"]
    model = evenhand.tabular(evenhand.CooperativeBandits(epochs=2, random_state=0))
    assert model.fit(X, y, sensitive_features=s).predict(X, sensitive_features=s).shape == (n,)
    trees = evenhand.CooperativeBoosting(rounds=5, random_state=0)
    numbers = X.drop("since")
    assert trees.fit(numbers, y, sensitive_features=s).score(numbers, y, sensitive_features=s) > 0.8
    assert list(trees.categories_) == ["job"]
    found = evenhand.audit(trees, numbers, y, sensitive_features=s, n_bootstrap=20)
    assert found.value("flip_rate") is not None
frontier = evenhand.explore(
    people.lazy(), label="hired", sensitive="sex", weights=[5], epochs=2, n_jobs=1
)
assert frontier.choose().decide(people.lazy()).decision.shape == (n,)
assert "pyarrow" not in sys.modules
print("done")
"""


def test_polars_needs_no_pyarrow(tmp_path: Path) -> None:
    script = tmp_path / "hidden.py"
    script.write_text(HIDDEN)
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=300)
    assert done.stdout.endswith("done\n"), done.stderr[-2000:]


@pytest.mark.parametrize("kind", KINDS)
def test_columns_keep_their_kind(kind: str) -> None:
    frame = pl.DataFrame(
        {
            "whole": [1, 2, 3],
            "gap": [1, None, 3],
            "real": [0.5, None, 2.0],
            "flag": [True, None, False],
            "text": ["a", None, "b"],
            "day": [datetime.date(2020, 1, 1), None, datetime.date(1500, 1, 1)],
            "code": pl.Series(["1", None, "2"], dtype=pl.Categorical),
            "money": pl.Series(["1.50", None, "2"]).cast(pl.Decimal(10, 2)),
        }
    )
    found = as_pandas({"polars": frame, "lazy": frame.lazy(), "arrow": frame.to_arrow()}[kind])
    assert found["whole"].dtype == np.int64
    assert found["real"].dtype == np.float64
    assert found["text"].tolist()[::2] == ["a", "b"]
    assert found["code"].astype(object).tolist()[::2] == ["1", "2"]
    assert isinstance(found["code"].dtype, pd.CategoricalDtype)
    assert pd.to_numeric(found["money"]).tolist()[::2] == [1.5, 2.0]
    assert all(found[name].isna().tolist() == [False, True, False] for name in found.columns[1:])


def test_what_is_no_frame_stays_as_it_is() -> None:
    for given in (PEOPLE, HIRED, [1, 2], {"a": [1]}, np.eye(2), None, "sex"):
        assert as_pandas(given) is given


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "model",
    [
        CooperativeBandits(5.0, epochs=2, random_state=0),
        CooperativeEnsemble(
            5.0,
            bandits=CooperativeBandits(epochs=2),
            boosting=CooperativeBoosting(rounds=5),
            random_state=0,
        ),
        LR(),
        GradientBandit(epochs=2, random_state=0),
        CooperativeBoosting(5.0, rounds=5, random_state=0),
        tabular(CooperativeBandits(5.0, epochs=2, random_state=0)),
    ],
    ids=lambda model: type(model).__name__,
)
def test_learners_say_the_same_of_any_frame(model, kind: str) -> None:
    raw = type(model).__name__ in ("CooperativeBoosting", "TabularClassifier")
    table = PEOPLE[["skill", "age", *(["job"] if raw else [])]]
    by_group = not isinstance(model, GradientBandit)
    ours = {"sensitive_features": PEOPLE["sex"]} if by_group else {}
    theirs = {"sensitive_features": column(PEOPLE["sex"], kind)} if by_group else {}
    wanted = model.fit(table, HIRED, **ours).predict_proba(table, **ours)
    other, labels = as_kind(table, kind), column(HIRED, kind)
    again = model.fit(other, labels, **theirs)
    np.testing.assert_array_equal(again.predict_proba(other, **theirs), wanted)
    score = again.score(other, labels, **theirs)
    assert score == again.score(table, HIRED, **ours)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("learner", [CooperativeBandits, CooperativeBoosting, CooperativeEnsemble])
def test_groups_are_named_in_any_frame(learner, kind: str) -> None:
    parts = {"bandits": CooperativeBandits(epochs=1), "boosting": CooperativeBoosting(rounds=2)}
    small = {CooperativeBandits: {"epochs": 1}, CooperativeBoosting: {"rounds": 2}}.get(learner, parts)
    table = PEOPLE[["skill", "age", "sex"]]
    model = learner(random_state=0, **small).fit(as_kind(table, kind), HIRED, sensitive_features="sex")
    assert model.feature_names_in_.tolist() == ["skill", "age"]
    said = model.predict_proba(as_kind(table, kind))
    np.testing.assert_array_equal(said, model.predict_proba(table))


@pytest.mark.parametrize("kind", KINDS)
def test_audits_and_metrics_say_the_same_of_any_frame(kind: str) -> None:
    model = CooperativeBoosting(5.0, rounds=5, random_state=0)
    table = PEOPLE[["skill", "age", "job"]]
    model.fit(table, HIRED, sensitive_features=PEOPLE["sex"])
    other, labels, groups = as_kind(table, kind), column(HIRED, kind), as_kind(PEOPLE[["sex"]], kind)
    wanted = audit(model, table, HIRED, sensitive_features=PEOPLE["sex"], random_state=0, n_bootstrap=20)
    found = audit(model, other, labels, sensitive_features=groups, random_state=0, n_bootstrap=20)
    assert found.to_dict() == wanted.to_dict()
    named = audit(
        model, as_kind(PEOPLE, kind), labels, sensitive_features="sex", random_state=0, n_bootstrap=20
    )
    assert named.value("discrimination") == wanted.value("discrimination")
    asked = respond(model, other, sensitive_features=groups)
    decided = asked.decisions
    flipped = respond(model, other, sensitive_features=groups, change_columns=False)
    assert flipped.decisions.tolist() == decided.tolist()
    assert consistency(decided, X=other) == consistency(decided, X=table)
    assert accuracy(labels, column(pd.Series(decided), kind), sensitive_features=groups) == accuracy(
        HIRED, decided, sensitive_features=PEOPLE["sex"]
    )
    ours = discrimination(HIRED, decided, sensitive_features=PEOPLE["sex"])
    assert discrimination(labels, decided, sensitive_features=groups) == ours


def test_an_unknown_source_says_what_is_read() -> None:
    from evenhand.tables import load_table

    with pytest.raises(TypeError, match="Got a object, but expected .*a frame"):
        load_table(object())
