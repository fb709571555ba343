from dataclasses import replace

import lightgbm
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from evenhand import (
    CooperativeBandits,
    CooperativeBoosting,
    CooperativeEnsemble,
    Correctness,
    Custom,
    EqualizedOdds,
    Likelihood,
    LogRatio,
    Parity,
    TrainingDivergedError,
    audit,
    load,
    save,
)
from evenhand.boosting.training import Boosted
from factories import NOT_EXACT, make_arrays, make_people, outcome

FEW = {"rounds": 30, "checkpoint_every": 10, "random_state": 0}


@parametrize_with_checks(
    [
        CooperativeBoosting(rounds=20, min_leaf=2, l2=1.0),
        CooperativeEnsemble(bandits=CooperativeBandits(epochs=40), boosting=CooperativeBoosting(rounds=10, min_leaf=2)),
    ],
    expected_failed_checks=lambda _: NOT_EXACT,
)  # fmt: skip
@pytest.mark.filterwarnings("ignore::evenhand.CollapseWarning")  # some labels are noise
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def world():
    return make_arrays(4000)


def fitted(world, **options):
    X, y, s = world
    return CooperativeBoosting(**FEW | options).fit(X, y, sensitive_features=s)


@pytest.fixture(scope="module")
def fair(world):
    return fitted(world)


def test_cooperation_ends_flips_and_costs_little(world, fair):
    free = outcome(fitted(world, divergence_weight=0), *world)
    together = outcome(fair, *world)
    assert free[2] > 0.1
    assert together[2] < 0.01
    assert together[0] > free[0] - 0.05


def test_without_cooperation_each_group_is_boosted_by_its_own_people(world):
    """With λ = 0 nobody moves another group's policy: changing their labels leaves a group's own as it was."""
    X, y, s = world
    other = np.where(s == "m", np.roll(y, 1), y)
    options = FEW | {"divergence_weight": 0.0, "cooperation": "acting"}
    one = CooperativeBoosting(**options).fit(X, y, sensitive_features=s).score(X, y, sensitive_features=s)
    two = CooperativeBoosting(**options).fit(X, other, sensitive_features=s)
    women = s == "f"
    kept = two.score(X[women], y[women], sensitive_features=s[women])
    assert abs(kept - one) < 0.05
    assert two.score(X[~women], y[~women], sensitive_features=s[~women]) < one - 0.1


def test_parity_holds_for_people_who_were_not_trained_on(world):
    test = make_arrays(6000, seed=7)
    free = outcome(fitted(world, rounds=100), *test)
    even = outcome(fitted(world, rounds=100, reward=Likelihood() + LogRatio() + Parity()), *test)
    assert free[1] > 0.2
    assert even[1] < 0.06


def test_equalized_odds(world):
    X, y, s = world
    model = fitted(
        world, rounds=100, divergence_weight=0.3, reward=Likelihood() + LogRatio() + EqualizedOdds()
    )
    own, free = (
        m.predict(X, sensitive_features=s) for m in (model, fitted(world, rounds=100, divergence_weight=0.3))
    )

    def gap(decided):
        by = pd.DataFrame({"right": decided == "yes", "s": s, "y": y}).groupby(["y", "s"])["right"].mean()
        return max(abs(by[label]["f"] - by[label]["m"]) for label in ("no", "yes"))

    assert gap(own) < gap(free) / 2


def cautious(action, label, group, policies, rates):
    return -3.0 if action == 1 else 0.0


def test_a_reward_of_one_s_own(world):
    X, _, s = world
    free = fitted(world).predict(X, sensitive_features=s)
    shy = fitted(world, reward=Likelihood() + LogRatio() + Custom(cautious)).predict(X, sensitive_features=s)
    assert np.mean(shy == "yes") < np.mean(free == "yes") - 0.1


def test_any_number_of_groups_and_labels():
    X, _, s = make_arrays(3000, groups=("a", "b", "c", "d"))
    y = np.digitize(X[:, 0] + 0.3 * (s == "d"), [-0.5, 0.5])
    model = CooperativeBoosting(1.0, **FEW).fit(X, y, sensitive_features=s)
    said = model.probabilities_by_group(X)
    assert said.shape == (3000, 4, 3)
    np.testing.assert_allclose(said.sum(2), 1)
    assert model.score(X, y, sensitive_features=s) > 0.85


def frame(n=1500):
    people = make_people(n)
    people["born"] = pd.to_datetime(people["born"], format="%d.%m.%Y").dt.year
    people["job"] = people["job"].astype("category")
    return people.drop(columns=["hired", "sex"]), people["hired"], people["sex"]


def test_a_frame_with_categories_and_gaps_goes_straight_in(tmp_path):
    X, y, s = frame()
    model = CooperativeBoosting(**FEW).fit(X, y, sensitive_features=s)
    assert model.score(X, y, sensitive_features=s) > 0.8
    assert model.categories_["job"].tolist() == ["<b>boss", "clerk", "cook"]
    new = X.head(3).assign(job=["clerk", "pilot", None], skill=[np.nan, 1.0, -1.0])
    assert np.isfinite(model.predict_proba(new, sensitive_features=s.head(3))).all()
    # Another order of the categories, or plain text, is the same.
    text = X.assign(job=X["job"].astype(str))
    np.testing.assert_array_equal(model.probabilities_by_group(X), model.probabilities_by_group(text))
    again = load(save(model, tmp_path / "trees.skops"))
    np.testing.assert_array_equal(model.probabilities_by_group(X), again.probabilities_by_group(X))
    found = audit(again, X, y, sensitive_features=s, pos_label="yes")
    flips = found.metrics.set_index("metric").loc["flip_rate", "value"]
    assert np.max(flips) < 0.05


def test_names_of_columns_need_not_be_text(tmp_path):
    X, y, s = frame()
    numbered = X.set_axis(range(X.shape[1]), axis=1)
    named = CooperativeBoosting(**FEW).fit(X, y, sensitive_features=s)
    model = CooperativeBoosting(**FEW).fit(numbered, y, sensitive_features=s)
    said = model.probabilities_by_group(numbered)
    np.testing.assert_array_equal(said, named.probabilities_by_group(X))
    again = load(save(model, tmp_path / "trees.skops"))
    np.testing.assert_array_equal(again.probabilities_by_group(numbered), said)
    assert list(numbered.columns) == list(range(X.shape[1]))
    found, wanted = (
        audit(*given, y, sensitive_features=s, pos_label="yes").metrics
        for given in ((model, numbered), (named, X))
    )
    assert found.equals(wanted)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(numbered[numbered.columns[::-1]], sensitive_features=s)


def test_labels_of_mixed_types_are_refused(world):
    X, y, s = world
    mixed = np.array([1 if label == "yes" else "no" for label in y], dtype=object)
    with pytest.raises(ValueError, match="Unknown label type"):
        CooperativeBoosting(**FEW).fit(X, mixed, sensitive_features=s)


def test_rewards_too_large_for_trees_are_an_error(world):
    X, y, s = world
    huge = CooperativeBoosting(reward=Correctness(gains=[[1e300, 0], [0, 1e300]]), **FEW)
    with pytest.raises(
        TrainingDivergedError, match="Training diverged in round 1: the reward or its gradient"
    ):
        huge.fit(X, y, sensitive_features=s)
    paid, chances = np.full(len(y), 1e300), np.full(len(y), 0.5)
    with pytest.raises(
        TrainingDivergedError, match="Training diverged in round 1: the reward or its gradient"
    ):
        CooperativeBoosting(**FEW).fit_logged(X, y, paid, chances, sensitive_features=s)


def test_a_fit_that_diverges_after_a_checkpoint_leaves_no_model(world, monkeypatch):
    X, y, s = world

    def boost(*_, checkpoint, **__):
        checkpoint(1, lambda: "policies so far", [(0.0, 0.0)])
        raise TrainingDivergedError("Training diverged in round 2")

    monkeypatch.setattr("evenhand.boosting.cooperative.boost", boost)
    model = CooperativeBoosting(**FEW)
    with pytest.raises(TrainingDivergedError):
        model.fit(X, y, sensitive_features=s, callback=lambda at, model: None)
    assert not hasattr(model, "policies_")


def test_sparse_and_dense_rows_say_the_same(world, fair):
    X, y, s = world
    X = np.where(np.abs(X) < 1, 0, X)
    dense = CooperativeBoosting(**FEW).fit(X, y, sensitive_features=s)
    loose = CooperativeBoosting(**FEW).fit(sparse.csr_array(X), y, sensitive_features=s)
    np.testing.assert_allclose(
        dense.probabilities_by_group(X), loose.probabilities_by_group(sparse.csr_array(X))
    )


def test_the_same_seed_gives_the_same_policies_in_any_number_of_threads(world):
    options = {"reward": Likelihood() + LogRatio() + Parity()}
    one, two = (fitted(world, **options, n_jobs=n).probabilities_by_group(world[0]) for n in (1, -1))
    np.testing.assert_array_equal(one, two)


def test_compress_and_reverse(world, fair):
    X = world[0]
    model = fitted(world, divergence_weight=0.0)
    said = model.probabilities_by_group(X)
    np.testing.assert_allclose(model.compress("m").predict_proba(X), said[:, 1])
    np.testing.assert_allclose(model.reversed().probabilities_by_group(X), said[:, ::-1])
    with pytest.raises(ValueError, match="Got group='w', but fit saw only"):
        model.compress("w")


def test_a_callback_sees_the_model_and_can_stop_it(world):
    X, y, s = world
    seen = []

    def watch(step, model):
        seen.append((step, model.score(X, y, sensitive_features=s)))
        return step >= 20

    model = CooperativeBoosting(**FEW).fit(X, y, sensitive_features=s, callback=watch)
    assert [step for step, _ in seen] == [10, 20]
    assert model.n_steps_ == 20
    assert model.history_["step"].tolist() == [10, 20]
    assert seen[1][1] == model.score(X, y, sensitive_features=s)


def test_the_accumulated_reward_counts_every_round(world):
    X, y, s = world
    often, seldom = (
        CooperativeBoosting(**FEW | {"checkpoint_every": every}).fit(X, y, sensitive_features=s).history_
        for every in (1, 10)
    )
    np.testing.assert_allclose(seldom["reward"], often["reward"][9::10])
    np.testing.assert_allclose(seldom["mean_reward"][0], often["mean_reward"][:10].mean())


def test_it_learns_from_a_log(world):
    X, y, s = world
    rng = np.random.default_rng(0)
    actions = rng.choice(["no", "yes"], len(y))
    rewards = (actions == y).astype(float)
    model = CooperativeBoosting(5.0, reward=LogRatio(), **FEW)
    model.fit_logged(X, actions, rewards, np.full(len(y), 0.5), sensitive_features=s)
    assert model.score(X, y, sensitive_features=s) > 0.8
    with pytest.raises(ValueError, match="Got no propensities"):
        model.fit_logged(X, actions, rewards, None, sensitive_features=s)


def test_rewards_of_any_size_stay_finite(world):
    X = world[0]
    huge = Correctness(gains=[[1e6, 0], [0, 1e6]])
    said = fitted(world, reward=huge).probabilities_by_group(X)
    assert np.isfinite(said).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rounds": 0}, "rounds"),
        ({"max_leaves": 1}, "max_leaves"),
        ({"max_leaves": 2**62}, "expected a whole number of at least 2 and at most 131,072"),
        ({"l2": -1}, "l2"),
        ({"n_jobs": 0}, "n_jobs"),
        ({"cooperation": "none"}, "cooperation"),
        ({"divergence_weight": -1}, "divergence_weight"),
    ],
)
def test_wrong_options(world, options, message):
    with pytest.raises(ValueError, match=message):
        fitted(world, **options)


def test_it_is_not_fitted_before_a_fit(world):
    with pytest.raises(NotFittedError):
        CooperativeBoosting().predict(world[0])


def test_metadata_is_routed(world):
    X, y, s = world
    with config_context(enable_metadata_routing=True):
        model = CooperativeBoosting(**FEW).set_fit_request(sensitive_features=True)
        model.set_score_request(sensitive_features=True)
        scores = cross_val_score(model, X, y, params={"sensitive_features": s}, cv=3)
    assert scores.min() > 0.8


def test_a_damaged_model_is_refused(tmp_path, fair):
    damaged = clone(fair)
    damaged.__dict__.update(fair.__dict__)
    trees = fair.policies_.trees
    feature = trees.feature.copy()
    feature[0] = 99
    damaged.policies_ = Boosted(type(trees)(**trees.__dict__ | {"feature": feature}), *_rest(fair.policies_))
    with pytest.raises(ValueError, match="damaged"):
        load(save(damaged, tmp_path / "damaged.skops"))


def _rest(policies):
    return policies.base, policies.spread


def test_one_group_and_two_labels_are_lightgbm_s_own_boosting():
    """The reward of one group is the likelihood alone: the same trees as LightGBM's binary objective grows."""
    X, y, _ = make_arrays(3000)
    options = {"rounds": 20, "learning_rate": 0.1, "max_leaves": 15, "min_leaf": 20, "l2": 0.0}
    ours = CooperativeBoosting(random_state=0, **options).fit(X, y).predict_proba(X)[:, 1]
    theirs = lightgbm.LGBMClassifier(
        n_estimators=20, learning_rate=0.1, num_leaves=15, min_child_samples=20, reg_lambda=0.0, verbose=-1
    ).fit(X.astype(np.float32), y)
    np.testing.assert_allclose(ours, theirs.predict_proba(X.astype(np.float32))[:, 1], atol=5e-3)


def test_an_ensemble_is_the_mean_of_its_logits(world, tmp_path):
    X, y, s = world
    options = {"bandits": CooperativeBandits(epochs=5), "boosting": CooperativeBoosting(rounds=20)}
    model = CooperativeEnsemble(random_state=0, **options).fit(X, y, sensitive_features=s)
    parts = [part.probabilities_by_group(X) for part in (model.bandits_, model.boosting_)]
    logits = sum(np.log(part[..., 1] / part[..., 0]) for part in parts) / 2
    np.testing.assert_allclose(model.probabilities_by_group(X)[..., 1], 1 / (1 + np.exp(-logits)))
    again = load(save(model, tmp_path / "both.skops"))
    np.testing.assert_array_equal(again.probabilities_by_group(X), model.probabilities_by_group(X))
    said = model.probabilities_by_group(X)
    np.testing.assert_allclose(model.compress("f").predict_proba(X), said[:, 0])
    np.testing.assert_allclose(model.reversed().probabilities_by_group(X), said[:, ::-1])
    assert outcome(model, X, y, s)[0] > 0.85


def test_an_ensemble_s_parity_is_that_of_what_both_decide(world):
    X, y, s = world
    test = make_arrays(6000, seed=7)
    reward = Likelihood() + LogRatio() + Parity()
    options = {"bandits": CooperativeBandits(epochs=5), "boosting": CooperativeBoosting(rounds=60)}
    model = CooperativeEnsemble(reward=reward, random_state=0, **options).fit(X, y, sensitive_features=s)
    assert outcome(model, *test)[1] < 0.06


def test_numbers_that_overflow_decide_nobody(world, tmp_path):
    model = fitted(world)
    trees = model.policies_.trees
    huge = replace(trees, leaf=np.full_like(trees.leaf, 1e308))
    model.policies_ = replace(model.policies_, trees=huge)
    with pytest.raises(ValueError, match="no finite probability in row 0"):
        model.probabilities_by_group(world[0])
    ensemble = CooperativeEnsemble(
        random_state=0, bandits=CooperativeBandits(steps=50), boosting=CooperativeBoosting(rounds=2)
    ).fit(*world[:2], sensitive_features=world[2])
    ensemble.share = np.nan
    with pytest.raises(ValueError, match="no finite probability"):
        ensemble.probabilities_by_group(world[0])
