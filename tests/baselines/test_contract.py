"""What all baselines promise alike: scikit-learn's contract, groups, labels, sparse rows, checkpoints."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.utils.estimator_checks import parametrize_with_checks

from evenhand.baselines import (
    ALFR,
    LFR,
    LR,
    ExponentiatedGradientClassifier,
    OxonFairClassifier,
    Rawlsian,
    ThresholdOptimizerClassifier,
)

SEES_GROUP = [
    LR(aware=True),
    Rawlsian(random_state=0),
    LFR(random_state=0),
    ThresholdOptimizerClassifier(),
]
if find_spec("oxonfair"):
    SEES_GROUP.append(OxonFairClassifier())
IS_BLIND = [
    LR(),
    LFR(distance="euclidean", random_state=0),
    ALFR(random_state=0),
    ExponentiatedGradientClassifier(max_iter=2),
]
BASELINES = SEES_GROUP + IS_BLIND


def named(model):
    return repr(model).replace("random_state=0", "").replace("(, ", "(").rstrip(", )") + ")"


# scikit-learn's checks feed labels drawn at random, or four people: there a collapse is the right answer
@pytest.mark.filterwarnings("ignore::evenhand.baselines.CollapseWarning")
@parametrize_with_checks(BASELINES)
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def few(planted):
    X, y, s = planted
    return X[:400], y[:400], s[:400]


@pytest.fixture(params=BASELINES, ids=named)
def model(request):
    return clone(request.param)


def test_a_person_is_given_what_their_own_group_is(model, few):
    X, y, s = few
    model.fit(X, y, sensitive_features=s)
    by_group = model.probabilities_by_group(X)
    own = model.predict_proba(X, sensitive_features=s)
    assert by_group.shape == (400, 2, 2)
    assert model.groups_.tolist() == ["f", "m"]
    assert np.allclose(by_group[np.arange(400), (s == "m").astype(int)], own)
    assert np.allclose(own.sum(axis=1), 1)
    assert (model.predict(X, sensitive_features=s) == np.where(own[:, 1] > own[:, 0], "yes", "no")).all()


@pytest.mark.parametrize("model", SEES_GROUP, ids=named)
def test_flips_where_the_method_sees_the_group(model, few):
    X, y, s = few
    fitted = clone(model).fit(X, y, sensitive_features=s)
    decisions = fitted.probabilities_by_group(X).argmax(axis=2)
    assert (decisions[:, 0] != decisions[:, 1]).mean() > 0.1
    with pytest.raises(ValueError, match=r"Got no sensitive_features.*fit saw 'f', 'm'"):
        fitted.predict(X)
    with pytest.raises(ValueError, match="Got group 'x' in sensitive_features, but fit saw only 'f', 'm'"):
        fitted.predict(X[:1], sensitive_features=["x"])


@pytest.mark.parametrize("model", IS_BLIND, ids=named)
def test_never_flips_where_the_method_is_blind(model, few):
    X, y, s = few
    fitted = clone(model).fit(X, y, sensitive_features=s)
    by_group = fitted.probabilities_by_group(X)
    assert (by_group[:, 0] == by_group[:, 1]).all()
    assert (fitted.predict(X) == fitted.predict(X, sensitive_features=s)).all()


def test_sparse_rows_and_frames_change_nothing(model, few):
    X, y, s = few
    X = np.where(X > 0.5, X, 0)
    if isinstance(model, LFR):
        model.set_params(max_iter=10)  # rounding differs, and in 200 iterations would grow
    dense = clone(model).fit(X, y, sensitive_features=s).probabilities_by_group(X)
    for other in (sparse.csr_array(X), sparse.csc_matrix(X), pd.DataFrame(X, columns=list("abc"))):
        fitted = clone(model).fit(other, y, sensitive_features=pd.Series(s))
        assert np.allclose(fitted.probabilities_by_group(other), dense, atol=1e-4)


def test_same_seed_same_model(model, few):
    X, y, s = few
    first = clone(model).fit(X, y, sensitive_features=s).probabilities_by_group(X)
    again = clone(model).fit(X, y, sensitive_features=s).probabilities_by_group(X)
    assert (first == again).all()


def test_several_sensitive_columns_make_their_combinations(model, few):
    X, y, s = few
    both = {"sex": s, "old": (X[:, 2] > 0).astype(int)}
    model.fit(X, y, sensitive_features=both)
    assert model.groups_.tolist() == ["sex=f, old=0", "sex=f, old=1", "sex=m, old=0", "sex=m, old=1"]
    assert model.probabilities_by_group(X).shape == (400, 4, 2)
    assert (model.predict(X, sensitive_features=both) == y).mean() > 0.55


def test_the_callback_comes_with_a_usable_model_and_at_the_end(model, few):
    X, y, s = few
    if hasattr(model, "checkpoint_every"):
        model.set_params(checkpoint_every=30)
    seen = []

    def callback(step, fitted):
        assert fitted is model
        seen.append((step, fitted.predict(X, sensitive_features=s)))

    model.fit(X, y, sensitive_features=s, callback=callback)
    steps = [step for step, _ in seen]
    expected = list(range(30, model.n_steps_ + 1, 30)) if hasattr(model, "checkpoint_every") else []
    assert steps == sorted({*expected, model.n_steps_})
    assert (seen[-1][1] == model.predict(X, sensitive_features=s)).all()


def test_a_callback_that_only_watches_changes_nothing(model, few):
    X, y, s = few
    alone = clone(model).fit(X, y, sensitive_features=s).probabilities_by_group(X)
    watched = clone(model).fit(X, y, sensitive_features=s, callback=lambda step, fitted: None)
    assert (watched.probabilities_by_group(X) == alone).all()


@pytest.mark.parametrize("model", [m for m in BASELINES if hasattr(m, "checkpoint_every")], ids=named)
@pytest.mark.filterwarnings("ignore::evenhand.baselines.CollapseWarning")
def test_the_callback_stops_the_training(model, few):
    X, y, s = few
    calls = []
    model = clone(model).set_params(checkpoint_every=7)
    model.fit(X, y, sensitive_features=s, callback=lambda step, fitted: calls.append(step) or step == 14)
    assert calls == [7, 14]
    assert model.n_steps_ == 14
    assert model.predict(X, sensitive_features=s).shape == (400,)


def test_metadata_routing_carries_the_groups(model, few):
    X, y, s = few
    with sklearn.config_context(enable_metadata_routing=True):
        routed = model.set_fit_request(sensitive_features=True).set_score_request(sensitive_features=True)
        search = GridSearchCV(routed, {}, cv=KFold(2)).fit(X, y, sensitive_features=s)
    assert search.best_estimator_.groups_.tolist() == ["f", "m"]
    by_hand = [
        clone(model).fit(X[a], y[a], sensitive_features=s[a]).score(X[b], y[b], sensitive_features=s[b])
        for a, b in KFold(2).split(X)
    ]
    assert search.cv_results_["mean_test_score"][0] == pytest.approx(np.mean(by_hand))


def test_bad_input_says_what_came(model, few):
    X, y, s = few
    with pytest.raises(
        ValueError, match="sensitive_features for 3 people, but expected one value for each of 400"
    ):
        model.fit(X, y, sensitive_features=["a", "b", "c"])
    with pytest.raises(ValueError, match="1 missing values"):
        model.fit(X, y, sensitive_features=[None, *s[1:]])
    with pytest.raises(ValueError, match="Got 1 class in y, 'yes', but expected at least 2"):
        model.fit(X, ["yes"] * 400, sensitive_features=s)
    with pytest.raises(ValueError, match="contains NaN"):
        model.fit(np.full_like(X, np.nan), y, sensitive_features=s)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.fit(X, y[:5], sensitive_features=s)


@pytest.mark.parametrize("model", [m for m in BASELINES if m._two_labels_only], ids=named)
def test_three_labels_where_the_method_knows_two(model, few):
    X, _, s = few
    with pytest.raises(ValueError, match="got 3 labels, but .* expected 2"):
        clone(model).fit(X, np.arange(400) % 3, sensitive_features=s)


@pytest.mark.parametrize("model", [LR(), LR(aware=True), ALFR(random_state=0, epochs=60)], ids=named)
def test_three_labels_where_the_method_knows_more(model, few):
    X, _, s = few
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    fitted = clone(model).fit(X, y, sensitive_features=s)
    assert fitted.probabilities_by_group(X).shape == (400, 2, 3)
    assert (fitted.predict(X, sensitive_features=s) == y).mean() > 0.8


BAD_PARAMETERS = [
    (Rawlsian, "regularization", 0, "Got regularization=0, but expected a finite number above 0"),
    (Rawlsian, "delta", 1.5, "Got delta=1.5, but expected a finite number above 0 and at most 1"),
    (Rawlsian, "n_rounds", 0, "Got n_rounds=0, but expected a whole number of at least 1"),
    (Rawlsian, "checkpoint_every", 0.5, "Got checkpoint_every=0.5"),
    (LFR, "n_prototypes", 0, "Got n_prototypes=0"),
    (LFR, "parity_weight", -1, "Got parity_weight=-1, but expected a finite number of at least 0"),
    (LFR, "distance", "euclid", "Did you mean 'euclidean'?"),
    (LFR, "max_iter", "10", "Got max_iter='10'"),
    (ALFR, "n_hidden", 0, "Got n_hidden=0"),
    (ALFR, "adversary_weight", float("nan"), "Got adversary_weight=nan"),
    (ALFR, "adversary_steps", 0, "Got adversary_steps=0"),
    (ALFR, "learning_rate", 0, "Got learning_rate=0"),
    (ALFR, "epochs", -3, "Got epochs=-3"),
    (ALFR, "batch_size", 0, "Got batch_size=0"),
    (ExponentiatedGradientClassifier, "difference_bound", 0, "Got difference_bound=0"),
    (OxonFairClassifier, "difference_bound", -0.1, "Got difference_bound=-0.1"),
]


@pytest.mark.parametrize(("kind", "name", "value", "message"), BAD_PARAMETERS)
def test_bad_parameters_say_what_was_wanted(kind, name, value, message, few):
    X, y, s = few
    with pytest.raises(ValueError, match=message.replace("?", r"\?")):
        kind(**{name: value}).fit(X, y, sensitive_features=s)


@pytest.mark.parametrize("model", SEES_GROUP, ids=named)
def test_sensitive_columns_are_known_by_their_names(model, few):
    X, y, s = few
    crossed = pd.DataFrame({"sex": (s == "m").astype(int), "old": (X[:, 2] > 0).astype(int)})
    fitted = clone(model).fit(X, y, sensitive_features=crossed)
    told = fitted.predict_proba(X, sensitive_features=crossed)
    assert (fitted.predict_proba(X, sensitive_features=crossed[["old", "sex"]]) == told).all()


def test_a_fit_that_fails_leaves_no_model(model, few):
    X, y, s = few
    fitted = clone(model).fit(X, y, sensitive_features=s)
    with pytest.raises(ValueError, match="Got sensitive_features for 3 people"):
        fitted.fit(X, np.where(y == "yes", "good", "bad"), sensitive_features=s[:3])
    with pytest.raises(NotFittedError):
        fitted.predict(X, sensitive_features=s)
