import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from evenhand import Correctness, Custom, GradientBandit, LogRatio, TrainingDivergedError
from factories import NOT_EXACT


@pytest.mark.filterwarnings("ignore::evenhand.baselines.CollapseWarning")  # some labels are noise
@parametrize_with_checks([GradientBandit()], expected_failed_checks=lambda _: NOT_EXACT)
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def test_it_learns_as_well_as_logistic_regression(cancer):
    X, y = cancer
    theirs = LogisticRegression().fit(X[:400], y[:400]).score(X[400:], y[400:])
    assert GradientBandit(random_state=0).fit(X[:400], y[:400]).score(X[400:], y[400:]) > theirs - 0.03


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
@pytest.mark.parametrize("estimator", ["expected", "sampled"])
def test_every_way_of_learning_learns(cancer, optimizer, estimator):
    X, y = cancer
    rate = 0.02 if optimizer == "sgd" else 0.003
    bandit = GradientBandit(
        Correctness(), optimizer=optimizer, estimator=estimator, learning_rate=rate, batch_size=4, epochs=40
    )
    assert bandit.set_params(random_state=0).fit(X, y).score(X, y) > 0.93


def test_same_seed_same_policy_whatever_the_container(cancer):
    X, y = cancer
    X = np.where(np.abs(X) < 1, 0, X)  # sparse enough
    fitted = [
        # What is sparse would be scaled without centring.
        GradientBandit(standardize=False, random_state=3, epochs=2).fit(table, y).policies_.W1
        for table in (X, X.astype(np.float32), sparse.csr_matrix(X), pd.DataFrame(X), pl.DataFrame(X))
    ]
    for other in fitted[1:]:
        np.testing.assert_array_equal(fitted[0], other)
    assert (fitted[0] != GradientBandit(random_state=4, epochs=2).fit(X, y).policies_.W1).any()


def test_string_labels_and_a_stochastic_policy():
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    bandit = GradientBandit(random_state=0).fit(X, names)
    assert set(bandit.predict(X)) <= set(names)
    actions, propensities = bandit.sample_actions(np.repeat(X[60:61], 5000, axis=0), random_state=0)
    shares = np.array([(actions == name).mean() for name in bandit.classes_])
    np.testing.assert_allclose(shares, bandit.predict_proba(X[60:61])[0], atol=0.03)
    assert propensities.min() > 0


def bandit_world(n=6000, seed=0):
    """Three actions; the best one is the sign pattern of the context. Logged by an uneven, known policy."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    best = (X[:, 0] > 0).astype(int) + (X[:, 0] > 0) * (X[:, 1] > 0)
    logging = np.array([0.5, 0.3, 0.2])
    actions = rng.choice(3, size=n, p=logging)
    rewards = np.where(actions == best, 1.0, 0.2) + 0.1 * rng.normal(size=n)
    return X, actions, rewards, logging[actions], best


@pytest.mark.parametrize("estimator", ["expected", "sampled"])
def test_it_learns_from_a_log(estimator):
    X, actions, rewards, propensities, best = bandit_world()
    bandit = GradientBandit(estimator=estimator, random_state=0).fit_logged(X, actions, rewards, propensities)
    assert (bandit.predict(X) == best).mean() > 0.85


def test_it_learns_online_from_its_own_actions():
    rng = np.random.default_rng(0)
    bandit = GradientBandit(random_state=0, learning_rate=0.05)
    X, _, _, _, best = bandit_world(20_000)
    earned = []
    for batch in np.split(np.arange(len(X)), 100):
        if not earned:
            actions, propensities = rng.choice(3, size=len(batch)), np.full(len(batch), 1 / 3)
        else:
            actions, propensities = bandit.sample_actions(X[batch], random_state=rng.integers(2**31))
        rewards = (actions == best[batch]).astype(float)
        bandit.update(X[batch], actions, rewards, propensities, classes=[0, 1, 2])
        earned.append(rewards.mean())
    assert earned[0] < 0.45
    assert np.mean(earned[-10:]) > 0.9


def test_update_without_propensities_takes_its_own():
    X, actions, rewards, _, _ = bandit_world(200)
    one = GradientBandit(random_state=0).update(X, actions, rewards, np.full(200, 1 / 3), classes=[0, 1, 2])
    two = GradientBandit(random_state=0).update(X, actions, rewards, np.full(200, 1 / 3), classes=[0, 1, 2])
    own = one.predict_proba(X)[np.arange(200), actions]
    np.testing.assert_array_equal(
        one.update(X, actions, rewards).policies_.W1, two.update(X, actions, rewards, own).policies_.W1
    )


@pytest.mark.parametrize("method", ["doubly_robust", "inverse_propensity", "self_normalised"])
def test_value_estimates_find_the_truth(method):
    X, actions, rewards, propensities, best = bandit_world()
    bandit = GradientBandit(random_state=0, epochs=5).fit(X[:2000], best[:2000])
    policy = bandit.predict_proba(X)
    truth = (0.2 + 0.8 * policy[np.arange(len(X)), best]).mean()
    estimate = bandit.estimate_value(X, actions, rewards, propensities, method=method)
    assert estimate.value == pytest.approx(truth, abs=4 * estimate.standard_error)
    # A linear model of these rewards is wrong; alone it shows, and doubly robust estimation mends it.
    direct = bandit.estimate_value(X, actions, rewards, propensities, method="direct")
    assert abs(direct.value - truth) > 2 * abs(estimate.value - truth)


def test_partial_fit_goes_on():
    X, y = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))
    bandit = GradientBandit(random_state=0)
    for _ in range(20):
        for part in np.array_split(order, 3):
            bandit.partial_fit(X[part], y[part], classes=[0, 1, 2])
    assert bandit.n_steps_ == 20 * len(X)
    assert bandit.score(X, y) > 0.9


def test_later_calls_bring_no_new_classes():
    X, y = load_iris(return_X_y=True)
    bandit = GradientBandit(epochs=1, random_state=0).fit(X, y).partial_fit(X, y, classes=[2, 1, 0])
    for learn in (bandit.partial_fit, lambda X, y, classes: bandit.update(X, y, y, classes=classes)):
        with pytest.raises(ValueError, match=r"Got classes=\[0, 1, 2, 3\], but expected .* \[0, 1, 2\]"):
            learn(X, y, classes=[0, 1, 2, 3])
    with pytest.raises(ValueError, match="Got no classes in the first call"):
        GradientBandit().partial_fit(X, y)


@pytest.mark.parametrize("way", ["fit", "fit_logged"])
def test_a_fit_that_fails_leaves_no_old_policy_under_new_labels(way):
    X, y = load_iris(return_X_y=True)
    bandit = GradientBandit(epochs=1, random_state=0).fit(X, y).set_params(hidden=0)
    log = (np.ones(len(X)), np.ones(len(X))) if way == "fit_logged" else ()
    with pytest.raises(ValueError, match="Got hidden=0"):
        getattr(bandit, way)(X, np.array(["a", "b", "c"])[y], *log)
    with pytest.raises(NotFittedError):
        bandit.predict(X)


def test_callback_sees_a_usable_model_and_can_stop(cancer):
    X, y = cancer
    seen = []

    def callback(step, model):
        seen.append((step, model.score(X, y)))
        return step >= 300

    bandit = GradientBandit(checkpoint_every=100, random_state=0).fit(X, y, callback=callback)
    assert [step for step, _ in seen] == [100, 200, 300]
    assert bandit.n_steps_ == 300
    watched = GradientBandit(checkpoint_every=100, random_state=0, batch_size=32, optimizer="adam", epochs=1)
    alone = GradientBandit(checkpoint_every=100, random_state=0, batch_size=32, optimizer="adam", epochs=1)
    watched.fit(X, y, callback=lambda step, model: None)
    np.testing.assert_array_equal(watched.policies_.W1, alone.fit(X, y).policies_.W1)


def test_grid_search_and_pipeline(cancer):
    X, y = cancer
    pipeline = make_pipeline(StandardScaler(), GradientBandit(random_state=0))
    search = GridSearchCV(pipeline, {"gradientbandit__hidden": [2, 10]}, cv=2).fit(X, y)
    assert search.best_score_ > 0.9


def test_history_accumulates(cancer):
    X, y = cancer
    bandit = GradientBandit("correctness", checkpoint_every=200, epochs=3, random_state=0).fit(X, y)
    history = bandit.history_
    assert history["step"].tolist() == [*range(200, 3 * len(X), 200), 3 * len(X)]
    widths = np.diff(history["step"], prepend=0)
    np.testing.assert_allclose(np.cumsum(history["mean_reward"] * widths), history["reward"])


def test_learning_without_end_keeps_the_end_of_its_history():
    X, actions, rewards, propensities, _ = bandit_world(700)
    bandit = GradientBandit(checkpoint_every=1, random_state=0)
    for _ in range(2):
        bandit.update(X, actions, rewards, propensities, classes=[0, 1, 2])
    assert bandit.history_["step"].tolist() == [*range(401, 1401)]
    assert bandit.history_["reward"][0] != bandit.history_["mean_reward"][0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hidden": 0}, "Got hidden=0, but expected a whole number of at least 1"),
        ({"learning_rate": -0.1}, "Got learning_rate=-0.1, but expected a finite number above 0"),
        ({"estimator": "expcted"}, "Did you mean 'expected'"),
        ({"optimizer": "rmsprop"}, "expected one of 'sgd', 'adam'"),
        ({"schedule": "step"}, "expected one of 'constant'"),
        ({"order": "random"}, "expected one of 'shuffled'"),
        ({"batch_size": 2.5}, "Got batch_size=2.5"),
        ({"steps": 0}, "Got steps=0"),
        ({"epochs": 1e30}, "Got epochs=1e\\+30, but expected a finite number above 0 and at most 1e\\+09"),
        ({"reward": "correctnes"}, "Did you mean 'correctness'"),
        ({"reward": 3}, "expected reward terms joined by"),
        ({"reward": Correctness(gains=[[1, 0]])}, "expected 2 × 2"),
        ({"reward": LogRatio(weight=-1)}, "Got weight=-1"),
    ],
)
def test_unknown_options_are_named(cancer, options, message):
    with pytest.raises(ValueError, match=message):
        GradientBandit(**options).fit(*cancer)


def test_a_reward_function_numba_refuses_is_named(cancer):
    def reads_a_file(action, label, group, policies, rates):
        return open("x").read()

    with pytest.raises(ValueError, match="can't compile the reward function 'reads_a_file'"):
        GradientBandit(Correctness() + Custom(reads_a_file)).fit(*cancer)


def test_diverging_training_names_the_remedy(cancer):
    X, y = cancer
    with pytest.raises(TrainingDivergedError, match=r"Lower learning_rate \(now 1e\+30\)"):
        GradientBandit(learning_rate=1e30, random_state=0).fit(X, y)


def test_a_reward_of_nan_is_no_silent_nan(cancer):
    def broken(action, label, group, policies, rates):
        return np.nan

    def later(action, label, group, policies, rates):
        return np.nan if rates[group, -1, action] == 1 else 0.0

    def beyond(action, label, group, policies, rates):
        return policies[group + 5, action]

    with pytest.raises(ValueError, match="'broken', for action=0.* returned nan"):
        GradientBandit(Correctness() + Custom(broken)).fit(*cancer)
    with pytest.raises(ValueError, match="'beyond', for action=0.* raised IndexError"):
        GradientBandit(Correctness() + Custom(beyond)).fit(*cancer)
    with pytest.raises(TrainingDivergedError, match="step 1:.*check that 'later' returns finite rewards"):
        GradientBandit(Correctness() + Custom(later)).fit(*cancer)


def test_a_reward_that_never_looks_at_labels_warns(cancer):
    with pytest.warns(UserWarning, match="nothing is learned from y"):
        GradientBandit(reward="kl", epochs=1, random_state=0).fit(*cancer)


def test_columns_are_named_in_errors(cancer):
    frame = pd.DataFrame({"age": [1.0, np.nan, 3.0], "wage": [1.0, 2.0, np.inf], "job": ["a", "b", "c"]})
    y = [0, 1, 0]
    with pytest.raises(ValueError, match=r"NaN in column 'age' \(1 person\)"):
        GradientBandit().fit(frame[["age"]], y)
    with pytest.raises(ValueError, match="infinity in column 'wage'"):
        GradientBandit().fit(frame[["wage"]], y)
    with pytest.raises(ValueError, match="Column 'job' holds .* values such as 'a'"):
        GradientBandit().fit(frame[["job"]], y)
    with pytest.raises(ValueError, match="two columns named 'wage'"):
        GradientBandit().fit(frame[["wage", "wage"]].fillna(0), y)


def test_bad_logs_are_named():
    X, actions, rewards, propensities, _ = bandit_world(50)
    bandit = GradientBandit()
    with pytest.raises(ValueError, match=r"Got rewards of shape \(49,\), but expected one for each of 50"):
        bandit.fit_logged(X, actions, rewards[:49], propensities)
    with pytest.raises(ValueError, match=r"Got a propensity of .*0\.0"):
        bandit.fit_logged(X, actions, rewards, np.where(np.arange(50) == 3, 0, propensities))
    with pytest.raises(ValueError, match="Got 1 rewards that are NaN"):
        bandit.fit_logged(X, actions, np.where(np.arange(50) == 3, np.nan, rewards), propensities)
    bandit.fit_logged(X, actions, rewards, propensities)
    with pytest.raises(ValueError, match="Got action 7, but fit saw only the classes 0, 1, 2"):
        bandit.update(X, np.full(50, 7), rewards, propensities)
    with pytest.raises(ValueError, match="has no labels"):
        GradientBandit("correctness + equal_opportunity").fit_logged(X, actions, rewards, propensities)
    with pytest.raises(ValueError, match="every class there will ever be"):
        GradientBandit().update(X, actions, rewards, propensities)


def test_read_only_memory_is_read_in_place(cancer, tmp_path):
    X, y = cancer
    X = X.astype(np.float32)
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    np.testing.assert_array_equal(
        GradientBandit(random_state=0, epochs=1).fit(mapped, y).policies_.W1,
        GradientBandit(random_state=0, epochs=1).fit(X, y).policies_.W1,
    )
