"""Warnings of many fits: each comes once, and points to the line of the user who called."""

import warnings
from threading import Thread

import joblib
import numpy as np
import pytest

from emulated import pretend
from evenhand import CooperativeBandits, NoGroupsWarning, fit_many
from evenhand.bandits import base as learner
from evenhand.bandits.cautions import Caution, kept, warn
from evenhand.bandits.pieces import begin, meet
from evenhand.baselines import CollapseWarning
from factories import make_arrays


@pytest.mark.parametrize("how", [{"n_jobs": 1}, {"n_jobs": 2}, {"engine": "cuda"}], ids=str)
@pytest.mark.parametrize("select", [None, "delta"])
def test_what_all_fits_warn_of_is_said_once_and_points_to_the_caller(select, how, monkeypatch):
    pretend(monkeypatch)
    X, y, _ = make_arrays(100)
    grid = {"hidden": [3, 4], "reward": ["likelihood", "agreement"]}
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        fit_many(CooperativeBandits(steps=50), grid, X, y, cv=2, select=select, **how)
    assert [each.filename for each in told] == [__file__] * 2
    texts = [str(each.message) for each in told]
    assert sum("got no sensitive_features" in text for text in texts) == 1
    assert sum("uses the label" in text for text in texts) == 1


def test_a_warning_that_is_an_error_ends_all_fits():
    X, y, _ = make_arrays(100)
    models = {"random_state": list(range(20))}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(NoGroupsWarning):
            fit_many(CooperativeBandits(steps=50), models, X, y, n_jobs=2)


def test_models_that_collapse_on_pieces_are_named_to_the_caller(monkeypatch):
    monkeypatch.setattr(learner, "SHORT", 100)
    X, codes = np.ones((100, 1), np.float32), np.arange(100) % 2
    models = [CooperativeBandits(weight, epochs=1, random_state=0) for weight in (50, 100)]
    begin(models, 1, np.array(["no", "yes"]), np.array(["f", "m"], dtype=object))
    with joblib.parallel_config("loky"), pytest.warns(CollapseWarning) as told:  # threads all the same
        meet(models, X, codes, np.arange(100) // 2 % 2, np.array([50, 50]), n_jobs=2)
    assert [model.n_steps_ for model in models] == [100, 100]
    assert [each.filename for each in told] == [__file__] * 2


def test_a_thread_keeps_only_its_own_warnings():
    def elsewhere():
        other = Thread(target=warn, args=("elsewhere",))
        other.start()
        other.join()

    with kept() as mine:
        with kept() as inner:
            warn("inner")
        with pytest.warns(UserWarning, match="elsewhere"):
            elsewhere()
        warn("here", NoGroupsWarning)
    assert (inner, mine) == ([Caution("inner", UserWarning)], [Caution("here", NoGroupsWarning)])
