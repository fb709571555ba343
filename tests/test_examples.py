"""Every example runs as a user would run it, and prints what it promises."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
PROMISES = {
    "explore.py": "decisions about two newcomers: ",
    "fit_and_audit.py": "of people would get a different decision in another group",
    "own_reward.py": "with the reward of our own",
    "online_feedback.py": "after the last day",
    "sklearn_pipeline.py": "best divergence_weight",
    "own_method.py": "forest",
}
NEEDS_DATA = {"fit_and_audit.py", "own_method.py"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.data] if name in NEEDS_DATA else []) for name in PROMISES],
)
def test_example(name, tmp_path):
    command = [sys.executable, "-W", "error", str(EXAMPLES / name)]
    result = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=300, check=False)
    assert result.returncode == 0, result.stderr
    assert PROMISES[name] in result.stdout
