"""The routes.  Acting needs a token, and reading where the settings say so, sent in a header that no form or link can send."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import resources
from types import MappingProxyType
from typing import Final

from prometheus_client.exposition import choose_encoder
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from ballast.core.cluster import ClusterState
from ballast.daemon.context.health import Health
from ballast.daemon.context.view import Board, View
from ballast.daemon.metrics.catalog import Metrics
from ballast.daemon.web import api, details
from ballast.daemon.web.actions import ActionRequests
from ballast.daemon.web.answers import Answer, RequestAccepted, RequestRefused
from ballast.daemon.web.hosts import KnownHosts
from ballast.daemon.web.openapi import document
from ballast.daemon.web.requests import ACTIONS, read
from ballast.ports.time import Clock

_STATIC: Final = {
    "page.html": "text/html; charset=utf-8",
    "page.css": "text/css; charset=utf-8",
    **dict.fromkeys(("dom.js", "charts.js", "details.js", "ask.js", "page.js"), "text/javascript; charset=utf-8"),
    "icon.svg": "image/svg+xml",
}
_SECURITY: Final = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
}
_HEADERS: Final = {"Cache-Control": "no-store", **_SECURITY}
_LONGEST_WAIT_S: Final = 25.0
_LOOK_S: Final = 0.25
_LONGEST_BODY: Final = 10_000
_VERSION: Final = re.compile("[0-9]{1,18}")

Handler = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True, slots=True, kw_only=True)
class WebParts:
    """What the routes need from the daemon."""

    board: Board
    state: Callable[[], ClusterState | None] = lambda: None
    """The newest reading, for what is asked of one broker, topic or kind of partition."""
    log_ends: details.ReadLogEnds = lambda _topic, _replicas: {}
    """What brokers tell of a topic's replicas; absent where they have not."""
    metrics: Metrics
    clock: Clock
    action_requests: ActionRequests
    alive: Callable[[], Health]
    ready: Callable[[], Health]
    healthy: Callable[[], Health]
    hosts: Collection[str] = ()
    """Names under which the page answers, beside addresses and names without a dot."""
    closing: Callable[[], bool] = lambda: False
    """True while the daemon stops: clients that wait for news are answered at once."""


def build(parts: WebParts) -> Starlette:
    """The page, the API, the probes and the metrics."""
    return _app([*_probe_routes(parts), *_read_routes(parts), *_action_routes(parts), *_page_routes()], parts.hosts)


def build_probes(parts: WebParts) -> Starlette:
    """Probes and metrics, for a port of their own."""
    return _app(_probe_routes(parts), parts.hosts)


def _app(routes: list[BaseRoute], hosts: Collection[str]) -> Starlette:
    return Starlette(
        routes=routes,
        middleware=[Middleware(KnownHosts, hosts=hosts), Middleware(GZipMiddleware, minimum_size=2_000)],
        exception_handlers={HTTPException: _refuse},
    )


def _probe_routes(parts: WebParts) -> list[BaseRoute]:
    async def livez(_: Request) -> Response:
        return _probe(parts.alive())

    async def readyz(_: Request) -> Response:
        return _probe(parts.ready())

    async def healthz(_: Request) -> Response:
        return _probe(parts.healthy())

    async def metrics(request: Request) -> Response:
        try:
            encode, content_type = choose_encoder(request.headers.get("accept", ""))
        except (TypeError, ValueError):  # prometheus-client compares a version that is none with one that is
            encode, content_type = choose_encoder("")
        body = await run_in_threadpool(encode, parts.metrics.registry)
        return Response(body, media_type=content_type)

    return [
        Route("/livez", livez),
        Route("/readyz", readyz),
        Route("/healthz", healthz),
        Route("/metrics", metrics),
    ]


def _read_routes(parts: WebParts) -> list[BaseRoute]:
    board, action_requests = parts.board, parts.action_requests

    async def status(request: Request) -> Response:
        """With ``?after=<version>`` it waits until there is something newer, so that the page need not poll fast."""
        after = request.query_params.get("after", "")
        view = board.view
        if _VERSION.fullmatch(after):
            view = await _wait_for_newer(parts, int(after))
        return _json(api.status(view, now_ms=parts.clock.now_ms(), read_only=action_requests.closed))

    async def history(_: Request) -> Response:
        return _json(api.history(board.view))

    async def settings(_: Request) -> Response:
        return _json(api.settings(board.view))

    async def series(_: Request) -> Response:
        return _json(api.series(board.view))

    def detail(find: Callable[[ClusterState, str], Answer | None]) -> Handler:
        async def answer(request: Request) -> Response:
            state = parts.state()
            if state is None:
                raise HTTPException(503, "The cluster has not been read yet.")
            found = await run_in_threadpool(find, state, request.path_params["name"])
            if found is None:
                raise HTTPException(404, "The cluster has nothing of this name.")
            return _json(found)

        return answer

    async def openapi(_: Request) -> Response:
        return JSONResponse(document(), headers=_HEADERS)

    def admit(read: Handler) -> Handler:
        async def answer(request: Request) -> Response:
            action_requests.admit_reader(request.headers)
            return await read(request)

        return answer

    read = {
        "status": status,
        "history": history,
        "settings": settings,
        "series": series,
        "brokers/{name}": detail(details.broker),
        "topics/{name}": detail(partial(details.topic, read=parts.log_ends)),
        "partitions/{name}": detail(details.partitions),
    }
    return [
        *(Route(f"/api/v1/{path}", admit(answer)) for path, answer in read.items()),
        Route("/api/v1/openapi.json", openapi),
    ]


async def _wait_for_newer(parts: WebParts, after: int) -> View:
    """Wait for a newer view without holding a thread: many pages may be open."""
    deadline = asyncio.get_running_loop().time() + _LONGEST_WAIT_S
    loop = asyncio.get_running_loop()
    # The board is filled by threads and read by many: looking is simpler, and as good, as waking every waiter's event loop.
    while parts.board.view.version <= after and not parts.closing() and loop.time() < deadline:  # noqa: ASYNC110
        await asyncio.sleep(_LOOK_S)
    return parts.board.view


def _action_routes(parts: WebParts) -> list[BaseRoute]:
    action_requests = parts.action_requests

    def action(kind: str) -> Handler:
        async def answer(request: Request) -> Response:
            who = action_requests.admit(request.headers, kind)
            body = read(kind, await _body(request))
            receipt = await run_in_threadpool(action_requests.take, kind, body, who)
            return _json(RequestAccepted(request=receipt), status_code=202)

        return answer

    return [Route(f"/api/v1/actions/{kind}", action(kind), methods=["POST"]) for kind in ACTIONS]


def _page_routes() -> list[BaseRoute]:
    folder = resources.files("ballast.daemon.web") / "static"

    def asset(name: str) -> Handler:
        body = (folder / name).read_bytes()

        async def answer(_: Request) -> Response:
            return Response(body, media_type=_STATIC[name], headers={**_SECURITY, "Cache-Control": "no-cache"})

        return answer

    async def favicon(_: Request) -> Response:
        return RedirectResponse("/icon.svg")

    return [
        Route("/", asset("page.html")),
        Route("/favicon.ico", favicon),
        *(Route(f"/{name}", asset(name)) for name in _STATIC if name != "page.html"),
    ]


async def _body(request: Request) -> bytes:
    raw = b""
    try:
        async for piece in request.stream():
            raw += piece
            if len(raw) > _LONGEST_BODY:
                raise HTTPException(413, "The request is too long.")
    except ClientDisconnect:
        raise HTTPException(400, "The body ended early.") from None
    return raw


def _json(answer: Answer, *, status_code: int = 200, headers: Mapping[str, str] = MappingProxyType({})) -> Response:
    return Response(answer.to_json(), status_code, {**_HEADERS, **headers}, "application/json")


def _probe(health: Health) -> Response:
    return PlainTextResponse(health.sentence + "\n", status_code=200 if health.ok else 503)


async def _refuse(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _json(RequestRefused(detail=error.detail), status_code=error.status_code, headers=error.headers or {})
