"""What is set before anything is imported, and the fixtures that several rooms share."""

import os

# So that scikit-learn's array-API check runs rather than skips.
os.environ.setdefault("SCIPY_ARRAY_API", "1")
# Small arrays, and tests that share the cores: more threads would only wait for one another, at full speed.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import hypothesis
import numpy as np
import pytest

from evenhand.datasets.sources import (
    COMPAS_SCORES,
    DAYS_IN_HOSPITAL_Y2,
    DAYS_IN_HOSPITAL_Y3,
    has_private,
)
from factories import FIT, Fitted, evenhand, make_people

# No test is timed: the first call compiles, and a busy machine is no defect. CI repeats the same examples.
hypothesis.settings.register_profile("untimed", deadline=None, derandomize="CI" in os.environ)
hypothesis.settings.load_profile("untimed")


@pytest.fixture(autouse=True)
def _private_data(request: pytest.FixtureRequest) -> None:
    marked = request.node.get_closest_marker("private_data")
    if marked and not has_private(COMPAS_SCORES, DAYS_IN_HOSPITAL_Y2, DAYS_IN_HOSPITAL_Y3):
        pytest.skip("the files of ../shared/data are not there; EVENHAND_DATA can name their folder")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Begin all draws anew: they depend neither on the tests before this one nor on the module's own data."""
    np.random.seed(1)  # noqa: NPY002 - models without a random_state draw from it
    module = getattr(item, "module", None)
    if hasattr(module, "RNG"):
        module.RNG = np.random.default_rng(1)


@pytest.fixture(scope="session")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Fitted:
    folder = tmp_path_factory.mktemp("fitted")
    people, model = folder / "people.csv", folder / "model.skops"
    make_people().to_csv(people, index=False)
    report, summary = folder / "report.html", folder / "summary.json"
    result = evenhand(
        "fit", people, "--label", "hired", "--sensitive", "sex", "-o", model, *FIT, "--report", report,
        "--summary", summary,
    )  # fmt: skip
    return Fitted(folder, people, model, report, summary, result)
