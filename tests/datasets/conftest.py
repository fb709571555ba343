from __future__ import annotations

import pytest

from evenhand.datasets.sources import (
    COMPAS_SCORES,
    DAYS_IN_HOSPITAL_Y2,
    DAYS_IN_HOSPITAL_Y3,
    has_private,
)


@pytest.fixture(autouse=True)
def _private_data(request: pytest.FixtureRequest) -> None:
    marked = request.node.get_closest_marker("private_data")
    if marked and not has_private(COMPAS_SCORES, DAYS_IN_HOSPITAL_Y2, DAYS_IN_HOSPITAL_Y3):
        pytest.skip("the files of ../shared/data are not there; EVENHAND_DATA can name their folder")
