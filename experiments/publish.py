"""Turn results into the pages' numbers: docs/generated/*.md, and the marked blocks of README.md and docs/*.md.

    python experiments/frontier.py && python experiments/defaults.py && python experiments/tried.py
    python experiments/frontier.py --datasets german compas --seeds 20 --out results/frontier/small
    python experiments/elsewhere.py && python experiments/published_ends.py && python experiments/authors_files.py
    python experiments/table2_explained.py && python experiments/figure_convergence.py && python experiments/part_way.py
    python experiments/tiny_groups.py && python experiments/selective_labels.py && python experiments/strangers.py && python experiments/boosted_choices.py
    python experiments/planted_proxies.py
    python benchmarks/training.py --json results/benchmarks/training.json
    python benchmarks/defaults.py --json results/benchmarks/defaults.json
    python benchmarks/learning.py --json results/benchmarks/learning.json
    python benchmarks/serving.py --json results/benchmarks/serving.json
    python benchmarks/gpu.py --splits 100 --json results/benchmarks/gpu.json    # on a machine with a GPU, as the next
    python benchmarks/gower_gpu.py --json results/benchmarks/gower-gpu.json
    pytest -rA -m device > results/benchmarks/gpu-tests.txt
    python experiments/boosted.py && python experiments/boosted_elsewhere.py
    python experiments/fairgbm_peer.py --python … && python benchmarks/boosting.py --json results/benchmarks/boosting.json
    python experiments/certificates.py --time-limit 300
    python experiments/certificates.py --policies both trees --time-limit 300
    python experiments/search_strategies.py
    evenhand reproduce
    evenhand reproduce --full --seeds 100 --out results/hundred …    # the command that reproduction-100.md names
    evenhand reproduce --full --seeds 100 --out results/hundred-control …    # and reproduction-100-control.md
    python experiments/publish.py
    python experiments/publish.py --blocks    # only copies docs/generated/*.md into the blocks; this needs no results

A block begins with `<!-- generated: NAME -->` and ends with `<!-- end -->`; it holds docs/generated/NAME.md. No number is
typed. What has no results is left as it is, and said. Some scripts write to docs/generated themselves; run the last command
after them.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import auditing_pages
import boosted_pages
import defaults_pages
import gpu_pages
import hundred_pages
import reproduction_pages
import selective_pages
import serving_pages
import speed_pages
import trade_off_pages
from pages import GENERATED, ROOT

BLOCK = re.compile(r"<!-- generated: (?P<name>[\w-]+) -->\n(?P<held>.*?)<!-- end -->", re.DOTALL)
THEMES = (
    trade_off_pages,
    defaults_pages,
    reproduction_pages,
    hundred_pages,
    boosted_pages,
    auditing_pages,
    selective_pages,
    speed_pages,
    gpu_pages,
    serving_pages,
)


def fill_blocks(text: str) -> str:
    """Return a page with what docs/generated holds now in its blocks."""

    def fill(match: re.Match[str]) -> str:
        held = (GENERATED / f"{match['name']}.md").read_text(encoding="utf-8").strip()
        return f"<!-- generated: {match['name']} -->\n\n{held}\n\n<!-- end -->"

    return BLOCK.sub(fill, text)


def fill_pages() -> None:
    """Fill the blocks of README.md and of the documentation."""
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        text = page.read_text(encoding="utf-8")
        filled = fill_blocks(text)
        if filled != text:
            page.write_text(filled, encoding="utf-8")
            print(f"{page.relative_to(ROOT)}: filled")


def write_generated() -> None:
    """Write every page of docs/generated for which there are results."""
    GENERATED.mkdir(parents=True, exist_ok=True)
    for name, make in [page for theme in THEMES for page in theme.PAGES.items()]:
        try:
            text = make()
        except FileNotFoundError as error:
            print(f"{name}: left as it is, there is no {Path(error.filename).relative_to(ROOT)}")
            continue
        (GENERATED / f"{name}.md").write_text(text + "\n", encoding="utf-8")
        print(f"{name}: written")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--blocks", action="store_true", help="only fill the blocks")
    if not parser.parse_args().blocks:
        write_generated()
    fill_pages()


if __name__ == "__main__":
    main()
