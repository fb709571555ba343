import dataclasses
import pickle
import re
import zipfile

import numba
import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn import config_context
from sklearn.compose import ColumnTransformer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler

from evenhand import (
    CooperativeBandits,
    Correctness,
    Custom,
    GradientBandit,
    LogRatio,
    Parity,
    load,
    save,
    tabular,
)
from evenhand.baselines import ALFR, LFR, LR, ExponentiatedGradientClassifier, OxonFairClassifier, Rawlsian
from evenhand.network import Network
from factories import make_arrays


@pytest.fixture(scope="module")
def data():
    return make_arrays(200)


def test_a_model_comes_back_and_goes_on(data, tmp_path):
    X, y, s = data
    reward = Correctness() + LogRatio() + Parity(bound=0.1)
    model = CooperativeBandits(reward=reward, optimizer="adam", random_state=0).fit(
        X, y, sensitive_features=s
    )
    again = load(save(model, tmp_path / "model.skops"))
    np.testing.assert_array_equal(again.probabilities_by_group(X), model.probabilities_by_group(X))
    assert again.reward == reward
    one, two = (m.partial_fit(X, y, sensitive_features=s).policies_.W1 for m in (model, again))
    np.testing.assert_array_equal(one, two)


def test_pipelines_and_single_bandits(data, tmp_path):
    X, y, _ = data
    pipeline = make_pipeline(StandardScaler(), GradientBandit(random_state=0)).fit(X, y)
    again = load(save(pipeline, tmp_path / "p.skops"))
    np.testing.assert_array_equal(again.predict_proba(X), pipeline.predict_proba(X))


def test_metadata_requests_travel_with_the_model(data, tmp_path):
    X, y, s = data
    with config_context(enable_metadata_routing=True):
        bandits = CooperativeBandits(steps=10).set_fit_request(sensitive_features=True)
        pipeline = make_pipeline(StandardScaler(), bandits).fit(X, y, sensitive_features=s)
        again = load(save(pipeline, tmp_path / "p.skops"))
        for model in (pipeline, again):  # the saved one keeps its requests too
            model.fit(X, y, sensitive_features=s)
            assert model[-1].groups_.tolist() == ["f", "m"]


def test_metadata_requests_of_fitted_parts_travel_too(data, tmp_path):
    X, y, s = data
    people = pd.DataFrame(X, columns=[f"x{at}" for at in range(X.shape[1])]).assign(sex=s)
    with config_context(enable_metadata_routing=True):
        bandits = CooperativeBandits(steps=10).set_fit_request(sensitive_features=True)
        model = tabular(bandits.set_predict_request(sensitive_features=True))
        model.fit(people, y, sensitive_features="sex")
        again = load(save(model, tmp_path / "t.skops"))
        for one in (model, again):
            assert one.estimator_._metadata_request.predict.requests == {"sensitive_features": True}
        np.testing.assert_array_equal(again.predict(people), model.predict(people))


@pytest.mark.parametrize("kind", [LR, Rawlsian, LFR, ALFR])
def test_baselines_too(data, tmp_path, kind):
    X, y, s = data
    model = kind().fit(X, y, sensitive_features=s)
    again = load(save(model, tmp_path / "b.skops"))
    np.testing.assert_array_equal(
        again.predict(X, sensitive_features=s), model.predict(X, sensitive_features=s)
    )


def test_thresholds_too(data, tmp_path):
    pytest.importorskip("oxonfair")
    test_baselines_too(data, tmp_path, OxonFairClassifier)


@pytest.mark.parametrize("part", ["policies", "moments", "averages", "rates", "numbers", "step"])
def test_arrays_that_do_not_fit_are_refused_before_any_loop(data, tmp_path, part):
    """A stranger's file may claim any shape; the loops check none, so the door does."""
    X, y, s = data
    reward = Correctness() + Parity()
    model = CooperativeBandits(
        epochs=1, reward=reward, standardize=False, random_state=0
    )  # keeps its moments
    training = model.fit(X, y, sensitive_features=s)._training
    if part == "policies":
        training.policies = training.policies._replace(W1=training.policies.W1[:, :1].copy())
    elif part == "moments":
        small = training.moments.gradient._replace(W1=np.zeros((2, 1, 1), np.float32))
        training.moments = training.moments._replace(gradient=small)
    elif part == "averages":  # empty ones beside a full gradient: a loop would write past their end
        empty = Network(
            *(np.zeros((3, *(0 for _ in held.shape[1:])), np.float32) for held in training.policies)
        )
        training.moments = training.moments._replace(first=empty, second=empty)
    elif part == "numbers":
        training.policies.W1[0, 0, 0] = np.nan
    elif part == "step":
        training.step = -1
    else:
        training.rates = training.rates._replace(dual=np.zeros((1, 1, 1, 1)))
    with pytest.raises(ValueError, match=r"m\.skops is not a model file, or is damaged"):
        load(save(model, tmp_path / "m.skops"))
    with pytest.raises(ValueError, match="The model is damaged"):
        model.partial_fit(X, y, sensitive_features=s)
    with pytest.raises(ValueError, match="The model is damaged"):
        model.probabilities_by_group(X)


def test_a_file_that_claims_more_than_it_has_asks_for_no_memory(data, tmp_path):
    X, y, s = data
    good = save(CooperativeBandits(steps=10).fit(X, y, sensitive_features=s), tmp_path / "good.skops")
    with pytest.raises(ValueError, match=r"holds [\d,]+ bytes, but expected at most 100; .*`max_bytes`"):
        load(good, max_bytes=100)
    with zipfile.ZipFile(good) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = next(name for name in members if name.endswith(".npy"))
    held = members[name]
    claim = re.sub(rb"'shape': \([^)]*\)", b"'shape': (99999999999,)", held)[: len(held)]
    with zipfile.ZipFile(tmp_path / "bomb.skops", "w") as archive:
        for each, content in members.items():
            archive.writestr(each, claim if each == name else content)
    with pytest.raises(ValueError, match=r"bomb\.skops is not a model file, or is damaged"):
        load(tmp_path / "bomb.skops")


def test_only_our_own_preprocessing_is_loaded(fitted, tmp_path):
    deployed = load(fitted.model)
    columns = ColumnTransformer([("x", MinMaxScaler(), [0])]).fit([[0.0], [1.0]])
    for foreign in (columns, StandardScaler().fit([[0.0], [1.0]])):
        changed = dataclasses.replace(deployed, preprocessor=foreign)
        with pytest.raises(ValueError, match="is not a model file, or is damaged"):
            load(save(changed, tmp_path / "m.skops"))


def test_foreign_requests_are_refused(data, tmp_path):
    X, y, _ = data
    model = GradientBandit(epochs=1).fit(X, y)
    for requests in ({"zzz": {"fit": {"a": True}}}, {"": {"nope": {"a": True}}}, {"": 3}):
        skops.io.dump({"evenhand": "0", "model": model, "requests": requests}, tmp_path / "m.skops")
        with pytest.raises(ValueError, match="is not a model file, or is damaged"):
            load(tmp_path / "m.skops")


class Foreign:
    pass


def test_foreign_types_are_refused(tmp_path):
    path = tmp_path / "foreign.skops"
    skops.io.dump({"evenhand": "0", "model": Foreign()}, path)
    with pytest.raises(ValueError, match=r"foreign\.skops holds the type '.*Foreign'"):
        load(path)


def test_a_function_of_our_own_package_is_refused_too(data, tmp_path):
    path = tmp_path / "function.skops"
    skops.io.dump({"evenhand": "0", "model": load}, path)
    with pytest.raises(ValueError, match=r"holds the type 'evenhand\.workflow\.persistence\.load'"):
        load(path)


def test_damaged_and_other_files_are_refused(data, tmp_path):
    X, y, s = data
    good = save(CooperativeBandits(epochs=1).fit(X, y, sensitive_features=s), tmp_path / "good.skops")
    content = good.read_bytes()
    for name, damaged in (("cut", content[: len(content) // 2]), ("empty", b""), ("text", b"hello" * 100)):
        path = tmp_path / name
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=f"{name} is not a model file, or is damaged"):
            load(path)
    with zipfile.ZipFile(tmp_path / "zip", "w") as archive:
        archive.writestr("readme.txt", "no model")
    with pytest.raises(ValueError, match="zip is not a model file"):
        load(tmp_path / "zip")
    (tmp_path / "pickle").write_bytes(pickle.dumps({"evenhand": 1}))
    with pytest.raises(ValueError, match="is not a model file"):
        load(tmp_path / "pickle")
    skops.io.dump([1, 2], tmp_path / "list")
    with pytest.raises(ValueError, match="skops file of something else"):
        load(tmp_path / "list")
    with pytest.raises(FileNotFoundError, match="there is no such file"):
        load(tmp_path / "missing")


def test_a_flipped_byte_is_never_a_silent_change(data, tmp_path):
    X, y, s = data
    good = save(CooperativeBandits(epochs=1).fit(X, y, sensitive_features=s), tmp_path / "good.skops")
    content = bytearray(good.read_bytes())
    with zipfile.ZipFile(good) as archive:
        at = next(i.header_offset for i in archive.infolist() if i.filename.endswith(".npy")) + 200
    content[at] ^= 0xFF
    bad = tmp_path / "bad.skops"
    bad.write_bytes(content)
    with pytest.raises(ValueError, match="damaged"):
        load(bad)


def own(action, label, group, policies, rates):
    return 0.0


def not_saved(model, folder, match):
    """Check that a model is refused, that nothing new is left on disk, and what was there before is."""
    path = folder / "m.skops"
    path.write_text("the model before")
    with pytest.raises(ValueError, match=match):
        save(model, path)
    assert path.read_text() == "the model before"
    assert list(folder.iterdir()) == [path]


@pytest.mark.parametrize("function", [own, numba.njit(own)], ids=["plain", "compiled"])
def test_a_function_of_the_users_is_not_saved(data, tmp_path, function):
    X, y, _ = data
    bandit = GradientBandit(Correctness() + Custom(function), epochs=1)
    not_saved(bandit.fit(X, y), tmp_path, r"holds no code.*set_params\(reward=None\)")
    pipeline = make_pipeline(StandardScaler(), bandit).fit(X, y)
    not_saved(pipeline, tmp_path, r"holds no code.*set_params\(gradientbandit__reward=None\)")
    load(save(pipeline.set_params(gradientbandit__reward=None), tmp_path / "m.skops")).predict(X)


@pytest.mark.parametrize("function", [own, numba.njit(own)], ids=["plain", "compiled"])
def test_of_a_search_the_best_model_is_saved(data, tmp_path, function):
    X, y, _ = data
    rewards = [None, Correctness() + Custom(function)]
    for first, grid in ((None, {"hidden": [2]}), (rewards[1], {"hidden": [2]}), (None, {"reward": rewards})):
        search = GridSearchCV(GradientBandit(first, steps=10), grid, cv=2).fit(X, y)
        not_saved(search, tmp_path, "Got a model, GridSearchCV, that holds .* save the best_estimator_")
    best = search.best_estimator_.set_params(reward=None)
    np.testing.assert_array_equal(load(save(best, tmp_path / "m.skops")).predict(X), best.predict(X))


class Mine(StandardScaler):
    pass


def doubled(X):
    return 2 * X


def test_what_could_not_be_loaded_is_not_saved(data, tmp_path):
    X, y, s = data
    days = pd.Series(np.where(s == "f", pd.Timestamp("2020-01-01"), pd.Timestamp("2021-01-01")))
    by_day = CooperativeBandits(steps=10).fit(X, y, sensitive_features=days)
    not_saved(by_day, tmp_path, r"the type 'pandas.*Timestamp'.* as text or numbers")
    for step, name in ((Mine(), "Mine"), (FunctionTransformer(doubled), "doubled")):
        pipeline = make_pipeline(step, GradientBandit(steps=10)).fit(X, y)
        not_saved(pipeline, tmp_path, f"Got a model, Pipeline, that holds the type '.*{name}'")


def test_a_mixture_of_fairlearns_is_not_saved(data, tmp_path):
    pytest.importorskip("fairlearn")
    X, y, s = data
    mixture = ExponentiatedGradientClassifier(max_iter=3).fit(X, y, sensitive_features=s)
    not_saved(
        mixture, tmp_path, "ExponentiatedGradientClassifier, that holds an object that skops can't write"
    )


def test_a_folder_that_is_not_there_is_said_as_it_is(data, tmp_path):
    X, y, _ = data
    with pytest.raises(FileNotFoundError, match=r"there is no folder '.*missing'"):
        save(GradientBandit(steps=10).fit(X, y), tmp_path / "missing" / "m.skops")


def test_a_failed_save_leaves_the_model_before_and_a_users_own_files(data, tmp_path):
    X, y, s = data
    path, own = tmp_path / "m.skops", tmp_path / "m.skops.partial"
    own.write_text("mine")
    save(CooperativeBandits(steps=10).fit(X, y, sensitive_features=s), path)
    before = path.read_bytes()
    foreign = make_pipeline(FunctionTransformer(np.abs), CooperativeBandits(steps=10).fit(X, y))
    foreign.steps[0][1].func = lambda rows: rows
    with pytest.raises(ValueError, match="a model file holds no code"):
        save(foreign, path)
    assert path.read_bytes() == before
    assert own.read_text() == "mine"
    assert {entry.name for entry in tmp_path.iterdir()} == {path.name, own.name}


@pytest.mark.parametrize("column", ["number", "category"])
def test_a_table_of_one_kind_of_column_is_loaded_again(tmp_path, column):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.normal(size=60) if column == "number" else rng.choice(["a", "b"], 60)})
    y, s = rng.choice(["no", "yes"], 60), rng.choice(["f", "m"], 60)
    model = tabular(CooperativeBandits(steps=50, random_state=0)).fit(X, y, sensitive_features=s)
    again = load(save(model, tmp_path / "m.skops"))
    np.testing.assert_array_equal(
        again.predict(X, sensitive_features=s), model.predict(X, sensitive_features=s)
    )


def test_a_damaged_reward_is_refused(data, tmp_path):
    X, y, s = data
    model = CooperativeBandits(steps=50, random_state=0, reward=Correctness() + LogRatio())
    model.fit(X, y, sensitive_features=s)
    del model.reward.__dict__["terms"]
    with pytest.raises(ValueError, match="damaged"):
        load(save(model, tmp_path / "model.skops"))


@pytest.mark.parametrize("history", [{}, None, {"step": "x"}, {"step": [], "reward": [float("nan")]}])
def test_a_damaged_history_is_refused(data, history, tmp_path):
    X, y, s = data
    model = CooperativeBandits(steps=50, random_state=0).fit(X, y, sensitive_features=s)
    model._training.history = history
    with pytest.raises(ValueError, match="damaged"):
        load(save(model, tmp_path / "model.skops"))
