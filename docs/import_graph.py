"""Draw the rooms of the package and who imports whom, from the real imports: docs/images/rooms.svg.

Run it with `make graph`. The rows are the layers of the contract in pyproject.toml; the two lowest, which
every room may use, have no arrows. An arrow is pale where the imported room is also reached through others,
and dashed where it points upwards: an import inside a method.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

import grimp

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "images" / "rooms.svg"
WIDTH, ROW, BOX, APART = 780, 92, (124, 34), 256
COLOURS = ("#00796b", "#c2185b", "#5d4037", "#1565c0", "#ef6c00", "#6a1b9a", "#2e7d32", "#455a64")


def layers() -> list[list[str]]:
    """Return the rooms of each layer, from top to bottom, as the contract has them."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    rows = next(contract["layers"] for contract in settings["contracts"] if contract["type"] == "layers")
    return [[name.strip(" ()").removeprefix("evenhand.") for name in row.split("|")] for row in rows]


def imports() -> set[tuple[str, str]]:
    """Return which room imports which."""
    graph = grimp.build_graph("evenhand", cache_dir=None)
    pairs = {
        (importer.split(".")[1], imported.split(".")[1])
        for importer in graph.modules - {"evenhand"}
        for imported in graph.find_modules_directly_imported_by(importer) - {"evenhand"}
    }
    return {(importer, imported) for importer, imported in pairs if importer != imported}


def draw(rows: list[list[str]], arrows: set[tuple[str, str]]) -> str:
    """Return the picture as SVG."""
    rooms, shared = rows[:-2], rows[-2:]
    places = {
        name: (WIDTH / 2 + (at - (len(row) - 1) / 2) * APART, 36 + depth * ROW)
        for depth, row in enumerate(rooms)
        for at, name in enumerate(row)
    }
    arrows = {arrow for arrow in arrows if set(arrow) <= places.keys()}
    down = {arrow for arrow in arrows if places[arrow[0]][1] < places[arrow[1]][1]}
    bottom = 36 + len(rooms) * ROW
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {bottom + 72}" '
            'font-family="sans-serif" font-size="14" text-anchor="middle">',
            "<title>The rooms of evenhand and who imports whom</title>",
            '<rect width="100%" height="100%" fill="#fff"/>',
            *(
                _arrow(places, *arrow, pale=arrow in down and _implied(down, *arrow))
                for arrow in sorted(arrows)
            ),
            *(_box(name, *place, BOX[0]) for name, place in places.items()),
            *(_box(" · ".join(row), WIDTH / 2, bottom + 46 * at, 700) for at, row in enumerate(shared)),
            "</svg>\n",
        ]
    )


def _implied(arrows: set[tuple[str, str]], start: str, end: str) -> bool:
    """Say whether other arrows lead from start to end as well."""
    reached, left = set(), [start]
    while left:
        room = left.pop()
        news = {to for at, to in arrows if at == room and (at, to) != (start, end)} - reached
        reached |= news
        left += sorted(news)
    return end in reached


def _arrow(places: dict[str, tuple[float, float]], importer: str, imported: str, *, pale: bool) -> str:
    numbers = list(places).index(importer), list(places).index(imported)
    (x0, y0), (x1, y1) = places[importer], places[imported]
    down = 1 if y1 > y0 else -1
    # Parallel arrows end side by side, and long ones go around the rooms between.
    x0, x1 = (x + 4 * (number - len(places) / 2) for x, number in zip((x0, x1), numbers[::-1], strict=True))
    y0, y1 = y0 + down * BOX[1] / 2, y1 - down * BOX[1] / 2
    aside = 0 if abs(y1 - y0) < ROW else (abs(y1 - y0) / 3) * (1 if numbers[1] % 2 else -1)
    middle = f"{x0 + aside:.0f} {(y0 + y1) / 2:.0f} {x1 + aside:.0f} {(y0 + y1) / 2:.0f}"
    tip = f"M{x1 - 4:.0f} {y1 - 7 * down:.0f}L{x1:.0f} {y1:.0f}L{x1 + 4:.0f} {y1 - 7 * down:.0f}"
    style = ('opacity="0.2"' if pale else 'stroke-width="1.5"') + (
        "" if down > 0 else ' stroke-dasharray="4 3"'
    )
    return (
        f'<g fill="none" stroke="{COLOURS[numbers[0] % len(COLOURS)]}" {style}>'
        f"<title>{importer} imports {imported}</title>"
        f'<path d="M{x0:.0f} {y0:.0f}C{middle} {x1:.0f} {y1:.0f}{tip}"/></g>'
    )


def _box(name: str, x: float, y: float, width: float) -> str:
    return (
        f'<rect x="{x - width / 2:.0f}" y="{y - BOX[1] / 2:.0f}" width="{width}" height="{BOX[1]}" rx="5" '
        f'fill="#eef5f4" stroke="#00796b"/><text x="{x:.0f}" y="{y + 5:.0f}" fill="#222">{name}</text>'
    )


if __name__ == "__main__":
    PICTURE.write_text(draw(layers(), imports()), encoding="utf-8")
    print(PICTURE.relative_to(ROOT))
