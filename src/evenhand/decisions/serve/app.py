"""The service's addresses: decisions, outcomes, policies, promotion, health, metrics and a live page."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from evenhand.decisions.contexts import check_id
from evenhand.decisions.loop import DecisionLoop
from evenhand.decisions.serve import shapes
from evenhand.decisions.serve.beside import Beside, learner
from evenhand.decisions.serve.guards import Guard
from evenhand.decisions.serve.meters import Meters
from evenhand.decisions.serve.quick import STATUSES, Asked, Deciding
from evenhand.decisions.serve.refusing import problems
from evenhand.decisions.serve.signing_in import add_signing_in
from evenhand.decisions.status import Status, find
from evenhand.version import __version__
from evenhand.wording import as_plain

NO_TOKENS: Mapping[str, str | None] = {"deciding": None, "administering": None}
_PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"model": shapes.Problem, "description": why}
    for status, why in {
        400: "The body can't be read as text.",
        401: "The token is not that of the role.",
        403: "The request names another host, or comes from another site's page.",
        409: "The log holds something else: another context under this id, or there is nothing to act on.",
        413: "The request is too large.",
        422: "What was sent is not what is expected.",
        503: "The log can't be written now; ask again with the same id.",
    }.items()
}
_JSON = "JSON with the header 'Content-Type: application/json'"
_HELD = "There is no candidate, or it is not proven better and within the bounds."


def make_app(
    loop: DecisionLoop,
    *,
    host: str = "127.0.0.1",
    tokens: Mapping[str, str | None] = NO_TOKENS,
    learn_every: float = 0.0,
    promotes: bool = False,
    page: Callable[[dict[str, Any]], str] | None = None,
    sign_in: Callable[[str], str] | None = None,
    describe: Callable[[dict[str, Any]], str] | None = None,
    beside: Sequence[Beside] = (),
) -> FastAPI:
    """Return the service of an open loop. It closes the loop when it stops.

    `page` makes the live page, `sign_in` the form that asks for a token, and `describe` the page about the
    addresses. FastAPI's own loads scripts from another site, and is empty without a network.
    """
    running = [*beside, learner(loop, learn_every, promotes=promotes)]
    deciding = Deciding(loop, Meters(loop))

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        await asyncio.to_thread(loop.policy.warm_up)
        for one in running:
            one.start()
        yield
        for one in running:
            await asyncio.to_thread(one.stop)
        await asyncio.to_thread(loop.close)

    app = FastAPI(
        title="evenhand", version=__version__, lifespan=lifespan, description=__doc__, responses=_PROBLEMS,
        docs_url=None, redoc_url=None,
    )  # fmt: skip
    app.add_middleware(Guard, host=host, tokens=tokens, shortcut=deciding.shortcut)
    _answer_problems(app, deciding)
    _add_deciding(app, deciding)
    _add_administering(app, loop, deciding.meters, page)
    if describe is not None:
        app.add_api_route("/docs", lambda: HTMLResponse(describe(app.openapi())), include_in_schema=False)
    if sign_in is not None and (token := tokens["administering"]):
        add_signing_in(app, token, sign_in)
    return app


def _answer_problems(app: FastAPI, deciding: Deciding) -> None:
    for kind in STATUSES:
        app.add_exception_handler(kind, lambda request, error: deciding.problem(error))

    @app.exception_handler(RequestValidationError)
    async def misshapen(request: Request, error: RequestValidationError) -> JSONResponse:
        """Say what is wrong and where."""
        deciding.meters.failures.labels("422").inc()
        kind = request.headers.get("content-type", "no type")[:100]
        if await request.body() and "json" not in kind:  # the default of curl
            return JSONResponse({"detail": f"Got a body of {kind}, but expected {_JSON}."}, 422)
        return JSONResponse({"detail": problems(error)}, 422)


def _add_deciding(app: FastAPI, deciding: Deciding) -> None:
    loop, meters = deciding.loop, deciding.meters

    @app.post("/decide", response_model=shapes.Answer | shapes.Answers, tags=["deciding"])
    async def decide(asked: shapes.Person | shapes.People) -> Any:
        """Decide about one person or several. The same id always gets the same answer."""
        several = isinstance(asked, shapes.People)
        people = asked.people if isinstance(asked, shapes.People) else [asked]
        ids, contexts = [one.id for one in people], [one.context for one in people]
        return await deciding.answer(Asked(ids, contexts, [one.group for one in people], several))

    @app.post("/outcome", response_model=shapes.Status | shapes.Statuses, tags=["deciding"])
    async def outcome(told: shapes.Outcome | shapes.Outcomes) -> Any:
        """Report the outcome of one decision or several. The answer says whether and how each is used."""
        many = told.outcomes if isinstance(told, shapes.Outcomes) else [told]
        found = await asyncio.wrap_future(loop.submit_outcomes([one.model_dump() for one in many]))
        meters.count_outcomes(found)
        return {"statuses": found} if isinstance(told, shapes.Outcomes) else {"status": found[0]}

    @app.get("/health", tags=["deciding"])
    async def health() -> dict[str, Any]:
        """Say that the service is up and which policy is in force."""
        return {"status": "ok", "version": loop.version}


def _add_administering(
    app: FastAPI, loop: DecisionLoop, meters: Meters, page: Callable[[dict[str, Any]], str] | None
) -> None:
    log = Status(loop)

    def seen() -> Any:
        return as_plain(log.look())

    @app.get("/policies", tags=["administering"])
    def policies() -> Any:
        """List every policy with its parent and its promotions."""
        return JSONResponse(as_plain({"policies": loop.policies()}))

    @app.get("/candidate", tags=["administering"])
    def candidate() -> Any:
        """Compare the candidate with the policy in force, from what the log knows."""
        found = loop.candidate()
        return JSONResponse(as_plain({"candidate": None if found is None else found.as_dict()}))

    @app.post("/promote", responses={409: {"description": _HELD}}, tags=["administering"])
    def promote(how: shapes.Promote | None = None) -> Any:
        """Put the candidate in force if, with confidence, it earns more and keeps the bounds; else 409."""
        found = loop.promote(**(how or shapes.Promote()).model_dump())
        if found is None:
            return JSONResponse({"detail": "There is no candidate."}, 409)
        return JSONResponse(as_plain(found.as_dict()), 200 if found.promoted else 409)

    @app.post("/rollback", tags=["administering"])
    def rollback(how: shapes.Rollback | None = None) -> Any:
        """Put the previous policy back in force."""
        return {"version": loop.rollback(**(how or shapes.Rollback()).model_dump())}

    @app.get("/status", tags=["administering"])
    def status() -> Any:
        """Return what was decided and earned, per group and per policy, and how groups are treated."""
        return JSONResponse(seen())

    @app.get("/decision", responses={404: {"model": shapes.Problem}}, tags=["administering"])
    def decision(id: shapes.Id) -> Any:
        """Look up one person's decision, and what each group's policy would have decided."""
        found = find(loop, check_id(id))
        if found is None:
            return JSONResponse({"detail": "No such id."}, 404)
        return JSONResponse(as_plain({**shapes.Answer.of(found[0]), **found[1]}))

    @app.get("/metrics", response_class=PlainTextResponse, tags=["administering"])
    def metrics() -> Response:
        """Return the metrics for Prometheus."""
        return Response(generate_latest(meters.registry), media_type=CONTENT_TYPE_LATEST)

    if page is not None:

        @app.get("/", response_class=HTMLResponse, include_in_schema=False)
        def live() -> HTMLResponse:
            """Show the live page."""
            return HTMLResponse(page(seen()), headers={"Cache-Control": "no-store"})
