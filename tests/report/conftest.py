"""A small summary with hostile names, from a model that was really trained."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest

from browsing import Opened, chromium
from evenhand import CooperativeBandits
from evenhand.code_version import made
from evenhand.metrics import Answers
from evenhand.metrics.group_table import group_rows
from evenhand.metrics.measures import measure
from evenhand.protocol.theorem import published_reward
from evenhand.report.persons import persons
from evenhand.report.render import write_html
from evenhand.report.summarise import model_of, summary_of
from factories import make_arrays

HOSTILE = "</script><script>window.hacked=1</script>"
IMAGE = '<img src=x onerror="window.hacked=1">'
TURNED = "abc\u202edcba"
FORMULA = '=HYPERLINK("http://x")'


@pytest.fixture(scope="session")
def people() -> tuple[pd.DataFrame, np.ndarray]:
    """A group in numbers, one feature and a label."""
    X, y, s = make_arrays(groups=(0, 1))
    return pd.DataFrame({"man": s, "skill": X[:, 0]}), y


@pytest.fixture(scope="session")
def summary() -> dict[str, Any]:
    n = 300
    X, y, s = make_arrays(n, 3, groups=(IMAGE, "f"), labels=("no", HOSTILE))
    contexts = pd.DataFrame(X[:, :2].round(3), columns=["skill", HOSTILE]).assign(
        town=np.where(X[:, 2] > 0, TURNED, FORMULA)
    )
    models, chosen = [], None
    for weight in (0.0, 1.0, 10.0):
        model = CooperativeBandits(weight, random_state=0, epochs=5).fit(X, y, sensitive_features=s)
        said = model.probabilities_by_group(X)
        own = np.searchsorted(model.groups_.astype(str), s)
        answers = Answers(model.classes_.tolist(), model.groups_.tolist(), own, said, y=y, pos_label=HOSTILE)
        found = measure(answers)
        models.append(
            model_of(f"λ = {weight:g}", found, family="bandits", divergence_weight=weight, chosen=weight == 1)
        )
        chosen = answers if weight == 1 else chosen
    assert chosen is not None
    answers = chosen
    curve = {"steps": [100, 200], "series": {"accuracy": [0.5, 0.6], "flip_rate": [0.2, 0.1]}}
    study = {
        "name": TURNED,
        "label": IMAGE,
        "pos_label": HOSTILE,
        "sensitive": "sex",
        "people": n,
        "models": models,
        "decided_by": "λ = 1",
        "published": [
            {"method": "CCB", "criterion": "delta", "metrics": {"accuracy": {"value": 0.7544},
             "discrimination": {"value": 0.0002}, "consistency": {"value": 0.9999}}}
        ],
        "groups": group_rows(answers),
        "convergence": [{"name": "λ = 1", **curve}],
        "submodels": [model_of("the policy of f", models[1]["metrics"])],
        "persons": persons(contexts, answers),
        "published_reward": published_reward(answers) | {"on": "these policies", "models": []},
        "tables": [{"title": IMAGE, "caption": "c", "columns": ["a"], "rows": [[HOSTILE]]}],
        "notes": [HOSTILE],
    }  # fmt: skip
    data = [{"name": IMAGE, "people": n, "sha256": "0" * 64, "source": HOSTILE}]
    return summary_of("fit", HOSTILE, [study], made(f"evenhand fit {IMAGE}", seeds=[0], data=data))


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def address(summary: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_html(summary, tmp_path_factory.mktemp("page") / "report.html").as_uri()


@pytest.fixture
def opened(browser: Any, address: str) -> Iterator[Opened]:
    """The module's page; whoever opens it also checks that it reports no error and asks for nothing."""
    opened = Opened(browser, address, viewport={"width": 1280, "height": 800})
    yield opened
    opened.context.close()
    assert opened.wrong == []
    assert {url.partition(":")[0] for url in opened.asked} <= {"file", "data", "blob"}


@pytest.fixture(scope="session")
def comparison() -> dict[str, Any]:
    """Two methods with grid points, compared: one of them, and one of its grid points, with a hostile name."""

    def metrics(accuracy: float, discrimination: float) -> dict[str, Any]:
        found = {
            "accuracy": accuracy,
            "discrimination": discrimination,
            "flip_rate": 0.1,
            "positive_rate": 0.5,
        }
        return {
            name: {"value": value, "low": value - 0.01, "high": value + 0.01} for name, value in found.items()
        }

    grid = {"ours": [(0.8, 0.02), (0.85, 0.1), (0.79, 0.05)], IMAGE: [(0.7, 0.01), (0.82, 0.15)]}
    table = {"title": IMAGE, "caption": HOSTILE, "columns": ["method", HOSTILE], "rows": [[HOSTILE, "1"]]}
    study = {
        "name": "people", "label": "hired", "pos_label": "yes", "sensitive": "sex", "people": 10,
        "sentence": "A sentence of its own.",
        "models": [
            model_of("ours", metrics(0.81234, 0.02), method="CCB", criterion="delta"),
            model_of(IMAGE, metrics(0.75, 0.05), criterion="delta"),
        ],
        "points": [
            model_of(f"{family} {number} {HOSTILE}", metrics(*spot), family=family)
            for family, spots in grid.items()
            for number, spot in enumerate(spots)
        ],
        "published": [
            {"method": "CCB", "criterion": "delta", "metrics": {"accuracy": {"value": 0.7}, "discrimination": {"value": 0.1},
             "delta": {"value": 0.6}}}
        ],
        "tables": [table | {"numeric": True, "words": f"Said before the table. {HOSTILE}"}],
        "notes": [f"What is seen. {HOSTILE}"],
    }  # fmt: skip
    overview = {"sentence": f"For all. {HOSTILE}", "tables": [table], "notes": [HOSTILE]}
    how = made("python", seeds=[0, 1], data=[])
    return summary_of("compare", "Methods compared", [study], how, overview)
