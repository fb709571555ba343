"""The documentation runs: every Python block and every `evenhand` command of a page, in order, in one place.

A block after `<!-- skip -->` is left alone. A ```text block right after a Python block is what that block prints, one
after commands is some lines of what the last of them prints. Words must be equal, numbers but for one in their last
digit, since another processor may round otherwise. `python tests/test_docs.py own-data` writes what a page prints today
into it.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import io
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import sklearn

from factories import evenhand

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs").glob("*.md"))
MARKS = {"start.md": [pytest.mark.data], "own-data.md": [pytest.mark.slow]}
BLOCK = re.compile(r"(?P<skip><!-- skip -->\n+)?^```(?P<kind>\w+)[^\n]*\n(?P<text>.*?)^```$", re.M | re.S)
NUMBER = re.compile(r"-?\d[\d,]*\.?\d*(?:e-?\d+)?")


class Block(NamedTuple):
    kind: str
    text: str
    line: int
    skip: bool


def blocks_of(page: str) -> list[Block]:
    return [
        Block(found["kind"], found["text"], page.count("\n", 0, found.start("text")), bool(found["skip"]))
        for found in BLOCK.finditer(page)
    ]


def run_python(block: Block, page: Path, names: dict[str, Any]) -> str:
    # Padded with empty lines, so that a traceback shows the line of the page.
    code = compile("\n" * block.line + block.text, str(page), "exec")
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(code, names)
    return printed.getvalue()


def run_commands(block: Block) -> str:
    printed = ""
    for line in block.text.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if words:
            assert words[0] == "evenhand", f"{line!r} is no evenhand command; mark its block <!-- skip -->"
            printed = evenhand(*words[1:]).stdout
    return printed


def assert_alike(printed: str, shown: str) -> None:
    """Same words, nearly the same numbers."""
    words, wanted = (" ".join(NUMBER.sub("#", text).split()) for text in (printed, shown))
    assert words == wanted, f"printed:\n{printed}"
    for number, expected in zip(NUMBER.findall(printed), NUMBER.findall(shown), strict=True):
        last = 0.0 if "." not in expected else 10.0 ** -len(expected.partition(".")[2])
        value, want = (float(text.replace(",", "")) for text in (number, expected))
        assert abs(value - want) <= 1.01 * (last or abs(want) / 100), f"printed:\n{printed}"


def some_lines(printed: str, shown: str) -> str:
    """Return those lines of what was printed that are shown, found by how they begin."""
    begins = {begin_of(line): line.rstrip() for line in reversed(printed.splitlines()) if line.strip()}
    kept = [line if line == "..." else begins.get(begin_of(line), "") for line in shown.splitlines()]
    return "\n".join(kept) + "\n"


def begin_of(line: str) -> str:
    """Return the beginning of a table's row: its name, or, of the row of titles, the first of them."""
    return re.split(r"\s{2,}", line.strip())[0]


def run_page(page: Path) -> Iterator[tuple[Block, str]]:
    """Run a page's blocks in the current folder; give those of text with what they are to show."""
    names: dict[str, Any] = {"__name__": "page"}
    printed: str | None = None
    kind = ""
    with sklearn.config_context():  # a page may switch metadata routing on
        for block in blocks_of(page.read_text(encoding="utf-8")):
            if block.kind == "text" and printed is not None and not block.skip:
                yield block, printed if kind == "python" else some_lines(printed, block.text)
            printed, kind = None, block.kind
            if block.skip:
                continue
            if block.kind == "python":
                printed = run_python(block, page, names)
            elif block.kind == "bash":
                printed = run_commands(block)


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, id=page.stem, marks=MARKS.get(page.name, [])) for page in PAGES],
)
def test_blocks_run_and_print_what_the_page_shows(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    for block, printed in run_page(page):
        assert_alike(printed, block.text)


@pytest.mark.parametrize(
    ("printed", "alike"), [("0.86", True), ("0.85", False), ("0.9", False), ("28", False), ("a", False)]
)
def test_a_stale_number_is_seen(printed, alike):
    shown = "26" if printed == "28" else "0.87"
    with contextlib.nullcontext() if alike else pytest.raises(AssertionError):
        assert_alike(printed, shown)


def test_lines_of_a_table_are_found_by_their_names():
    printed = "title\n            a     b\nλ = 0     0.1   0.2\nλ = 20    0.3   0.4\n"
    shown = "          a     b\nλ = 20    0.5   0.4\n...\n"
    assert some_lines(printed, shown) == "            a     b\nλ = 20    0.3   0.4\n...\n"


def test_every_page_is_in_the_menu():
    menu = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert PAGES
    assert [page.name for page in PAGES if f": {page.name}\n" not in menu] == []


@pytest.mark.parametrize(
    "module", ["", ".metrics", ".rewards", ".tables", ".datasets", ".baselines", ".protocol", ".report"]
)
def test_the_api_page_lists_every_public_name(module):
    listed = set(re.findall(r"\w+", (ROOT / "docs" / "api.md").read_text(encoding="utf-8")))
    names = set(importlib.import_module(f"evenhand{module}").__all__) - {"__version__"}
    assert sorted(names - listed) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_names_of_tests_and_scripts_exist(page):
    """A page that says which test proves a claim, or which script printed a number, names one that exists."""
    text = page.read_text(encoding="utf-8")
    for path, name in re.findall(
        r"`((?:tests|benchmarks|experiments|examples)/[\w/]+\.py)(?:::(\w+))?", text
    ):
        assert (ROOT / path).is_file(), path
        assert f"def {name}(" in (ROOT / path).read_text(encoding="utf-8") or not name, f"{path}::{name}"


def test_numbers_that_differ_are_noticed():
    assert_alike("flips 0.012 of 1,000\n", "flips 0.013 of   1,000")
    with pytest.raises(AssertionError):
        assert_alike("flips 0.4", "flips 0.1")
    with pytest.raises(AssertionError):
        assert_alike("flips 0.4", "accuracy 0.4")


def script(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_picture_of_the_rooms_shows_the_imports_of_today():
    pytest.importorskip("grimp")
    graph = script("import_graph")
    now = graph.draw(graph.layers(), graph.imports())
    assert now == graph.PICTURE.read_text(encoding="utf-8"), "imports have changed: run `make graph`"


def test_the_picture_shows_direct_implied_and_upward_imports():
    pytest.importorskip("grimp")
    rows = [["top"], ["middle"], ["bottom"], ["shared"], ["everyones"]]
    arrows = {
        ("top", "middle"),
        ("middle", "bottom"),
        ("top", "bottom"),
        ("bottom", "top"),
        ("top", "shared"),
    }
    lines = script("import_graph").draw(rows, arrows).splitlines()
    drawn = {line.split("<title>")[1].split("</title>")[0]: line for line in lines if "<g " in line}
    assert set(drawn) == {
        "top imports middle",
        "middle imports bottom",
        "top imports bottom",
        "bottom imports top",
    }
    assert [name for name, line in drawn.items() if "opacity" in line] == ["top imports bottom"]
    assert [name for name, line in drawn.items() if "dasharray" in line] == ["bottom imports top"]


def write_what_is_printed(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for block, printed in run_page(page):
        text = text.replace(f"```text\n{block.text}```", f"```text\n{printed.rstrip()}\n```", 1)
    page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    os.environ["COLUMNS"] = "120"
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for name in sys.argv[1:]:
            write_what_is_printed(ROOT / "docs" / f"{name}.md")
