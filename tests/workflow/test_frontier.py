from __future__ import annotations

import io
import json
import subprocess
import sys
import textwrap
import time

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import evenhand
from evenhand.progress import Lines, Progress
from evenhand.report import read_summary
from evenhand.tables import load_table
from evenhand.workflow import candidates
from evenhand.workflow.card import to_markdown
from factories import make_people

ROLES = {"label": "hired", "sensitive": "sex", "categorical": "branch"}
SMALL = {"weights": [3, 0], "epochs": 5, "n_jobs": 1}


@pytest.fixture(scope="module")
def people():
    return make_people()


@pytest.fixture(scope="module")
def frontier(people):
    return evenhand.explore(people, **ROLES, **SMALL)


def test_a_newcomers_walk_needs_no_internal_module(frontier, people, tmp_path):
    assert frontier.candidates["name"].tolist() == [
        "λ = 0", "λ = 3", "λ = 0, with parity", "λ = 3, with parity",
    ]  # fmt: skip
    model = frontier.choose(max_discrimination=0.5, max_flip=0.5)
    loaded = evenhand.load(model.save(tmp_path / "model.skops"))
    assert isinstance(loaded, evenhand.Deployed)
    assert loaded.card == model.card
    np.testing.assert_array_equal(loaded.predict(people), model.predict(people))
    np.testing.assert_array_equal(loaded.decide(people).decision, loaded.predict(people))
    contexts = people[list(loaded.columns)]
    audit = evenhand.audit(loaded, contexts, people["hired"], sensitive_features=people["sex"])
    assert audit.value("flip_rate") == loaded.decide(people).would_flip.mean()


def test_a_card_has_numbers_where_numbers_belong(frontier):
    choice = frontier.choice(max_discrimination=0.5)
    card = choice.model.card
    assert card["data"]["label"] == {"column": "hired", "labels": ["no", "yes"], "positive": "yes"}
    assert card["model"]["policies"] == ["f", "m"]
    assert card["model"]["epochs"] == 5
    assert card["model"]["chosen by"] == "accuracy"
    (bound,) = card["bounds"]
    assert bound == {
        "measure": "discrimination",
        "at_most": 0.5,
        "validation": card["validation"]["discrimination"]["value"],
        "test": card["metrics"]["discrimination"]["value"],
        "kept_on_test": True,
    }
    assert card["bounds_in_words"] == ["Kept on the validation part, as asked: discrimination ≤ 0.5."]
    text = to_markdown(card)
    assert "- label: column hired, labels no, yes, positive yes" in text
    assert "- Kept on the validation part, as asked: discrimination ≤ 0.5." in text
    alone = choice.model.compress("f").card
    assert alone["model"]["policies"] == ["f"]
    assert alone["model"]["kind"] == card["model"]["kind"]
    assert alone["bounds"] == alone["bounds_in_words"] == []


def test_a_model_shows_what_it_is_and_how_it_was_tested(frontier):
    model = frontier.choose()
    accuracy = model.card["metrics"]["accuracy"]["value"]
    assert f"tested    accuracy {accuracy:.3f}, discrimination " in repr(model)
    assert f"accuracy {accuracy:.3f}" in model._repr_html_()
    assert "tested" not in repr(model.compress("f"))
    assert len(repr(model).splitlines()) == 6


def test_blind_models_stand_beside_the_trade_off_everywhere(frontier, people, tmp_path):
    names = ["logistic regression, blind", "boosted trees, blind"]
    rows = frontier.references.set_index("name")
    assert rows.index.tolist() == names
    assert (rows["flip_rate"] == 0).all()
    assert (rows["accuracy"] > 0.6).all()
    # What another way of asking the same kind of model says.
    train, validation = frontier.parts.train, frontier.parts.validation
    same = LogisticRegression(max_iter=500).fit(train.X, train.y.astype(str))
    assert rows["accuracy"].iloc[0] == np.mean(same.predict(validation.X) == validation.y)
    for shown in (frontier._repr_html_(), frontier.plot().to_json()):
        assert all(name in shown for name in names)
    models = json.loads(frontier.to_json())["studies"][0]["models"]
    assert [one["name"] for one in models[-2:]] == names


def test_it_is_what_fit_does(frontier, people, fitted, tmp_path):
    from_command = evenhand.load(fitted.model)
    ours, theirs = (model.probabilities_by_group(people) for model in (frontier.model, from_command))
    np.testing.assert_array_equal(ours, theirs)
    for part in ("validation", "metrics", "groups", "model"):
        assert frontier.model.card[part] == from_command.card[part]
    text = frontier.to_json(tmp_path / "s.json")
    assert (tmp_path / "s.json").read_text(encoding="utf-8") == text
    summary = read_summary(tmp_path / "s.json")
    for part in ("models", "groups", "persons", "submodels"):
        assert summary["studies"][0][part] == read_summary(fitted.summary)["studies"][0][part]


def test_a_path_a_frame_and_a_data_set_give_the_same_models(frontier, people, tmp_path):
    people.to_csv(tmp_path / "p.csv", index=False)
    dataset = load_table(people, label="hired", sensitive="sex", categorical="branch")
    for table, roles in ((str(tmp_path / "p.csv"), ROLES), (dataset, {})):
        again = evenhand.explore(table, **roles, **SMALL)
        pd.testing.assert_frame_equal(again.candidates, frontier.candidates)
        mine, other = (one.model.probabilities_by_group(people) for one in (again, frontier))
        np.testing.assert_array_equal(mine, other)
    card = evenhand.explore(tmp_path / "p.csv", **ROLES, **SMALL).model.card["data"]
    assert len(card["sha256"]) == 64
    assert "sha256" not in frontier.model.card["data"]  # there is no file


def test_candidates_have_the_validation_measures(frontier):
    table = frontier.candidates
    assert table["divergence_weight"].tolist() == [0, 3, 0, 3]
    assert table["parity"].tolist() == [False, False, True, True]
    np.testing.assert_allclose(table["delta"], table["accuracy"] - table["discrimination"])
    chosen = table.iloc[(table["delta"] - table["flip_rate"]).argmax()]
    assert frontier.choice().candidate.name == chosen["name"]
    assert frontier.model.card["validation"]["accuracy"]["value"] == chosen["accuracy"]


def test_a_choice_is_measured_once(frontier):
    assert frontier.model is frontier.model is frontier.choose()
    assert frontier.choose(criterion="accuracy") is not frontier.model
    assert frontier.model.card["made"]["command"].startswith("evenhand.explore(DataFrame, label='hired', ")


def test_bounds_that_no_model_keeps_name_the_nearest(frontier):
    with pytest.raises(evenhand.NoModelWithinBoundsError, match="the nearest is λ = "):
        frontier.choose(max_discrimination=0, max_flip=0)


@pytest.mark.parametrize(
    ("wrong", "wanted"),
    [
        ({"weights": []}, "at least one"),
        ({"weights": "1,2"}, "Got weights='1,2', but expected a list of numbers, such as"),
        ({"weights": 1}, "Got weights=1, but expected a list of numbers, such as"),
        ({"weights": [-1]}, "Got weights=-1, but expected a finite number of at least 0"),
        ({"epochs": 0}, "Got epochs=0, but expected a finite number above 0"),
        ({"epochs": "many"}, "Got epochs='many'"),
        ({"n_jobs": 0}, "Got n_jobs=0, but expected 1 or more"),
        ({"random_state": None}, "Got random_state=None, but expected a whole number"),
        ({"parity_bound": 2}, "Got parity_bound=2"),
        ({"label": "hird"}, "Did you mean 'hired'"),
    ],
)
def test_wrong_arguments_say_what_was_wanted(people, wrong, wanted):
    with pytest.raises(ValueError, match=wanted):
        evenhand.explore(people, **(ROLES | SMALL | wrong))
    with pytest.raises(ValueError, match="Got label='hired' with a Dataset"):
        evenhand.explore(load_table(people, label="hired", sensitive="sex"), label="hired")


def test_the_page_and_the_figure_show_every_model(frontier, tmp_path):
    page = frontier.to_html(tmp_path / "r.html", max_flip=0.9).read_text(encoding="utf-8")
    figure = frontier.plot()
    shown = [text for trace in figure.data for text in trace.text]
    for name in frontier.candidates["name"]:
        assert name in page
        assert any(text.startswith(name + "<br>") for text in shown)
    assert (
        len(shown) == 3 * len(frontier.candidates) + 2
    )  # networks and trees alone besides, and blind models


def test_a_notebook_shows_a_light_view_in_which_names_are_text(people):
    hostile = people.rename(columns={"hired": "<script>alert(1)</script>"})
    hostile["sex"] = hostile["sex"].replace({"f": "<img src=x onerror=y>\u202e"})
    frontier = evenhand.explore(hostile, label="<script>alert(1)</script>", sensitive="sex", **SMALL)
    shown = frontier._repr_html_()
    assert "<script" not in shown
    assert "<img" not in shown
    assert "\u202e" not in shown
    assert "&lt;script&gt;" in shown
    assert shown.count("<circle") == len(frontier.candidates) + 2
    assert len(shown) < 10_000
    assert repr(frontier).startswith("<Frontier of 4 models for Dataset 'table' (400 people")


class _Stops(Progress):
    def __init__(self, after: int) -> None:
        self.after = after

    def done(self, label, work=None, pieces=1):
        self.after -= 1
        if self.after == 0:
            raise KeyboardInterrupt


def test_stopped_it_goes_on_where_it_stopped(frontier, people, tmp_path, monkeypatch):
    folder = tmp_path / "so far"
    with pytest.raises(KeyboardInterrupt):
        evenhand.explore(people, **ROLES, **SMALL, resume=folder, progress=_Stops(after=2))
    kept = len(list(folder.glob("*.skops")))
    assert 2 <= kept < 4
    train, trained = candidates._train, []
    monkeypatch.setattr(candidates, "_train", lambda *point: trained.append(point) or train(*point))
    said = io.StringIO()
    again = evenhand.explore(people, **ROLES, **SMALL, resume=folder, progress=Lines(said))
    assert len(trained) == 4 - kept
    assert f"Resumed with {kept} of 4 models trained before." in said.getvalue()
    pd.testing.assert_frame_equal(again.candidates, frontier.candidates)
    assert again.model.card["metrics"] == frontier.model.card["metrics"]
    # Other data or settings: nothing of it is used.
    trained.clear()
    evenhand.explore(people[:-1], **ROLES, **SMALL, resume=folder)
    assert len(trained) == 4
    evenhand.explore(people, **ROLES, **SMALL, resume=folder, parity_bound=0.2)
    assert [point[3] for point in trained[4:]] == [True, True]  # those without parity have no bound
    trained.clear()
    for kind in (bool, str):  # as text, they are the same people, but another model
        hired = (people["hired"] == "yes").astype(kind)
        evenhand.explore(people.assign(hired=hired), **ROLES, **SMALL, resume=folder)
    assert len(trained) == 8


@pytest.mark.slow
def test_killed_it_goes_on_where_it_was_killed(frontier, people, tmp_path, monkeypatch):
    people.to_csv(tmp_path / "p.csv", index=False)
    script = textwrap.dedent(f"""
        import evenhand, time
        from evenhand.progress import Progress

        class Slow(Progress):
            def done(self, label, work=None, pieces=1):
                print("trained", flush=True)
                time.sleep(60)

        evenhand.explore("p.csv", **{ROLES!r}, **{SMALL!r}, resume="so far", progress=Slow())
    """)
    with subprocess.Popen([sys.executable, "-c", script], cwd=tmp_path, stdout=subprocess.PIPE) as running:
        assert running.stdout is not None
        running.stdout.readline()
        running.kill()
    time.sleep(0.1)
    kept = len(list((tmp_path / "so far").glob("*.skops")))
    assert kept >= 1
    train, trained = candidates._train, []
    monkeypatch.setattr(candidates, "_train", lambda *point: trained.append(point) or train(*point))
    again = evenhand.explore(tmp_path / "p.csv", **ROLES, **SMALL, resume=tmp_path / "so far")
    assert len(trained) <= 4 - kept
    pd.testing.assert_frame_equal(again.candidates, frontier.candidates)


def test_a_split_of_the_callers_own_is_used_and_kept_apart(people, tmp_path, monkeypatch):
    order = np.random.default_rng(1).permutation(len(people))
    own = (order[:200], order[200:300], order[300:])
    frontier = evenhand.explore(people, **ROLES, **SMALL, split=own, resume=tmp_path / "new" / "folder")
    assert frontier.test_rows == own[2].tolist()
    assert frontier.model.card["data"]["parts"] == {"train": 200, "validation": 100, "test": 100}
    train, trained = candidates._train, []
    monkeypatch.setattr(candidates, "_train", lambda *point: trained.append(point) or train(*point))
    evenhand.explore(people, **ROLES, **SMALL, resume=tmp_path / "new" / "folder")
    assert len(trained) == 4
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError, match="expected a folder"):
        evenhand.explore(people, **ROLES, **SMALL, resume=tmp_path / "file")


def test_notes_are_told_before_training(people):
    told = []

    class Heard(Progress):
        def say(self, text):
            told.append(text)

        def done(self, label, work=None, pieces=1):
            told.append(label)

    frontier = evenhand.explore(people, categorical="branch", **SMALL, progress=Heard())
    assert told[0] == repr(frontier.dataset)
    assert told[1:-4] == [f"  {note}" for note in frontier.notes]
    assert "  Guessed that 'hired' is the label." in told
    assert sorted(told[-4:]) == sorted(frontier.candidates["name"])


def test_progress_that_is_none_says_what_is_expected(people):
    with pytest.raises(
        TypeError, match=r"Got progress=True, but expected a Progress, such as evenhand\.progress"
    ):
        evenhand.explore(people, **ROLES, **SMALL, progress=True)


def test_json_is_plain(frontier):
    json.dumps(frontier.summary(), allow_nan=False)
    json.dumps(frontier.model.card, allow_nan=False)


def test_verbose_shows_the_progress(people, capsys):
    evenhand.explore(people, **ROLES, **SMALL, verbose=True)
    shown = capsys.readouterr().err
    assert "Dataset 'table'" in shown
    assert "Training" in shown
    evenhand.explore(people, **ROLES, **SMALL)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("policies", "kind"), [("networks", "CooperativeBandits"), ("trees", "CooperativeBoosting")]
)
def test_policies_of_one_kind(people, policies, kind, tmp_path):
    frontier = evenhand.explore(people, **ROLES, **SMALL, policies=policies)
    model = evenhand.load(frontier.model.save(tmp_path / "model.skops"))
    assert type(model.model).__name__ == kind
    assert model.card["model"]["kind"] == kind
    assert ("rounds of trees" in model.card["model"]) == (policies == "trees")
    assert [trace.name for trace in frontier.plot().data][:-1] == [policies, f"{policies}, with parity"]
    assert model.decide(people).decision.shape == (len(people),)


def test_networks_and_trees_stand_beside_their_mean(frontier, people, tmp_path):
    families = [trace.name for trace in frontier.plot().data]
    assert families[:2] == ["networks and trees", "networks and trees, with parity"]
    assert set(families[2:-1]) == {"networks", "networks, with parity", "trees", "trees, with parity"}
    assert {one.policies for one in frontier.trained} == {"both"}  # what is chosen from
    names = [model["name"] for model in frontier.summary()["studies"][0]["models"]]
    assert "trees, λ = 3, with parity" in names
    assert len(set(names)) == len(names)

    kept = tmp_path / "kept"
    first = evenhand.explore(people, **ROLES, **SMALL, resume=kept)
    again = evenhand.explore(people, **ROLES, **SMALL, resume=kept)
    for mine, other in zip(again.shown, first.shown, strict=True):
        assert (mine.name, mine.policies, mine.validation) == (other.name, other.policies, other.validation)
        assert type(mine.model) is type(other.model)


def test_an_unknown_kind_of_policies(people):
    with pytest.raises(ValueError, match="Got policies='forest', but expected"):
        evenhand.explore(people, **ROLES, **SMALL, policies="forest")
