from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

from evenhand import CooperativeBandits
from evenhand import metrics as m
from evenhand.datasets import Dataset
from evenhand.metrics.selection import CRITERIA
from evenhand.protocol.grids import Method
from evenhand.protocol.measuring import measured
from evenhand.protocol.sweep import Sweep
from evenhand.protocol.trial import Trial, make_ready, train_and_select
from evenhand.tables.preprocessing import prepare
from evenhand.tables.splits import split

BANDITS = Method("bandits", lambda seed, **point: CooperativeBandits(random_state=seed, **point))


def test_metrics_on_the_test_part_equal_the_library_s(dataset: Dataset) -> None:
    prepared = make_ready(dataset, 3, "random")
    parts = prepare(dataset, split(dataset, seed=3))
    model = CooperativeBandits(epochs=3, random_state=0).fit(
        prepared.X, prepared.y, sensitive_features=prepared.s
    )
    X, y, s, contexts = parts.test[:4]
    by_group = model.probabilities_by_group(X)
    decided = model.predict(X, sensitive_features=s)
    own = prepared.test.people.own
    group: dict[str, Any] = {"sensitive_features": s, "pos_label": "yes"}
    expected = {
        "accuracy": m.accuracy(y, decided),
        "discrimination": m.discrimination(y, decided, **group),
        "delta": m.delta(y, decided, **group),
        "balanced_accuracy": m.balanced_accuracy(y, decided),
        "positive_rate": float((decided == "yes").mean()),
        "flip_rate": m.flip_rate(by_group.argmax(2), own),
        "consistency": m.consistency(decided, X=contexts),
        "auc": m.auc(y, by_group[np.arange(len(y)), own], pos_label="yes"),
        "gap": m.metric_free_gap(by_group, own).mean,
    }
    found = measured(prepared.test.ask(model), prepared.neighbours).metrics
    assert found == pytest.approx(expected, abs=1e-6)


def test_submodels_are_those_of_the_estimator(dataset: Dataset) -> None:
    prepared = make_ready(dataset, 0, "random")
    test = prepared.test
    model = CooperativeBandits(0.0, epochs=5, shared_start=False, random_state=0)
    model.fit(prepared.X, prepared.y, sensitive_features=prepared.s)
    y, s = test.people.y, np.array(test.people.groups)[test.people.own]
    found = measured(test.ask(model), prepared.neighbours).submodels
    ways = {
        "Model 0": model.compress("f").predict(test.X),
        "Model 1": model.compress("m").predict(test.X),
        "Reversed Model": model.reversed().predict(test.X, sensitive_features=s),
        "Original Model": model.predict(test.X, sensitive_features=s),
    }
    assert list(found) == list(ways)
    for name, decided in ways.items():
        assert found[name]["accuracy"] == pytest.approx((decided == y).mean())
        unequal = m.discrimination(y, decided, sensitive_features=s, pos_label="yes")
        assert found[name]["discrimination"] == pytest.approx(unequal)
    assert len({repr(metrics) for metrics in found.values()}) > 1


def test_selection_never_looks_at_the_test_part(dataset: Dataset) -> None:
    prepared = make_ready(dataset, 0, "random")
    expected = train_and_select(prepared, BANDITS, {"epochs": 5, "checkpoint_every": 100}, 0, CRITERIA)
    people = prepared.test.people
    turned_labels = np.where(people.y == "yes", "no", "yes")
    prepared = replace(prepared, test=replace(prepared.test, people=replace(people, y=turned_labels)))
    turned = train_and_select(prepared, BANDITS, {"epochs": 5, "checkpoint_every": 100}, 0, CRITERIA)
    for name, chosen in expected["criteria"].items():
        other = turned["criteria"][name]
        assert (chosen["step"], chosen["validation"]) == (other["step"], other["validation"])
        assert chosen["test"]["accuracy"] == pytest.approx(1 - other["test"]["accuracy"])


def test_the_chosen_step_is_the_best_of_all_checkpoints(dataset: Dataset) -> None:
    prepared = make_ready(dataset, 0, "random")
    scores = {}

    def look(step: int, model: Any) -> None:
        scores[step] = prepared.validation.scores(model)

    CooperativeBandits(epochs=5, checkpoint_every=100, random_state=0).fit(
        prepared.X, prepared.y, sensitive_features=prepared.s, callback=look
    )
    found = train_and_select(prepared, BANDITS, {"epochs": 5, "checkpoint_every": 100}, 0, CRITERIA)
    assert found["checkpoints"] == len(scores) > 5
    for criterion in CRITERIA:
        best = max(scores, key=lambda step: (criterion.rank(scores[step]), -step))
        assert found["criteria"][criterion.name]["step"] == best


def test_any_classifier_is_a_method(dataset: Dataset) -> None:
    prepared = make_ready(dataset, 0, "random")
    tree = Method("tree", lambda seed, **point: DecisionTreeClassifier(random_state=seed, **point))
    found = train_and_select(prepared, tree, {"max_depth": 2}, 0, CRITERIA)
    assert found["checkpoints"] == 1
    assert found["curve"] is None
    chosen = found["criteria"]["delta"]["test"]
    assert chosen["flip_rate"] == 0
    model = DecisionTreeClassifier(random_state=0, max_depth=2).fit(prepared.X, prepared.y)
    decided = model.predict(prepared.test.X)
    assert chosen["accuracy"] == (decided == prepared.test.people.y).mean()


def test_at_most_so_many_people_are_learned_from(dataset: Dataset) -> None:
    prepared = make_ready(dataset, 0, "random")
    seen = []

    class Counting(DecisionTreeClassifier):  # type: ignore[misc]
        def fit(self, X: Any, y: Any) -> Any:
            seen.append((len(y), X.shape[0]))
            return super().fit(X, y)

    method = Method("counting", lambda seed: Counting(random_state=seed), most_people=50)
    train_and_select(prepared, method, {}, 0, CRITERIA)
    assert seen == [(50, 50)]


def test_an_error_is_a_result(dataset: Dataset) -> None:
    trial = Trial("k", "d", dataset.name, 0, BANDITS, {"hidden": -1}, CRITERIA)
    result = trial.run(make_ready(dataset, 0, "random"))
    assert result.trained is None
    assert "Got hidden=-1" in str(result.error)


def test_an_unknown_split_is_refused(dataset: Dataset) -> None:
    with pytest.raises(ValueError, match="Got split='stratify'.*Did you mean 'stratified'"):
        make_ready(dataset, 0, "stratify")


def only_outside_training(dataset: Dataset, n: int, seed: int = 0) -> list[int]:
    """Return the first rows of the test part of the random split."""
    return split(dataset, seed=seed).test[:n].tolist()


def test_a_group_that_training_never_sees_is_named_before_any_trial(dataset: Dataset) -> None:
    sensitive = dataset.sensitive.copy()
    sensitive.loc[only_outside_training(dataset, 2), "sex"] = "x"
    rare = replace(dataset, sensitive=sensitive)
    wanted = (
        "Data set 'people', seed 0, split='random': the training part has nobody from these groups, but "
        "the other parts have (with their numbers of people): 'x' (2). Merge rare groups, or use split='stratified'."
    )
    with pytest.raises(ValueError, match=re.escape(wanted)):
        make_ready(rare, 0, "random")
    ran: list[int] = []
    method = Method("never", lambda seed: ran.append(seed))
    with pytest.raises(ValueError, match=re.escape(wanted)):
        Sweep([method], [rare], seeds=1, split="random").run()
    assert ran == []
    assert make_ready(rare, 0, "stratified").test.people.groups == ["f", "m", "x"]


def test_a_group_of_one_person_cannot_be_saved_by_stratifying(dataset: Dataset) -> None:
    sensitive = dataset.sensitive.copy()
    sensitive.loc[3, "sex"] = "g"  # who is not in the training part then
    alone = replace(dataset, sensitive=sensitive)
    with pytest.raises(ValueError, match=r"'g' \(1\)\. Merge rare groups\.$"):
        make_ready(alone, 0, "stratified")


@pytest.mark.parametrize("common", ["no", "yes"])
def test_a_label_that_training_never_sees_is_named(dataset: Dataset, common: str) -> None:
    label = pd.Series(common, index=dataset.label.index, name="hired", dtype=object)
    label[only_outside_training(dataset, 3)] = {"no": "yes", "yes": "no"}[common]
    wanted = (
        f"Data set 'people', seed 0, split='random': the labels in the training part are {common!r}, but "
        "expected the positive one, 'yes', and another. Use another seed, or more people."
    )
    with pytest.raises(ValueError, match=re.escape(wanted)):
        make_ready(replace(dataset, label=label), 0, "random")
