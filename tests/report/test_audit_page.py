"""The words of an audit's page: each is said only where it applies."""

from __future__ import annotations

import re

import numpy as np
import pytest

from evenhand.auditing import audit
from evenhand.code_version import made
from evenhand.report.from_audit import summary_of_audit
from evenhand.report.render import render
from evenhand.report.summarise import model_of

MEASURES = {"accuracy", "discrimination", "delta", "positive rate", "consistency", "balanced accuracy"}
OF_GROUPS = {
    "group",
    "people",
    "decided",
    "of those labelled yes",
    "of the others",
    "correct",
}


class ByGroup:
    """A model that decides by the group alone, so that everybody flips."""

    def predict(self, X):
        return np.where(X["man"] == 1, "yes", "no")


def _summary(asked, X, y, positive="yes"):
    how = made("python", seeds=[0], data=[])
    found = audit(asked, X, y, sensitive_features="man", pos_label=positive, n_bootstrap=20)
    return summary_of_audit(found, name="people", label="hired", sensitive="man", how=how)


def _page(summary):
    return render(summary).split("<script")[0]


def _plain(html):
    return " ".join(re.sub(r"<[^>]*>", " ", html).split())


def _tables(page):
    """Return the columns and the caption of the groups' table, and of the measures'."""
    found = []
    for part in ('<table class="numbers groups">', 'aria-label="Models, scrollable"'):
        table = page[page.index(part) :].partition("</thead>")[0]
        heads = re.findall(r'<th scope="col">(.*?)</th>', table)
        found += [{_plain(head) for head in heads} - {"model"}, _plain(table.partition("</caption>")[0])]
    return found


@pytest.mark.parametrize("labelled", [True, False])
@pytest.mark.parametrize("flips", [True, False])
def test_tables_have_the_columns_that_were_measured_and_explain_no_other(people, labelled, flips):
    X, y = people
    page = _page(_summary(ByGroup() if flips else y, X, y if labelled else None))
    of_groups, caption, measures, _ = _tables(page)
    without = set() if labelled else OF_GROUPS - {"group", "people", "decided"}
    assert of_groups - {"flips"} == OF_GROUPS - without
    assert measures - {"flip rate"} == MEASURES - (
        set() if labelled else {"accuracy", "delta", "balanced accuracy"}
    )
    assert ("flips" in of_groups, "flip rate" in measures, "“Flips”" in caption) == (flips,) * 3
    assert ("“Correct”" in caption, "by label" in caption) == (labelled,) * 2
    assert {_plain(name) for name in re.findall("<dt>(.*?)</dt>", page.partition('id="made"')[0])} == measures


def test_without_a_positive_label_the_groups_have_the_share_of_each(people):
    X, _ = people
    y = np.where(X["skill"] > 1, "A", np.where(X["skill"] > 0, "B", "C"))
    of_groups, caption, *_ = _tables(_page(_summary(y, X, None, positive=None)))
    assert of_groups == {"group", "people", "A", "B", "C"}
    assert caption.startswith("Share of each label among the decisions, by group.")


def test_of_one_model_none_is_chosen(people):
    X, y = people
    summary = _summary(y, X, y)
    study = summary["studies"][0]
    one = _page(summary)
    two = _page(summary | {"studies": [study | {"models": [*study["models"], model_of("another", {})]}]})
    for said in (
        "Every model that was tried",
        "◆",
        '<span class="tag">chosen</span>',
        ">All models<",
        ">Models<",
    ):
        assert (said in one, said in two) == (False, True)
    for said in (">The measures<", ">Measures<"):
        assert (said in one, said in two) == (True, False)


def test_who_is_audited_may_have_trained_the_model(people):
    X, y = people
    said = _summary(y, X, y)["studies"][0]["sentence"]
    assert said.startswith("“This model” is correct for 100.0 %")
    assert "of these people" in said
    assert "tested" not in said
