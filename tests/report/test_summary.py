from __future__ import annotations

import json

import pytest

from evenhand.report.summary import check_summary, read_summary, write_summary


def test_a_summary_survives_the_disk(summary, tmp_path):
    path = write_summary(summary, tmp_path / "s.json")
    assert read_summary(path) == json.loads(json.dumps(summary))
    assert [entry.name for entry in tmp_path.iterdir()] == ["s.json"]


def test_what_is_no_summary_is_refused(summary):
    with pytest.raises(ValueError, match="schema None"):
        check_summary({})
    with pytest.raises(ValueError, match="schema 'list'"):
        check_summary([])
    for missing in ("title", "studies", "made"):
        with pytest.raises(ValueError, match=f"no '{missing}'"):
            check_summary({name: part for name, part in summary.items() if name != missing})
    study = {name: part for name, part in summary["studies"][0].items() if name != "groups"}
    with pytest.raises(ValueError, match="study 1 has no 'groups'"):
        check_summary(summary | {"studies": [study]})
    with pytest.raises(ValueError, match="'models', 1 has no 'method'"):
        check_summary(summary | {"studies": [summary["studies"][0] | {"models": [{"name": "x"}]}]})
