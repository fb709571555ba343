"""`evenhand serve`: a saved model that decides over HTTP, with a log that it learns from."""

from __future__ import annotations

import errno
import gc
import json
import os
import signal
import socket
import sys
import tempfile
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from evenhand.atomic import check_parent
from evenhand.checks import JobFailedError
from evenhand.cli import options
from evenhand.cli.console import on_stdout

EXAMPLES = (
    "[bold]Examples[/]\n\n"
    "evenhand serve --demo\n\n"
    "evenhand serve model.skops --log decisions.db\n\n"
    "evenhand serve model.skops --log decisions.db --reveals grant --within 300 --learn-every 3600\n\n"
    "evenhand serve --log postgresql://me@db/decisions --host 0.0.0.0"
)


def run(
    ctx: typer.Context,
    model: Annotated[
        Path | None, typer.Argument(help="A model saved by `evenhand fit`. An existing log has its own.")
    ] = None,
    log: Annotated[
        str, typer.Option(help="The decision log: a SQLite file, or postgresql://…")
    ] = "decisions.db",
    host: Annotated[
        str,
        typer.Option(help="Address to listen on; any other address than this machine's own needs tokens."),
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port to listen on.")] = 8000,
    reveals: Annotated[
        list[str] | None,
        typer.Option(help="Action whose outcome becomes known. Repeatable. Default: all actions."),
    ] = None,
    unrevealed: Annotated[float, typer.Option(help="Reward of the other actions.")] = 0.0,
    within: Annotated[float | None, typer.Option(help="Days that an outcome may take.")] = None,
    overdue: Annotated[
        float | None, typer.Option(help="Reward of a decision without an outcome by then.")
    ] = None,
    earns: Annotated[
        str | None,
        typer.Option(help='Reward of each outcome, as JSON: {"grant": {"repaid": 1, "defaulted": -1}}'),
    ] = None,
    reward_range: Annotated[
        tuple[float, float] | None,
        typer.Option(
            metavar="LOWEST HIGHEST",
            help="Lowest and highest possible reward. Default: 0 and those of --earns, --unrevealed and "
            "--overdue; without --earns, 0 1.",
        ),
    ] = None,
    explore: Annotated[float, typer.Option(help="Lowest probability of every action.")] = 0.02,
    explore_per_day: Annotated[
        int | None,
        typer.Option(min=0, help="Decisions that exploration may change per day. Default: no limit."),
    ] = None,
    held_out: Annotated[
        float, typer.Option(help="Share of people that candidates are judged on and never trained on.")
    ] = 0.3,
    max_discrimination: Annotated[
        float | None, typer.Option(help="Largest discrimination of a policy that is promoted.")
    ] = None,
    max_flip: Annotated[
        float | None, typer.Option(help="Largest flip rate of a policy that is promoted.")
    ] = None,
    confidence: Annotated[
        float, typer.Option(help="Confidence that a promoted policy is better and within the bounds.")
    ] = 0.95,
    learn_every: Annotated[
        float, typer.Option(min=0, help="Learn a candidate every so many seconds; 0 is never.")
    ] = 0.0,
    promote: Annotated[
        bool,
        typer.Option("--promote", help="Promote a candidate once it is proven better and within the bounds."),
    ] = False,
    max_model_size: options.MaxModelSize = 1,
    demo: Annotated[
        bool,
        typer.Option(
            "--demo", help="Show simulated applicants. Needs no model; the log is deleted at the end."
        ),
    ] = False,
) -> None:
    """Decide about people one at a time over HTTP, log every decision, and learn from the outcomes.

    Actions are drawn with the probabilities of the policy.

    Tokens are read from EVENHAND_DECIDING_TOKEN and EVENHAND_ADMINISTERING_TOKEN.
    """
    tokens = _ready(host)
    if demo:
        _check_alone(ctx)
        with _bound(host, port) as address:
            return _demonstrate(address, host, tokens)
    if "://" not in log:
        check_parent(Path(log))
    from evenhand.decisions.loop import DecisionLoop
    from evenhand.workflow.persistence import load

    try:
        paid = None if earns is None else json.loads(earns)
    except json.JSONDecodeError as error:
        raise ValueError(f"Got --earns {earns!r}, but expected JSON ({error}).") from error
    loaded = None if model is None else load(model, max_bytes=int(max_model_size * (1 << 30)))
    with _bound(host, port) as address:
        loop = DecisionLoop(
            loaded, log, reveals=reveals, unrevealed=unrevealed, overdue=overdue, earns=paid, explore=explore,
            explore_per_day=explore_per_day, within=None if within is None else within * 86_400,
            max_discrimination=max_discrimination, max_flip=max_flip, reward_range=reward_range,
            held_out=held_out, confidence=confidence,
        )  # fmt: skip
        return _serve(loop, address, host, tokens=tokens, learn_every=learn_every, promotes=promote)


def _ready(host: str) -> dict[str, str | None]:
    """Return the tokens, if all is installed and they suffice for this host."""
    try:
        for needed in ("uvicorn", "evenhand.decisions.serve.app"):
            import_module(needed)
    except ModuleNotFoundError as error:
        raise JobFailedError(f"The service needs {error.name}: pip install 'evenhand[serve]'.") from error
    from evenhand.decisions.serve.guards import check_tokens

    tokens = {
        role: os.environ.get(f"EVENHAND_{role.upper()}_TOKEN") for role in ("deciding", "administering")
    }
    check_tokens(host, tokens)
    return tokens


def _bound(host: str, port: int) -> socket.socket:
    """Take an address, before a log is opened: somebody else may have it."""
    found = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    if os.name == "posix":  # one that was given back a moment ago
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((host, port))
    except OSError as error:
        found.close()
        if error.errno == errno.EADDRINUSE:
            raise JobFailedError(f"Port {port} is already in use: choose another with --port.") from error
        raise JobFailedError(
            f"Got {host}:{port}, where nothing can be served ({error.strerror}); expected a free --port here."
        ) from error
    return found


def _serve(loop: Any, address: socket.socket, host: str, simulated: str = "", **how: Any) -> None:
    import uvicorn

    from evenhand.decisions.serve.app import make_app
    from evenhand.report.api import api_page
    from evenhand.report.live import live_page, sign_in_page

    page = partial(live_page, simulated=simulated)
    app = make_app(loop, host=host, page=page, sign_in=sign_in_page, describe=api_page, **how)
    port = address.getsockname()[1]
    on_stdout().print(f"Deciding at http://{host}:{port}/ with version {loop.version}; its API: /docs")
    # The thread that writes must not keep the one that answers waiting for Python's usual 5 ms.
    sys.setswitchinterval(0.0005)
    # What is loaded by now stays: the collector need not go through it again and again.
    gc.collect()
    gc.freeze()
    # Nor through the people of every request: they leave no cycles, and it took a fifth of the time.
    gc.set_threshold(100_000)
    told = uvicorn.Config(app, log_level="warning", access_log=False, server_header=False)
    with suppress(KeyboardInterrupt):
        uvicorn.Server(told).run([address])


def _demonstrate(address: socket.socket, host: str, tokens: dict[str, str | None]) -> None:
    from evenhand.decisions.serve import demo
    from evenhand.decisions.serve.beside import Beside

    story = demo.choose_story()
    say = on_stdout().print
    say(f"A demonstration: {story.told}. The first start may take a minute, since loops are compiled.")
    # uvicorn raises the signal that ended it once more: SIGTERM, too, must let the log be deleted.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="evenhand-demo-") as folder:
        loop = demo.begin(story, Path(folder) / "decisions.db")
        say(
            f"People apply all the time, and the first model says '{story.no}' too often. Whether "
            f"somebody {story.well} or {story.badly} is seen some seconds later, and only after "
            f"'{story.yes}'. Every {demo.LEARN_EVERY:g} seconds a policy learns from that; it decides once "
            "the log proves it better. Open the address and watch; Ctrl-C ends it and deletes the log."
        )
        stream = Beside("stream", demo.TICK, demo.Stream(loop, story).step)
        how: dict[str, Any] = {"learn_every": demo.LEARN_EVERY, "promotes": True, "beside": [stream]}
        _serve(loop, address, host, story.told, tokens=tokens, **how)
    say("The demonstration is over; its log has been deleted.")


def _check_alone(ctx: typer.Context) -> None:
    source = ctx.get_parameter_source
    given = [name for name in ctx.params if getattr(source(name), "name", "") == "COMMANDLINE"]
    others = [name for name in given if name not in ("demo", "host", "port")]
    if others:
        raise ValueError(
            f"Got --demo with {', '.join(others)}, but expected only --host and --port beside it: a "
            "demonstration has its own model, log and rules."
        )
