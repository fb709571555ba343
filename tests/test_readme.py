"""The tables of README and the documentation are those that the runs wrote, and README's code and commands run."""

import re
import shlex
from pathlib import Path

import pytest

from factories import evenhand

ROOT = Path(__file__).parents[1]
GENERATED = ROOT / "docs" / "generated"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCKS = [
    pytest.param(name, held.strip(), id=f"{page.stem}-{name}")
    for page in PAGES
    for name, held in re.findall(
        r"^<!-- generated: ([\w-]+) -->\n(.*?)^<!-- end -->$", page.read_text(encoding="utf-8"), re.M | re.S
    )
]


@pytest.mark.parametrize(("name", "held"), BLOCKS)
def test_a_generated_block_is_the_generated_file(name, held):
    written = (GENERATED / f"{name}.md").read_text(encoding="utf-8").strip()
    assert held == written, "run `python experiments/publish.py --blocks`"


def test_every_generated_page_is_shown_and_no_block_is_broken():
    assert {block.values[0] for block in BLOCKS} == {page.stem for page in GENERATED.glob("*.md")}
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert text.count("<!-- generated: ") == text.count("<!-- end -->") == len(BLOCKS)
    assert "--8<--" not in text  # a code host would show it as it is


def test_readme_has_its_blocks_and_every_link_leads_somewhere():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"<!-- generated: ([\w-]+) -->", text) == ["delta", "both", "speed", "gpu-grid"]
    assert text.count("\nCommand: `") + text.count(" Command: `") == 4
    assert [link for link in re.findall(r"\]\(([^)#]+)[^)]*\)", text) if not (ROOT / link).exists()] == []


@pytest.mark.parametrize("page", sorted(GENERATED.glob("*.md")), ids=lambda page: page.stem)
def test_a_note_names_only_methods_of_its_table(page):
    """As in 'Mean over 10 random splits (Health: 3; fairlearn trees on Adult: 3)'."""
    text = page.read_text(encoding="utf-8")
    cells = {cell.strip(" *") for cell in text.replace("\n", "|").split("|")}
    assert set(re.findall(r"; ([^;(]+) on \w+: \d+(?=[;)])", text)) <= cells


@pytest.mark.data
def test_the_code_and_the_commands_run(tmp_path, monkeypatch):
    """In order, in one folder; nothing is defined but by the blocks before."""
    monkeypatch.chdir(tmp_path)
    names = {}
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```(python|bash)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert [kind for kind, _ in blocks] == ["python", "python", "bash", "python", "python"]
    for kind, block in blocks:
        if kind == "python":
            exec(compile(block, "README.md", "exec"), names)
            continue
        for line in block.splitlines():
            words = shlex.split(line)
            assert words.pop(0) == "evenhand"
            evenhand(*words)
    assert {"audit.html", "fit.html", "decided.csv"} <= {path.name for path in tmp_path.iterdir()}
