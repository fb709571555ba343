import copy
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from evenhand import (
    CooperativeBandits,
    Correctness,
    EqualizedOdds,
    EqualOpportunity,
    GradientBandit,
    Likelihood,
    LogRatio,
    Parity,
    TrainingDivergedError,
    load,
    save,
)
from factories import NOT_EXACT, make_arrays, outcome


@pytest.mark.filterwarnings("ignore::evenhand.baselines.CollapseWarning")  # some labels are noise
@parametrize_with_checks([CooperativeBandits()], expected_failed_checks=lambda _: NOT_EXACT)
def test_scikit_learn(estimator, check):
    check(estimator)


def fitted(**options):
    X, y, s = make_arrays(4000)
    return CooperativeBandits(random_state=0, **options).fit(X, y, sensitive_features=s), X, y, s


def test_cooperation_ends_flips_and_costs_little():
    free = outcome(*fitted(divergence_weight=0))
    fair = outcome(*fitted(divergence_weight=2))
    assert free[2] > 0.1
    assert fair[2] < free[2] / 5
    assert fair[0] > free[0] - 0.05


def rare_categories(n=700, columns=12, categories=5):
    """Every column of ones is rare: what it says of people is learned slowly where the pull is strong."""
    rng = np.random.default_rng(0)
    s = rng.choice(["f", "m"], n)
    X = np.eye(categories)[rng.integers(0, categories, size=(n, columns))].reshape(n, -1)
    score = X @ rng.normal(size=X.shape[1])
    y = np.where(score - np.median(score) + 0.5 * (s == "m") + 0.5 * rng.normal(size=n) > 0, "yes", "no")
    return X, y, s


@pytest.mark.parametrize("weight", [300, 1000])
def test_policies_that_move_jointly_learn_as_one_however_large_the_weight(weight):
    X, y, s = rare_categories()
    alone = GradientBandit(random_state=0).fit(X, y).score(X, y)
    jointly, apart = (
        outcome(
            CooperativeBandits(weight, optimizer=optimizer, random_state=0).fit(X, y, sensitive_features=s),
            X,
            y,
            s,
        )
        for optimizer in ("joint_adam", "adam")
    )
    assert jointly[0] > alone - 0.01
    assert jointly[2] < 0.01
    assert apart[0] < alone - 0.05  # with an Adam each, the pull divides what labels teach


def test_policies_move_jointly_from_a_weight_of_5_on():
    X, y, s = make_arrays(500)
    jointly, alone = (
        CooperativeBandits(5, optimizer=optimizer, epochs=3, random_state=0).fit(X, y, sensitive_features=s)
        for optimizer in ("joint_adam", "adam")
    )
    assert np.abs(jointly.policies_.W1 - alone.policies_.W1).max() > 1e-3


@pytest.mark.parametrize(
    "options",
    [
        {"divergence_weight": 4.9},
        {"cooperation": "acting"},
        {"shared_start": False},
        {"divergence_weight": 0},
    ],
)
def test_policies_move_by_themselves_where_joint_moves_would_not_help(options):
    X, y, s = make_arrays(500)
    jointly, alone = (
        CooperativeBandits(random_state=0, epochs=3, **{"optimizer": optimizer, **options}).fit(
            X, y, sensitive_features=s
        )
        for optimizer in ("joint_adam", "adam")
    )
    np.testing.assert_array_equal(jointly.policies_.W1, alone.policies_.W1)


def test_learning_rate_follows_the_features():
    X, y, s = make_arrays(300)  # four features
    given = CooperativeBandits(learning_rate=0.005, random_state=0).fit(X, y, sensitive_features=s)
    auto = CooperativeBandits(random_state=0).fit(X, y, sensitive_features=s)
    np.testing.assert_array_equal(given.policies_.W1, auto.policies_.W1)


def test_parity_closes_the_gap():
    free = outcome(*fitted())
    equal = outcome(*fitted(reward=Likelihood() + LogRatio() + Parity()))
    assert free[1] > 0.2
    assert equal[1] < 0.05


@pytest.mark.parametrize(("term", "given"), [(EqualOpportunity(), ["yes"]), (EqualizedOdds(), ["yes", "no"])])
def test_odds_are_equalised(term, given):
    def gap(model, X, y, s):
        own = model.predict(X, sensitive_features=s) == "yes"
        return max(
            abs(np.mean(own[(s == "m") & (y == v)]) - np.mean(own[(s == "f") & (y == v)])) for v in given
        )

    free = gap(*fitted(divergence_weight=0, reward=Likelihood()))
    equal = gap(*fitted(divergence_weight=0, reward=Likelihood() + term, epochs=40))
    assert free > 0.12
    assert equal < free / 2


def test_published_preset_is_algorithm_1():
    model = CooperativeBandits.published(20)
    assert (model.estimator, model.cooperation, model.optimizer, model.schedule, model.order, model.batch_size) == (
        "sampled", "acting", "sgd", "constant", "drawn", 1,
    )  # fmt: skip
    assert model.reward.names == ("correctness", "kl")
    authors = CooperativeBandits.published(20, variant="authors", hidden=7)
    assert (authors.optimizer, authors.learning_rate, authors.order, authors.hidden) == (
        "adam",
        1e-4,
        "file",
        7,
    )
    with pytest.raises(ValueError, match="expected one of 'algorithm', 'authors'"):
        CooperativeBandits.published(variant="paper")


def test_submodels():
    model, X, _, s = fitted(divergence_weight=0, epochs=2)
    by_group = model.probabilities_by_group(X)
    for at, group in enumerate(["f", "m"]):
        single = model.compress(group)
        np.testing.assert_array_equal(single.predict_proba(X), by_group[:, at])
    swapped = model.reversed()
    np.testing.assert_array_equal(swapped.probabilities_by_group(X), by_group[:, ::-1])
    np.testing.assert_array_equal(
        swapped.predict_proba(X, sensitive_features=s),
        model.predict_proba(X, sensitive_features=np.where(s == "f", "m", "f")),
    )
    np.testing.assert_array_equal(model.probabilities_by_group(X), by_group)  # untouched
    assert not swapped._training.moments.updates.any()  # its averages were the other policies'
    state = np.random.RandomState(0)
    model.set_params(random_state=state).compress("f")
    assert state.randint(1000) == np.random.RandomState(0).randint(1000)  # nothing was drawn from it
    with pytest.raises(ValueError, match="Got group='x', but fit saw only 'f', 'm'"):
        model.compress("x")


def test_crossed_columns_four_groups_and_five_labels():
    rng = np.random.default_rng(0)
    n = 3000
    frame = pd.DataFrame({"sex": rng.choice(["f", "m"], n), "old": rng.choice([True, False], n)})
    X = rng.normal(size=(n, 3))
    y = np.digitize(X[:, 0], [-1, -0.3, 0.3, 1])
    model = CooperativeBandits(random_state=0).fit(X, y, sensitive_features=frame)
    assert model.groups_.tolist() == [
        "sex=f, old=False",
        "sex=f, old=True",
        "sex=m, old=False",
        "sex=m, old=True",
    ]
    assert model.probabilities_by_group(X).shape == (n, 4, 5)
    assert model.score(X, y, sensitive_features=frame) > 0.8
    np.testing.assert_allclose(model.predict_proba(X, sensitive_features=frame).sum(1), 1)
    np.testing.assert_array_equal(
        model.predict(X, sensitive_features=pl.from_pandas(frame)), model.predict(X, sensitive_features=frame)
    )


def test_sensitive_columns_are_known_by_their_names(tmp_path):
    X, y, s = make_arrays(600)
    s = pd.DataFrame({"sex": (s == "f").astype(int), "old": np.random.default_rng(1).integers(0, 2, 600)})
    swapped = s[["old", "sex"]]
    first = CooperativeBandits(0, random_state=0).partial_fit(X, y, ["no", "yes"], sensitive_features=s)
    again = copy.deepcopy(first).partial_fit(X, y, sensitive_features=swapped)
    np.testing.assert_array_equal(
        first.partial_fit(X, y, sensitive_features=s).policies_.W1, again.policies_.W1
    )
    model = CooperativeBandits(0, epochs=5, shared_start=False, random_state=0).fit(
        X, y, sensitive_features=s
    )
    reloaded = load(save(model, tmp_path / "model.skops"))
    for kept in (model, model.reversed(), reloaded, pickle.loads(pickle.dumps(model)), again):
        assert kept.sensitive_names_ == ["sex", "old"]
        told = kept.predict_proba(X, sensitive_features=s)
        np.testing.assert_array_equal(kept.predict_proba(X, sensitive_features=swapped), told)
    assert (told != kept.predict_proba(X, sensitive_features=swapped.to_numpy())).any()  # order matters here
    with pytest.raises(ValueError, match="columns 'old', 'age', but fit saw 'sex', 'old'"):
        model.predict(X, sensitive_features=swapped.rename(columns={"sex": "age"}))
    del model.sensitive_names_  # a model saved when names were not kept
    model.predict(X, sensitive_features=s)


def test_routing_grid_search_and_pipeline():
    X, y, s = make_arrays(600)
    with config_context(enable_metadata_routing=True):
        bandits = CooperativeBandits(random_state=0)
        bandits.set_fit_request(sensitive_features=True).set_score_request(sensitive_features=True)
        search = GridSearchCV(bandits, {"divergence_weight": [0.0, 1.0]}, cv=2)
        search.fit(X, y, sensitive_features=s)
        assert set(search.cv_results_["param_divergence_weight"]) == {0.0, 1.0}
        pipeline = make_pipeline(StandardScaler(), bandits)
        scores = cross_val_score(pipeline, X, y, params={"sensitive_features": s}, cv=3)
        assert scores.min() > 0.7


def test_names_of_columns_are_kept():
    X, y, s = make_arrays(300)
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = CooperativeBandits(epochs=1, random_state=0).fit(frame, y, sensitive_features=s)
    assert model.feature_names_in_.tolist() == list("abcd")
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[["b", "a", "c", "d"]], sensitive_features=s)
    again = clone(model)
    assert not hasattr(again, "policies_")


def test_online_feedback_with_fairness():
    X, y, s = make_arrays(6000)
    rng = np.random.default_rng(0)
    model = CooperativeBandits(reward=LogRatio(weight=0.5), learning_rate=0.05, random_state=0)
    for batch in np.split(np.arange(6000), 30):
        if hasattr(model, "policies_"):
            actions, chances = model.sample_actions(
                X[batch], sensitive_features=s[batch], random_state=rng.integers(99)
            )
        else:
            actions, chances = rng.choice(["no", "yes"], len(batch)), np.full(len(batch), 0.5)
        model.update(
            X[batch], actions, (actions == y[batch]).astype(float), chances, sensitive_features=s[batch],
            classes=["no", "yes"], groups=["f", "m"],
        )  # fmt: skip
    accuracy, _, flips = outcome(model, X, y, s)
    assert accuracy > 0.75
    assert flips < 0.15


def test_partial_fit_with_groups_named_ahead():
    X, y, s = make_arrays(400)
    women = s == "f"
    model = CooperativeBandits(random_state=0)
    model.partial_fit(
        X[women], y[women], classes=["no", "yes"], sensitive_features=s[women], groups=["f", "m"]
    )
    model.partial_fit(X[~women], y[~women], sensitive_features=s[~women])
    assert model.groups_.tolist() == ["f", "m"]
    assert model.n_steps_ == 400
    with pytest.raises(ValueError, match="Got label 'maybe', but fit saw only the classes 'no', 'yes'"):
        model.partial_fit(X, np.full(400, "maybe"), sensitive_features=s)


@pytest.mark.parametrize("actions", [[None] * 4, ["yes", None, "no", "no"], ["yes", 3, "no", "no"]])
def test_actions_that_are_no_classes_are_named(actions):
    X, y, s = make_arrays(100)
    model = CooperativeBandits(epochs=1, random_state=0).fit(X, y, sensitive_features=s)
    actions = np.array(actions, dtype=object)
    with pytest.raises(ValueError, match="Got action (None|3), but fit saw only the classes 'no', 'yes'"):
        model.update(X[:4], actions, np.ones(4), sensitive_features=s[:4])
    with pytest.raises(ValueError, match="of different types, or missing ones"):
        CooperativeBandits().partial_fit(X, y, np.array(["yes", "no", 3], dtype=object), sensitive_features=s)


@pytest.mark.parametrize("option", ["batch_size", "checkpoint_every"])
def test_counts_beyond_64_bits_are_refused(option):
    X, y, s = make_arrays(100)
    with pytest.raises(ValueError, match=rf"Got {option}=\d+, but expected .* at most 2\*\*62"):
        CooperativeBandits(**{option: 2**63}).fit(X, y, sensitive_features=s)


def test_later_calls_bring_no_new_classes_or_groups():
    X, y, s = make_arrays(40)
    model = CooperativeBandits(random_state=0).fit(X, y, sensitive_features=s)
    model.partial_fit(X, y, classes=["yes", "no"], sensitive_features=s, groups=["m"])
    before = model.policies_.W1.copy()
    for new, message in (
        ({"classes": ["maybe", "no", "yes"]}, r"Got classes=\['maybe', 'no', 'yes'\].*\['no', 'yes'\]"),
        ({"groups": ["f", "m", "z"]}, "Got group='z', but fit saw only 'f', 'm'"),
    ):
        with pytest.raises(ValueError, match=message):
            model.partial_fit(X, y, sensitive_features=s, **new)
        with pytest.raises(ValueError, match=message):
            model.update(X, y, np.ones(40), sensitive_features=s, **new)
    np.testing.assert_array_equal(model.policies_.W1, before)


@pytest.mark.parametrize(
    "changes",
    [
        {"optimizer": "adam"},
        {"batch_size": 8},
        {"weight_decay": 0.1},
        {"reward": Correctness() + Parity()},
        {"reward": Likelihood() + Parity() + EqualizedOdds()},
    ],
)
def test_options_may_change_between_calls(changes):
    X, y, s = make_arrays(300)
    model = CooperativeBandits(optimizer="sgd", batch_size=1, random_state=0)
    model.partial_fit(X, y, classes=["no", "yes"], sensitive_features=s)
    model.set_params(**changes).partial_fit(X, y, sensitive_features=s)
    plain = CooperativeBandits(optimizer="sgd", batch_size=1, random_state=0)
    plain.partial_fit(X, y, classes=["no", "yes"], sensitive_features=s).partial_fit(
        X, y, sensitive_features=s
    )
    assert (model.policies_.W1 != plain.policies_.W1).any()  # the change was not ignored
    model.set_params(reward=None).partial_fit(X, y, sensitive_features=s)
    assert model.n_steps_ == 900
    with pytest.raises(ValueError, match="Got batch_size=0"):
        model.set_params(batch_size=0).partial_fit(X, y, sensitive_features=s)


def test_moments_of_another_kind_of_moves_are_forgotten():
    X, y, s = make_arrays(640)
    model = CooperativeBandits(0, random_state=0)
    model.partial_fit(X, y, classes=["no", "yes"], sensitive_features=s)
    before = model.policies_.W1.copy()
    model.set_params(divergence_weight=20, schedule="constant").partial_fit(
        X[:32], y[:32], sensitive_features=s[:32]
    )
    # A first step of Adam is one rate long, for the mean and again, slower, for the differences.
    assert np.abs(model.policies_.W1 - before).max() <= 0.005 * (1 + 1 / 21) * 1.01


def test_an_open_batch_closes_when_batches_become_smaller():
    X, y, s = make_arrays(640)
    model = CooperativeBandits(random_state=0, epochs=1, checkpoint_every=20)
    model.fit(X, y, sensitive_features=s, callback=lambda step, model: True)  # stopped with 20 people waiting
    moves = model._training.moments.updates[0]
    model.set_params(batch_size=8).partial_fit(X, y, sensitive_features=s)
    assert model._training.moments.updates[0] - moves == pytest.approx(640 / 8, abs=1)


def test_what_was_learned_survives_a_call_that_diverges():
    X, y, s = make_arrays(300)
    model = CooperativeBandits(random_state=0, epochs=1).fit(X, y, sensitive_features=s)
    before = model.predict_proba(X, sensitive_features=s)
    with pytest.raises(TrainingDivergedError):
        model.set_params(learning_rate=1e30, optimizer="sgd").partial_fit(X, y, sensitive_features=s)
    np.testing.assert_array_equal(model.predict_proba(X, sensitive_features=s), before)
    assert all(np.isfinite(part).all() for part in model.policies_)
    with pytest.raises(TrainingDivergedError):
        model.fit(X, y, sensitive_features=s)
    with pytest.raises(NotFittedError):
        model.predict(X, sensitive_features=s)


@pytest.mark.parametrize("options", [{}, {"hidden": 0}])
def test_a_fit_that_fails_leaves_no_old_policies_under_new_labels(options):
    X, y, s = make_arrays(300)
    model = CooperativeBandits(epochs=1, random_state=0).fit(X, y, sensitive_features=s)
    alone = s if options else np.where(np.arange(300) == 0, "c", s)
    with pytest.raises(ValueError, match="Group 'c' has 1 person|Got hidden=0"):
        model.set_params(**options).fit(X, np.where(y == "yes", "good", "bad"), sensitive_features=alone)
    with pytest.raises(NotFittedError):
        model.predict(X, sensitive_features=s)


def test_same_seed_same_model_and_checkpoints_change_nothing():
    X, y, s = make_arrays(500)
    one = CooperativeBandits(random_state=7, epochs=3).fit(X, y, sensitive_features=s)
    two = CooperativeBandits(random_state=7, epochs=3, checkpoint_every=100)
    two.fit(X, y, sensitive_features=s, callback=lambda step, model: None)
    for mine, theirs in zip(one.policies_, two.policies_, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_mean_divergence_falls_with_its_weight():
    ends = [fitted(divergence_weight=weight)[0].history_["mean_divergence"][-1] for weight in (0.0, 1.0, 5.0)]
    assert ends[0] > 5 * ends[1]
    assert ends[1] > ends[2]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"s": None}, None),
        ({"s": ["f"] * 10}, "Got sensitive_features for 10 people"),
        ({"s": [None] + ["f"] * 299}, "sensitive_features has 1 missing values"),
        ({"s": ["m"] + ["f"] * 299}, "Group 'm' has 1 person, but expected at least 2"),
        ({"y": np.full(300, "no")}, "one class only, .*'no'"),
        ({"y": np.ones(300)}, r"one class only, 1\.0, but"),
        ({"y": np.linspace(0, 1, 300)}, "continuous"),
        ({"y": [None] + ["no", "yes"] * 149 + ["no"]}, "Input y contains NaN: 1 labels are missing"),
        ({"y": pd.Series([pd.NA] + ["no", "yes"] * 149 + ["no"])}, "1 labels are missing"),
        ({"options": {"divergence_weight": -1}}, "Got divergence_weight=-1"),
        ({"options": {"divergence_weight": float("nan")}}, "Got divergence_weight=nan"),
        ({"options": {"cooperation": "none"}}, "expected one of 'mutual', 'acting'"),
        ({"options": {"reward": "log_ratio + log_ratio"}}, "'log_ratio' twice"),
        ({"options": {"reward": Parity(bound=2)}}, "Got bound=2"),
    ],
)
def test_bad_input_is_named(change, message):
    X, y, s = make_arrays(300)
    given = {"y": y, "s": s, "options": {}} | change
    model = CooperativeBandits(epochs=1, random_state=0, **given["options"])
    if message is None:
        assert model.fit(X, given["y"], sensitive_features=given["s"]).groups_.tolist() == ["everyone"]
        return
    with pytest.raises(ValueError, match=message):
        model.fit(X, given["y"], sensitive_features=given["s"])


def test_deciding_needs_known_groups():
    model, X, _, s = fitted(epochs=1)
    with pytest.raises(
        ValueError, match=r"Got no sensitive_features.*'f', 'm'.*compress.*enable_metadata_rout"
    ):
        model.predict(X)
    with pytest.raises(ValueError, match="Got group 'x' in sensitive_features, but fit saw only 'f', 'm'"):
        model.predict(X, sensitive_features=np.where(s == "f", "x", s))


def test_a_model_fitted_without_groups_says_so():
    X, y, s = make_arrays(40)
    model = CooperativeBandits(epochs=1, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="Got group 'f' .*, but the model was fitted without sensitive_feat"):
        model.predict(X, sensitive_features=s)
    grouped = CooperativeBandits(epochs=1, random_state=0).fit(X, y, sensitive_features=s)
    with pytest.raises(ValueError, match="Got no sensitive_features, but expected each person's group"):
        grouped.partial_fit(X, y)
