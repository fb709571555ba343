"""README's tables are those that the runs wrote, none is empty, and its code and commands run."""

import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from factories import evenhand

ROOT = Path(__file__).parents[1]
BLOCKS = re.findall(
    r"<!-- generated: ([\w-]+) -->\n(.*?)<!-- end -->",
    (ROOT / "README.md").read_text(encoding="utf-8"),
    re.DOTALL,
)


@pytest.mark.parametrize(("name", "text"), BLOCKS)
def test_a_generated_block_is_the_generated_file(name, text):
    assert text == (ROOT / "docs" / "generated" / f"{name}.md").read_text(encoding="utf-8")
    assert text.count("\n|") > 3


def test_there_are_blocks_and_every_link_leads_somewhere():
    assert {name for name, _ in BLOCKS} == {"delta", "both", "speed"}
    links = re.findall(r"\]\(([^)#]+)\)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert [link for link in links if not (ROOT / link).exists()] == []


@pytest.mark.parametrize(
    "page", sorted((ROOT / "docs" / "generated").glob("*.md")), ids=lambda page: page.stem
)
def test_no_generated_page_is_a_placeholder(page):
    assert "Not generated yet" not in page.read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_code_and_the_commands_run(tmp_path, monkeypatch):
    """In order, in a folder with people whose income depends on their years and a little on their sex."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    people = pd.DataFrame({"years": rng.gamma(4.0, 2.5, 3000).round(1), "sex": rng.choice(["f", "m"], 3000)})
    paid = people["years"] + 2 * (people["sex"] == "m") + rng.normal(size=3000)
    people["income"] = np.where(paid > 17, "high", "low")
    people.to_csv("people.csv", index=False)
    people.head(200).to_csv("more-people.csv", index=False)
    X, y = people[["years", "sex"]], people["income"]
    names = {"X": X, "y": y, "new_people": X.head(20)}
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```(python|bash)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert [kind for kind, _ in blocks] == ["python", "bash", "python", "python"]
    for kind, block in blocks:
        if kind == "python":
            exec(compile(block, "README.md", "exec"), names)
        else:
            for line in block.splitlines():
                words = shlex.split(line)
                assert words.pop(0) == "evenhand"
                result = evenhand(*words)
                assert result.exit_code == 0, f"{line}\n{result.output}"
    assert {"audit.html", "fit.html", "decided.csv"} <= {path.name for path in tmp_path.iterdir()}
