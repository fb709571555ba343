"""README's tables are those that the runs wrote, and none is empty."""

import re
from pathlib import Path

import pytest

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
