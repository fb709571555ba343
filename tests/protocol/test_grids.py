from __future__ import annotations

import pytest
from sklearn.tree import DecisionTreeClassifier

from evenhand.protocol.grids import CLOSE, CONTROL, Method, authors_methods, grid, our_methods, paper_methods
from evenhand.rewards import as_reward


def values(name: str, parameter: str, *, full: bool = True) -> list[object]:
    method = {m.name: m for m in [*paper_methods(full=full), *our_methods(full=full)]}[name]
    return sorted({point[parameter] for point in method.grid})


def test_the_full_grids_are_the_paper_s() -> None:
    tens = [10, 20, 30, 40]
    weights = [0.1, 0.5, 1, 5, 10]
    assert values("LR", "C") == [0.3, 0.6, 1.0]
    assert values("Rawlsian", "regularization") == [1, 3, 9]
    assert values("Rawlsian", "delta") == [0.3, 0.5, 0.9]
    assert values("LFR", "classifier_weight") == values("LFR", "parity_weight") == weights
    assert values("LFR", "n_prototypes") == [10, 20, 30]
    assert values("ALFR", "n_representation") == values("ALFR", "n_hidden") == tens
    assert values("CCB", "hidden") == tens
    assert values("CCB", "divergence_weight") == list(range(10, 101, 10))
    sizes = {"LR": 3, "Rawlsian": 9, "LFR": 75, "ALFR": 16, "CCB": 40}
    assert {method.name: len(method.grid) for method in paper_methods(full=True)} == sizes


def test_fixed_parameters_are_the_paper_s() -> None:
    made = {method.name: method.make(7, **method.points(1000)[0]) for method in paper_methods(full=True)}
    assert (made["LR"].aware, made["LR"].max_iter) == (True, 500)
    assert made["LFR"].reconstruction_weight == 0.01
    assert (made["ALFR"].batch_size, made["ALFR"].learning_rate) == (32, 1e-3)
    ccb = made["CCB"]
    assert (ccb.order, ccb.optimizer, ccb.learning_rate, ccb.epochs) == ("file", "adam", 1e-4, 2)
    assert (ccb.cooperation, ccb.estimator, ccb.checkpoint_every) == ("acting", "sampled", 1000)
    assert {getattr(model, "random_state", 7) for model in made.values()} == {7}


def test_the_authors_baselines_have_the_paper_s_grids_and_their_own_way() -> None:
    methods = {method.name: method for method in authors_methods(full=True)}
    for name in ("Rawlsian", "LFR", "ALFR"):
        theirs, model = methods[f"{name} (authors)"], paper_methods(full=True)
        grid_of = {method.name: method.grid for method in model}[name]
        assert [{**point, "variant": "authors"} for point in grid_of] == list(theirs.grid)
        assert theirs.make(7, **theirs.points(1000)[0]).variant == "authors"
    rawlsian = methods["Rawlsian (authors)"]
    assert not rawlsian.make(7, **rawlsian.points(1000)[0]).fit_intercept
    close = methods[CLOSE].make(7, **methods[CLOSE].points(45_222)[0])
    assert (close.reward.names, close.optimizer, close.learning_rate) == (("correctness", "kl"), "adam", 1e-3)
    assert (close.steps, close.cooperation, close.estimator) == (750_000, "acting", "sampled")


@pytest.mark.parametrize("full", [True, False])
def test_the_control_differs_in_the_reward_alone(full: bool) -> None:
    methods = {method.name: method for method in authors_methods(full=full)}
    assert len(methods[CLOSE].grid) == len(methods[CONTROL].grid)
    close, control = (methods[name].make(7, **methods[name].points(45_222)[-1]) for name in (CLOSE, CONTROL))
    reward, constant = control.reward, methods[CONTROL].grid[-1]["constant"]
    assert as_reward(reward).names == ("correctness",)
    assert reward.gains == ((1 - constant, -constant), (-constant, 1 - constant))
    same = {"reward": None, "divergence_weight": 0.0}
    assert close.set_params(**same).get_params() == control.set_params(**same).get_params()


@pytest.mark.parametrize("full", [True, False])
def test_the_smaller_grid_is_part_of_the_whole_one(full: bool) -> None:
    whole = {
        m.name: m for m in [*paper_methods(full=True), *authors_methods(full=True), *our_methods(full=True)]
    }
    for method in [*paper_methods(full=full), *authors_methods(full=full), *our_methods(full=full)]:
        known = [{k: v for k, v in point.items() if k != "max_iter"} for point in whole[method.name].grid]
        for point in method.grid:
            assert {k: v for k, v in point.items() if k != "max_iter"} in known


def test_a_budget_grows_with_the_data_up_to_its_limit() -> None:
    methods = {m.name: m for m in [*paper_methods(full=True), *our_methods(full=True)]}
    assert methods["CCB cured"].points(1_000)[0]["steps"] == 20_000
    assert methods["CCB cured"].points(1_000_000)[0]["steps"] == 300_000
    assert methods["ALFR"].points(1_000)[0]["epochs"] == 20
    assert methods["ALFR"].points(115_143)[0]["epochs"] == 3
    assert methods["ALFR"].points(10_000_000)[0]["epochs"] == 1
    assert methods["LR"].points(1_000) == list(methods["LR"].grid)


def test_a_grid_is_every_combination_and_not_empty() -> None:
    assert len(grid(a=[1, 2], b=["x", "y", "z"])) == 6
    assert grid() == ({},)
    with pytest.raises(ValueError, match="Got an empty grid for 'm'"):
        Method("m", DecisionTreeClassifier, ())
    with pytest.raises(ValueError, match="Got most_people=1"):
        Method("m", DecisionTreeClassifier, most_people=1)
