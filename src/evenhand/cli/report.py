"""`evenhand report`: the page and the figures of a saved summary."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evenhand.checks import one_of
from evenhand.cli import options
from evenhand.cli.console import on_stdout, print_json, show
from evenhand.report.render import render, write_html
from evenhand.report.serve import serve
from evenhand.report.static import FORMATS, write_figures
from evenhand.report.summary import read_summary
from evenhand.workflow.table import check_written

EXAMPLES = (
    "[bold]Examples[/]\n\n"
    "evenhand report summary.json -o report.html\n\n"
    "evenhand report summary.json --figures pdf --figures-dir figures\n\n"
    "evenhand report summary.json --serve"
)


def run(
    summary: Annotated[Path, typer.Argument(help="A summary saved by fit, audit or reproduce.")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Where to write the page. Default: next to the summary."),
    ] = None,
    figures: Annotated[str | None, typer.Option(help="Write figures for papers: svg, pdf or png.")] = None,
    figures_dir: Annotated[Path, typer.Option(help="Folder for the figures.")] = Path("figures"),
    serving: Annotated[
        bool, typer.Option("--serve", help="Show the page at 127.0.0.1 until you stop the command.")
    ] = False,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port for --serve; 0 picks a free one.")] = 0,
    as_json: options.Json = False,
) -> None:
    """Create the report page and figures of a saved summary, or show the page on this machine."""
    if figures is not None:
        one_of("--figures", figures, FORMATS)
    page = output or summary.with_suffix(".html")
    if not serving:
        check_written(page, inputs=[summary])
    whole = read_summary(summary)
    if serving:
        serve(render(whole), port=port, tell=lambda address: on_stdout().print(f"The report is at {address}"))
        return
    written = [write_html(whole, page)]
    if figures is not None:
        written += write_figures(whole, figures_dir, figures)
    if as_json:
        print_json({"written": written})
    else:
        show("\n".join(map(str, written)))
