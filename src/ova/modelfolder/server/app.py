"""The application: what the server answers to each path."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse, PlainTextResponse, Response
from fastapi.security import HTTPBearer

from ova.modelfolder.folder import Model
from ova.modelfolder.live import live
from ova.modelfolder.server import schema
from ova.modelfolder.server.alarms import Alarms
from ova.modelfolder.server.asked import Asked, named, nothing, read
from ova.modelfolder.server.batcher import Batcher
from ova.modelfolder.server.counts import Counts
from ova.modelfolder.server.gate import Door, Gate, refusal
from ova.modelfolder.server.limits import Limits
from ova.modelfolder.server.log import Log
from ova.modelfolder.server.refused import Refused
from ova.modelfolder.server.replies import Replies, Reply
from ova.userdata.tables import Columns

PAGE = Path(__file__).parent / "page"
ABOUT = (
    "Answers of a model of `ova train`: a label, or null where it is none of the above. An input "
    "that cannot be used has its reason in `problem` and harms no other."
)
NOT_SAID: Any = None  # of a query's part that is never null, because nobody can write that there
Batches = Batcher[Asked, Reply]


def create(
    model: Model,
    limits: Limits | None = None,
    *,
    log: Log | None = None,
    hashed: bool = False,
    door: Door | None = None,
    false_alarms: float = 0.01,
) -> FastAPI:
    """The application around a model; the log is closed with it. `state.watch` watches the answers."""
    limits, door, counts = limits or Limits(), door or Door(), Counts()
    watch = live(model, None if log is None else log.path, false_alarms)
    counts.register(Alarms(watch))
    replies = Replies(model, counts, log, hashed, watch)

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        batches: Batches = Batcher(replies, batch=limits.batch, waiting=limits.waiting)
        counts.watch(lambda: batches.rows)
        app.state.batches = batches
        try:
            # What libraries make at their first use, they make before the server is ready.
            await asyncio.wrap_future(batches.ask(nothing(model), 1))
            yield
        finally:
            await asyncio.to_thread(batches.close)
            if log is not None:
                log.close()

    # The pages that FastAPI has for its own description load scripts from elsewhere.
    app = FastAPI(
        title="ova serve",
        version=version("ova"),
        description=ABOUT,
        lifespan=life,
        docs_url=None,
        redoc_url=None,
    )
    app.state.watch = watch
    app.add_middleware(Gate, door=door, limits=limits, counts=counts)
    # It describes the token and lets everybody pass: the gate has looked at it.
    keys = [Depends(HTTPBearer(auto_error=False))] if door.token else []
    refuse(app)
    state(app, counts, keys)
    pages(app)
    about = facts(model, replies, limits)

    @app.get("/model", dependencies=keys, responses=schema.problems(401, 403))
    def facts_of_model() -> schema.Facts:
        """What the model is, and what it promises."""
        return about

    @app.post(
        "/predict",
        dependencies=keys,
        response_model=schema.Answers,
        responses=schema.problems(*schema.SAID),
        openapi_extra=schema.body(model, limits),
    )
    async def predict(
        request: Request,
        threshold: Annotated[
            float,
            Query(
                ge=0,
                le=1,
                allow_inf_nan=False,
                description="Answer above this confidence; the promise is then void.",
            ),
        ] = NOT_SAID,
        explain: Annotated[bool, Query(description="Name the nearest training rows.")] = False,
        classes: Annotated[
            int, Query(ge=0, le=100_000, description="How many of the largest p to name.")
        ] = 0,
    ) -> Response:
        """A label for each input, or null: none of the above."""
        if explain and not about.nearest:
            told = f"the model decides by {about.score}, which looks at no training rows"
            raise Refused(422, f"{told}; leave explain out")
        try:
            async with asyncio.timeout(limits.seconds):
                frame = await read(request, model, limits)
        except TimeoutError:
            raise Refused(408, f"the body did not arrive within {limits.seconds:g} s") from None
        asked = Asked(frame, threshold, explain, classes)
        batches: Batches = request.app.state.batches
        waiting = batches.ask(asked, len(frame), (threshold, explain))
        try:
            async with asyncio.timeout(limits.seconds):
                reply = await asyncio.wrap_future(waiting)
        except TimeoutError:
            told = f"there was no time to answer within {limits.seconds:g} s; ask again later"
            raise Refused(503, told, 5) from None
        if isinstance(reply, Refused):
            raise reply
        return Response(reply, media_type="application/json")

    return app


def refuse(app: FastAPI) -> None:
    """Every refusal is JSON with one sentence."""

    @app.exception_handler(Refused)
    async def of_ours(_: Request, error: Refused) -> Response:
        return refusal(error)

    @app.exception_handler(RequestValidationError)
    async def of_options(_: Request, error: RequestValidationError) -> Response:
        first: Any = error.errors()[0]
        where = first["loc"][1]
        return refusal(Refused(422, f"{where}: {first['msg']}"))

    @app.exception_handler(Exception)
    async def of_everything(_: Request, error: Exception) -> Response:
        told = (
            f"the server failed at this request ({type(error).__name__}); its own output says more"
        )
        return JSONResponse({"error": told}, 500)

    async def of_http(request: Request, error: Any) -> Response:
        path, method = request.url.path, request.method
        said = {
            400: f"the form cannot be read ({error.detail})",
            404: f"there is nothing at {path!r}; there is /, /model, /predict and /openapi.json",
            405: f"{path} does not take {method}",
        }[error.status_code]
        return JSONResponse({"error": said}, error.status_code, error.headers)

    for status in (400, 404, 405):
        app.add_exception_handler(status, of_http)


def state(app: FastAPI, counts: Counts, keys: list[Any]) -> None:
    """Health, readiness and metrics."""

    @app.get("/health", responses=schema.problems(403))
    def health() -> schema.State:
        """The server is alive."""
        return schema.State(status="alive")

    @app.get("/ready", responses=schema.problems(403, 503))
    def ready(request: Request) -> schema.State:
        """The server would take a request."""
        if not request.app.state.batches.ready:
            raise Refused(503, "too much waits, or the server stops; ask again in a moment", 1)
        return schema.State(status="ready")

    @app.get(
        "/metrics",
        dependencies=keys,
        response_class=Response,
        responses={**schema.problems(401, 403), 200: {"content": {"text/plain": {}}}},
    )
    def metrics() -> Response:
        """What was counted, for Prometheus."""
        return PlainTextResponse(counts.page(), media_type="text/plain; version=0.0.4")


def pages(app: FastAPI) -> None:
    """The page to try the model, which asks nobody but this server."""
    for name in ("try.html", "try.js", "try.css", "try.svg"):
        path = "/" if name == "try.html" else f"/{name}"
        app.add_api_route(
            path, page_of(name), include_in_schema=False, response_class=FileResponse, name=name
        )


def page_of(name: str) -> Any:
    """What gives a file of the page."""

    async def give() -> FileResponse:
        return FileResponse(PAGE / name)

    return give


def facts(model: Model, replies: Replies, limits: Limits) -> schema.Facts:
    """What the page and its readers want to know of the model."""
    prepared = model.preparation
    columns = prepared.columns if isinstance(prepared, Columns) else ()
    return schema.Facts(
        kind=model.kind,
        inputs=named(model),
        classes=list(model.classes),
        columns=[schema.Column(name=c.name, words=list(c.words)) for c in columns],
        formulation=str(model.facts["formulation"]),
        score=model.evidence.name,
        promise=list(model.shown.lines(model.classes)),
        calibrated=not isinstance(model.calibration, str),
        nearest=model.evidence.bank is not None,
        model=replies.name,
        unwatched=replies.watch if isinstance(replies.watch, str) else None,
        limits=asdict(limits),
    )
