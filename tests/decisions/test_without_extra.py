"""Without the extra `serve`, whoever needs it is told how to get it."""

from __future__ import annotations

import subprocess
import sys

import pytest

HIDE = "import sys; sys.modules[{hidden!r}] = None\n"  # as if it were not installed


def ran(hidden, code):
    return subprocess.run(
        [sys.executable, "-c", HIDE.format(hidden=hidden) + code], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("use", ["evenhand.DecisionLoop", "from evenhand import DecisionLoop"])
def test_the_loop_names_the_extra(use):
    # The others are there all the same.
    found = ran("sqlalchemy", f"import evenhand\nevenhand.CooperativeBandits, evenhand.ConflictError\n{use}")
    last = found.stderr.strip().splitlines()[-1]
    assert last == (
        "ModuleNotFoundError: evenhand.DecisionLoop needs sqlalchemy: pip install 'evenhand[serve]'."
    )


def test_a_star_and_a_look_around_leave_out_what_cannot_be_loaded():
    found = ran("sqlalchemy", """
from evenhand import *
import evenhand, inspect
members = dict(inspect.getmembers(evenhand))
assert ConflictError is members["ConflictError"] and CooperativeBandits
print(sorted(set(evenhand._HOME_OF) - set(members)))
""")  # fmt: skip
    assert found.returncode == 0, found.stderr
    import evenhand

    needs = [name for name, home in evenhand._HOME_OF.items() if home.startswith("evenhand.decisions.") and not home.endswith(".errors")]  # fmt: skip
    assert found.stdout.strip() == str(sorted(needs))


@pytest.mark.parametrize("hidden", ["sqlalchemy", "fastapi", "uvicorn", "prometheus_client"])
@pytest.mark.parametrize("more", ["", ", '--demo'"])
def test_the_command_names_the_extra(hidden, more, tmp_path):
    code = f"sys.argv = ['evenhand', 'serve', '--log', {str(tmp_path / 'log.db')!r}]\n"
    code = code if not more else "sys.argv = ['evenhand', 'serve', '--demo']\n"
    found = ran(hidden, code + "from evenhand.cli import main; main()")
    assert found.returncode == 1
    assert f"The service needs {hidden}: pip install 'evenhand[serve]'." in " ".join(found.stderr.split())
    assert not (tmp_path / "log.db").exists()


def test_an_export_names_the_extra(begin, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(
        ImportError, match=r"decisions.parquet needs pyarrow: pip install 'evenhand\[parquet\]'"
    ):
        begin(tmp_path / "log.db").export(tmp_path / "audit")
    assert not (tmp_path / "audit").exists()
