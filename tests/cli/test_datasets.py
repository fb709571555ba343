from __future__ import annotations

import json

from factories import evenhand


def test_datasets_are_listed():
    assert "adult" in evenhand("datasets").stdout
    records = json.loads(evenhand("datasets", "--json").stdout)
    assert {"name", "people", "source", "licence", "ready"} <= set(records[0])
