"""`evenhand serve`: a saved model that decides over HTTP, with a log that it learns from."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated

import typer

from evenhand.checks import JobFailedError
from evenhand.cli import options
from evenhand.cli.console import on_stdout

EXAMPLES = (
    "[bold]Examples[/]\n\n"
    "evenhand serve model.skops --log decisions.db\n\n"
    "evenhand serve model.skops --log decisions.db --reveals grant --within 300 --learn-every 3600\n\n"
    "evenhand serve --log postgresql://me@db/decisions --host 0.0.0.0"
)


def run(
    model: Annotated[
        Path | None, typer.Argument(help="A model that `evenhand fit` saved; a log that exists has its own.")
    ] = None,
    log: Annotated[str, typer.Option(help="A SQLite file, or postgresql://…")] = "decisions.db",
    host: Annotated[str, typer.Option(help="Others than this machine need tokens.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535)] = 8000,
    reveals: Annotated[
        list[str] | None,
        typer.Option(help="An action that reveals its outcome; may be given again. Default: all"),
    ] = None,
    unrevealed: Annotated[float, typer.Option(help="What the other actions earn.")] = 0.0,
    within: Annotated[float | None, typer.Option(help="How many days an outcome may take.")] = None,
    overdue: Annotated[
        float | None, typer.Option(help="What a decision earns without one until then.")
    ] = None,
    earns: Annotated[str | None, typer.Option(help='JSON: {"grant": {"repaid": 1, "defaulted": -1}}')] = None,
    explore: Annotated[float, typer.Option(help="The least probability of every action.")] = 0.02,
    max_discrimination: Annotated[float | None, typer.Option(help="A bound for promotions.")] = None,
    max_flip: Annotated[float | None, typer.Option(help="A bound for promotions.")] = None,
    learn_every: Annotated[float, typer.Option(min=0, help="Seconds between candidates; 0 is never.")] = 0.0,
    promote: Annotated[
        bool,
        typer.Option("--promote", help="Promote candidates that are surely better and within the bounds."),
    ] = False,
    max_model_size: options.MaxModelSize = 1,
) -> None:
    """Decide about people who come one by one, keep a log of it, and learn from what it earned.

    Tokens are read from EVENHAND_DECIDING_TOKEN and EVENHAND_ADMINISTERING_TOKEN.
    """
    try:
        import uvicorn

        from evenhand.decisions.loop import DecisionLoop
        from evenhand.decisions.serve.app import make_app
        from evenhand.decisions.serve.guards import check_tokens
    except ModuleNotFoundError as error:
        raise JobFailedError(f"The service needs {error.name}: pip install 'evenhand[serve]'.") from error
    from evenhand.report.live import live_page
    from evenhand.workflow.persistence import load

    tokens = {
        role: os.environ.get(f"EVENHAND_{role.upper()}_TOKEN") for role in ("deciding", "administering")
    }
    check_tokens(host, tokens)
    try:
        paid = None if earns is None else json.loads(earns)
    except json.JSONDecodeError as error:
        raise ValueError(f"Got --earns {earns!r}, but expected JSON ({error}).") from error
    loaded = None if model is None else load(model, max_bytes=int(max_model_size * (1 << 30)))
    loop = DecisionLoop(
        loaded, log, reveals=reveals, unrevealed=unrevealed, overdue=overdue, earns=paid, explore=explore,
        within=None if within is None else within * 86_400, max_discrimination=max_discrimination,
        max_flip=max_flip,
    )  # fmt: skip
    app = make_app(loop, host=host, tokens=tokens, learn_every=learn_every, promotes=promote, page=live_page)
    on_stdout().print(f"Deciding at http://{host}:{port}/ with version {loop.version}; its API: /docs")
    uvicorn.run(app, host=host, port=port, log_level="warning", server_header=False)
