import pandas as pd

from evenhand import CooperativeBandits, audit, explore, tabular
from factories import make_arrays, make_people


def test_an_audit_writes_a_page_of_its_own(tmp_path):
    X, y, s = make_arrays(300, groups=("<f>", "m"))
    model = CooperativeBandits(epochs=2, random_state=0).fit(X, y, sensitive_features=s)
    path = audit(model, X, y, sensitive_features=s, n_bootstrap=50).to_html(tmp_path / "audit.html")
    page = path.read_text(encoding="utf-8")
    assert "Audit of this model" in page
    assert "&lt;f&gt;" in page
    assert len(page) < 6_000_000


def test_the_page_names_the_label_and_says_how_people_are_numbered(tmp_path):
    X, y, s = make_arrays(100)
    people = pd.DataFrame({"sex": s, "skill": X[:, 0], "credit": y})
    given = {"sensitive_features": "sex", "n_bootstrap": 50}
    model = tabular(CooperativeBandits(epochs=2, random_state=0))
    model.fit(people[["sex", "skill"]], y, sensitive_features="sex")
    for labels in ("credit", people["credit"]):
        found = audit(model, people if isinstance(labels, str) else people[["sex", "skill"]], labels, **given)
        page = found.to_html(tmp_path / "audit.html").read_text(encoding="utf-8")
        assert "<h1>Audit of this model: credit</h1>" in page
        assert (
            "A person&#39;s number is their row in the table, from 1; positions in Python count from 0."
            in page
        )
        assert "<dt>Seeds</dt>" not in page
    assert "Audit of this model: paid" in found.to_html(tmp_path / "a.html", label="paid").read_text("utf-8")
    assert audit(model, people, y, **given).label is None
    said = pd.DataFrame({"label": people["credit"]})
    assert audit(said, people, y, **given).label is None  # a column of decisions is no name


def test_a_model_knows_its_label_and_whether_it_was_trained_on_these_people():
    people = make_people(300)
    given = {"weights": (0,), "epochs": 1, "policies": "networks", "n_jobs": 1}
    model = explore(people, label="hired", sensitive="sex", **given).choose()
    X, y = people.drop(columns="hired"), people["hired"].to_numpy()
    for features, groups in ((X, "sex"), (X, X["sex"]), (X.drop(columns="sex"), X["sex"].to_numpy())):
        found = audit(model, features, y, sensitive_features=groups, n_bootstrap=50)
        assert found.label == "hired"
        assert "The model has seen these people: it was trained on 210 of the 300." in found.summary()
    others = audit(model, X[:299], y[:299], sensitive_features="sex", n_bootstrap=50)
    assert "trained on" not in others.summary()
