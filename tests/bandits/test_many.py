"""A grid of models, each what a fit of its own gives."""

import gc
import warnings

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn import config_context, get_config
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import ShuffleSplit

from evenhand import CooperativeBandits, GradientBandit, TrainingDivergedError, fit_many
from evenhand.metrics import accuracy, discrimination
from evenhand.metrics.selection import HighestDelta
from evenhand.progress import Lines
from factories import make_arrays

GRID = [
    {"divergence_weight": [0, 20], "hidden": [3, 5]},
    {"reward": ["correctness + log_ratio + parity"], "learning_rate": [0.1], "random_state": [0, 1]},
]


def same(one, other):
    for mine, theirs in zip(one.policies_, other.policies_, strict=True):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_every_model_is_what_a_fit_of_its_own_gives_in_the_order_of_the_grid(n_jobs):
    X, y, s = make_arrays(200)
    weights = np.random.default_rng(0).uniform(0.5, 2, 200)
    plain = CooperativeBandits(steps=300, random_state=5)
    models = fit_many(plain, GRID, X, y, weights, sensitive_features=s, n_jobs=n_jobs)
    varied = [(model.divergence_weight, model.hidden, model.random_state) for model in models]
    assert varied == [(0, 3, 5), (0, 5, 5), (20, 3, 5), (20, 5, 5), (20, 20, 0), (20, 20, 1)]
    for model in models:
        same(model, clone(model).fit(X, y, weights, sensitive_features=s))
    assert not hasattr(plain, "policies_")


def test_learners_without_groups_take_part():
    X, y, _ = make_arrays(200)
    models = fit_many(GradientBandit(steps=200), {"random_state": [3, 4]}, X, y)
    same(models[1], GradientBandit(steps=200, random_state=4).fit(X, y))


def test_what_is_wrong_is_said_before_anything_is_fitted():
    X, y, _ = make_arrays(50)
    with pytest.raises(ValueError, match="Got engine='gpu', but expected"):
        fit_many(GradientBandit(), {}, X, y, engine="gpu")
    with pytest.raises(ValueError, match="Invalid parameter 'hiden'"):
        fit_many(GradientBandit(), {"hiden": [3]}, X, y)


SPLITS = list(ShuffleSplit(2, test_size=0.4, random_state=0).split(np.zeros(300)))


def test_splits_are_fitted_one_after_another_each_on_its_first_part(capsys):
    X, y, s = make_arrays(300)
    weights = np.random.default_rng(0).uniform(0.5, 2, 300)
    plain = CooperativeBandits(steps=300, random_state=5)
    models = fit_many(
        plain, {"hidden": [3, 5]}, X, y, weights, sensitive_features=s, cv=SPLITS, progress=Lines()
    )
    assert [model.hidden for model in models] == [3, 5, 3, 5]
    for model, (rows, _) in zip(models, np.repeat(np.array(SPLITS, dtype=object), 2, axis=0), strict=True):
        rows = rows.astype(int)
        same(model, clone(model).fit(X[rows], y[rows], weights[rows], sensitive_features=s[rows]))
    assert "Models: 4 of 4" in capsys.readouterr().err


@pytest.mark.parametrize("named", [False, True], ids=["groups as an array", "groups by name"])
def test_the_best_checkpoint_of_each_model_is_returned_with_its_scores(named):
    X, y, s = make_arrays(300)
    table = pd.DataFrame(X).add_prefix("x").assign(**({"sex": s} if named else {}))
    plain = CooperativeBandits(steps=900, checkpoint_every=100, random_state=5)
    groups = "sex" if named else s
    models = fit_many(
        plain, {"hidden": [3, 5]}, table, y, sensitive_features=groups, cv=SPLITS, select="delta",
        pos_label="no", n_jobs=2,
    )  # fmt: skip
    for model, (rows, others) in zip(models, [SPLITS[0], SPLITS[0], SPLITS[1], SPLITS[1]], strict=True):
        scores, there = [], {"sensitive_features": s[others]}

        def look(step, at, there=there, others=others, scores=scores):
            decided = at.predict(table.iloc[others], **there)
            apart = discrimination(y[others], decided, pos_label="no", **there)
            scores.append((accuracy(y[others], decided) - apart, -apart, -step))

        again = clone(model).fit(
            table.iloc[rows], y[rows], sensitive_features="sex" if named else s[rows], callback=look
        )
        assert len(scores) == 9
        assert model.selected_["step"] == -max(scores)[2]
        assert model.selected_["delta"] == pytest.approx(max(scores)[0])
        assert model.n_steps_ == again.n_steps_ == 900
        decided = model.predict(table.iloc[others], **there)
        assert model.selected_["accuracy"] == accuracy(y[others], decided)
        first, second = model.probabilities_by_group(table.iloc[others]).argmax(2).T
        assert model.selected_["flip_rate"] == (first != second).mean()
    assert not hasattr(models[0].fit(table, y, sensitive_features=groups), "selected_")


def test_a_selected_model_learns_on():
    X, y, s = make_arrays(300)
    plain = CooperativeBandits(steps=500, checkpoint_every=100, random_state=5)
    (model,) = fit_many(plain, {}, X, y, sensitive_features=s, cv=SPLITS[:1], select="discrimination")
    before = model.policies_.W1.copy()
    assert not hasattr(model.compressed("f"), "selected_")
    model.partial_fit(X, y, sensitive_features=s)
    assert not np.array_equal(before, model.policies_.W1)
    assert not hasattr(model, "selected_")


def test_a_selected_model_that_fails_to_learn_on_is_still_the_selected_one():
    X, y, s = make_arrays(300)
    plain = CooperativeBandits(steps=200, checkpoint_every=100, random_state=5)
    (model,) = fit_many(plain, {}, X, y, sensitive_features=s, cv=SPLITS[:1], select="discrimination")
    selected, before = model.selected_, model.policies_.W1.copy()
    model.engine_ = "cuda"  # as if it had been trained there
    model.set_params(learning_rate=1e30, optimizer="sgd", batch_size=1)
    with pytest.raises(TrainingDivergedError):
        model.partial_fit(X, y, sensitive_features=s)
    np.testing.assert_array_equal(model.policies_.W1, before)
    assert model.selected_ == selected
    assert model.engine_ == "cuda"
    with pytest.raises(ValueError, match="one class only"):
        model.fit(X, np.full(300, "yes"), sensitive_features=s)
    assert not {"policies_", "selected_", "engine_"} & set(vars(model))


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_error_stops_the_other_fits_without_a_warning(n_jobs, recwarn, monkeypatch):
    X, y, s = make_arrays(100)
    begun, usual = [], CooperativeBandits.fit
    monkeypatch.setattr(CooperativeBandits, "fit", lambda *a, **k: begun.append(1) or usual(*a, **k))
    wild = CooperativeBandits(steps=200, learning_rate=1e30, optimizer="sgd", batch_size=1)
    with pytest.raises(TrainingDivergedError):
        fit_many(wild, {"random_state": list(range(30))}, X, y, sensitive_features=s, n_jobs=n_jobs)
    gc.collect()
    assert [str(each.message) for each in recwarn] == []
    assert len(begun) < 30


def test_scores_of_checkpoints_count_people_by_their_weights():
    X, y, s = make_arrays(300)
    weights = np.where(s == "m", 5.0, 0.1)
    plain = CooperativeBandits(steps=500, checkpoint_every=100, random_state=5)
    (model,) = fit_many(plain, {}, X, y, weights, sensitive_features=s, cv=SPLITS[:1], select="delta")
    others = SPLITS[0][1]
    decided = model.predict(X[others], sensitive_features=s[others])
    right = accuracy(y[others], decided, sample_weight=weights[others])
    assert model.selected_["accuracy"] == pytest.approx(right)
    assert right != accuracy(y[others], decided)


@pytest.mark.parametrize("how", [{}, {"cv": SPLITS, "select": "delta"}], ids=["everybody", "selected"])
def test_random_numbers_are_those_of_separate_fits(how):
    X, y, s = make_arrays(300)
    shared = np.random.RandomState(3)
    plain = CooperativeBandits(steps=200, checkpoint_every=200)
    models = fit_many(plain, {"hidden": [3, 5], "random_state": [shared]}, X, y, sensitive_features=s, **how)
    rows = [SPLITS[at // 2][0] if how else slice(None) for at in range(len(models))]
    for model, these in zip(models, rows, strict=True):
        again = clone(model).set_params(random_state=np.random.RandomState(3))
        same(model, again.fit(X[these], y[these], sensitive_features=s[these]))
    assert shared.randint(10**6) == np.random.RandomState(3).randint(10**6)


@pytest.mark.parametrize("backend", ["loky", "multiprocessing"])
def test_models_are_fitted_whatever_joblib_is_told_to_use(backend):
    X, y, s = make_arrays(60)
    plain = CooperativeBandits(steps=100, random_state=0)
    with joblib.parallel_config(backend):
        models = fit_many(plain, {"hidden": [3, 4]}, X, y, sensitive_features=s, n_jobs=2)
    same(models[1], plain.set_params(hidden=4).fit(X, y, sensitive_features=s))


def test_people_who_weigh_nothing_do_not_count_where_checkpoints_are_scored():
    X, y, s = make_arrays(400)
    rows, others = np.arange(200), np.arange(200, 400)
    weights = np.ones(400)
    weights[200:][s[200:] == "m"] = 0
    plain = CooperativeBandits(steps=1000, checkpoint_every=100, random_state=0)
    left = others[weights[200:] > 0]
    found = [
        fit_many(plain, {}, X, y, *w, sensitive_features=s, cv=[split], select="discrimination")[0].selected_
        for w, split in (([weights], (rows, others)), ([], (rows, left)))
    ]
    assert found[0] == found[1]
    assert found[0]["step"] > 100


def test_threads_leave_warning_filters_alone_and_know_the_configuration(monkeypatch):
    X, y, s = make_arrays(60)
    changed, seen = [], []
    monkeypatch.setattr(warnings, "resetwarnings", lambda: changed.append(1))
    monkeypatch.setattr(
        CooperativeBandits, "fit", lambda *_, **__: seen.append(get_config()["working_memory"])
    )
    with config_context(working_memory=7):
        fit_many(CooperativeBandits(), {"random_state": [0, 1, 2]}, X, y, sensitive_features=s, n_jobs=2)
    assert (changed, seen) == ([], [7] * 3)


def test_several_columns_of_groups_are_split_with_the_people():
    X, y, s = make_arrays(300)
    groups = {"sex": s, "old": np.arange(300) % 2}
    plain = CooperativeBandits(steps=100, random_state=0)
    (model,) = fit_many(plain, {}, X, y, sensitive_features=groups, cv=SPLITS[:1])
    assert model.sensitive_names_ == ["sex", "old"]
    assert model.groups_.tolist() == ["sex=f, old=0", "sex=f, old=1", "sex=m, old=0", "sex=m, old=1"]


@pytest.mark.parametrize(
    "changed, message",
    [
        ({"sensitive_features": ["f", "m"] * 60}, "sensitive_features for 120 people, but expected .* of 60"),
        (
            {"sample_weight": np.ones(61)},
            "sample_weight for 61 people, but expected one value for each of 60",
        ),
        ({"y": ["no", "yes"] * 60}, "inconsistent numbers of samples"),
        ({"y": None}, "Got y=None, but expected one label per person"),
        (
            {"y": np.array([None, *["no", "yes"] * 29, None], dtype=object)},
            "^Input y contains NaN: 2 labels are missing, but expected one per person.$",
        ),
    ],
)
def test_people_that_do_not_match_are_refused_before_they_are_split(changed, message):
    X, y, s = make_arrays(60)
    given = {"X": X, "y": y, "sensitive_features": s} | changed
    with pytest.raises(ValueError, match=message):
        fit_many(CooperativeBandits(), {}, **given, cv=2)


def test_an_error_names_the_split():
    X, y, s = make_arrays(60)
    s[:5] = "x"
    splits = [(np.arange(5, 60), np.arange(5, 30)), (np.arange(5, 60), np.arange(30))]
    with pytest.raises(ValueError, match="Got group 'x'") as refused:
        fit_many(CooperativeBandits(), {}, X, y, sensitive_features=s, cv=splits, select="delta")
    assert refused.value.__notes__ == ["This happened in split 1 of cv (the first is 0)."]


def test_an_empty_grid_has_no_models():
    X, y, s = make_arrays(60)
    assert fit_many(CooperativeBandits(), [], X, y, sensitive_features=s, cv=2, select="delta") == []


def test_a_grid_may_be_a_generator():
    X, y, s = make_arrays(60)
    grid = ({"hidden": [size]} for size in (3, 4))
    models = fit_many(CooperativeBandits(steps=10), grid, X, y, sensitive_features=s)
    assert [model.hidden for model in models] == [3, 4]


def test_an_error_of_a_fit_names_the_split():
    X, y, s = make_arrays(60)
    splits = [(np.arange(60), np.arange(30)), (np.flatnonzero(y == y[0]), np.arange(30))]
    with pytest.raises(ValueError, match="y has one class only") as refused:
        fit_many(CooperativeBandits(steps=10), {}, X, y, sensitive_features=s, cv=splits)
    assert refused.value.__notes__ == ["This happened in split 1 of cv (the first is 0)."]


@pytest.mark.parametrize(
    "estimator, how, message",
    [
        (CooperativeBandits(), {"select": "delta"}, "Got select='delta', but no cv; expected splits"),
        (
            CooperativeBandits(),
            {"select": "best", "cv": 2},
            "Got select='best', but expected one of 'discrim",
        ),
        (CooperativeBandits(), {"select": 3, "cv": 2}, "Got select=3, but expected one of 'discrimination'"),
        (
            LogisticRegression(),
            {"select": "delta", "cv": 2},
            "Got LogisticRegression for select='delta', but",
        ),
        (CooperativeBandits(), {"select": "delta", "cv": 2, "pos_label": "ye"}, "Got pos_label='ye', but"),
        (CooperativeBandits(), {"select": HighestDelta, "cv": 2}, "Got select=<class .* but expected one of"),
        (CooperativeBandits(), {"pos_label": "yes"}, "Got pos_label='yes', but no select"),
        (CooperativeBandits(), {"cv": []}, r"Got cv=\[\], but expected at least one split"),
        (LogisticRegression(), {"engine": "gpu"}, "Got engine='gpu', but expected one of 'cpu', 'cuda'"),
        (CooperativeBandits(), {"on_divergence": "skip"}, "Got on_divergence='skip', but expected"),
    ],
)
def test_what_can_not_be_selected_is_said(estimator, how, message):
    X, y, s = make_arrays(60)
    with pytest.raises(ValueError, match=message):
        fit_many(estimator, {}, X, y, sensitive_features=s, **how)


def test_of_more_than_two_labels_the_positive_one_is_asked_for():
    X, _, s = make_arrays(60)
    with pytest.raises(
        ValueError, match="Got 3 labels and no pos_label; expected the label whose rates are compared"
    ):
        fit_many(CooperativeBandits(), {}, X, np.arange(60) % 3, sensitive_features=s, cv=2, select="delta")


def test_progress_is_something_that_shows_it():
    X, y, s = make_arrays(100)
    with pytest.raises(
        TypeError, match=r"Got progress=True, but expected a Progress, such as evenhand\.progress"
    ):
        fit_many(CooperativeBandits(steps=10), {}, X, y, sensitive_features=s, progress=True)
