"""The JSON API against its own description: what is answered is described, and what is described is there."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from jsonschema import Draft202012Validator, ValidationError
from starlette.routing import Route
from tests.daemon.conftest import WallClock
from tests.page.conftest import a_plan, a_run, a_view, figures, now_ms, permission

from ballast.core.cluster import UNKNOWN
from ballast.core.cluster.drain import Drain
from ballast.daemon.context.view import Board, Other, Outage, Pause, Role, View
from ballast.daemon.metrics.catalog import Metrics
from ballast.daemon.process.health import Health
from ballast.daemon.web import api
from ballast.daemon.web.actions import Desk
from ballast.daemon.web.app import WebParts, build
from ballast.daemon.web.openapi import document

DOCUMENT = document()


def validator(path: str) -> Draft202012Validator:
    """For the answer of one address."""
    answer = DOCUMENT["paths"][f"/api/v1/{path}"]["get"]["responses"]["200"]
    schema = answer["content"]["application/json"]["schema"]
    return Draft202012Validator({**schema, "components": DOCUMENT["components"]})


def sent(answer: dict[str, Any]) -> dict[str, Any]:
    """As it arrives."""
    arrived: dict[str, Any] = json.loads(json.dumps(answer))
    return arrived


def a_full_view() -> View:
    """A view in which every part has something to show."""
    measured = figures(displaced=True)
    silent = replace(measured.brokers[0], disk_bytes=UNKNOWN, capacity_bytes=UNKNOWN, usable_bytes=UNKNOWN)
    return a_view(
        figures=replace(measured, brokers=(silent, *measured.brokers[1:])),
        run=a_run(),
        run_elsewhere=replace(a_run(), rate_bytes_per_s=None),
        plans=(a_plan(), replace(a_plan(), bound_bytes=None, obstacles=("broker 3: full. Add room.",))),
        pause=Pause(by="Ada", since_ms=now_ms(), reason="release"),
        others=(Other(code="foreign", sentence="Somebody moves.", blocking=True),),
        settings_problem="a mistake",
        drains=(Drain(broker=3, by="Ada", since_ms=now_ms()),),
        history_problem="denied",
        history_skipped=(("r0", "newer"),),
    )


@pytest.mark.parametrize(
    "view",
    [
        a_full_view(),
        a_view(),
        View(),
        a_view(figures=None, outage=Outage(code="unreachable", sentence="No answer.", since_ms=0), role=Role.STANDBY),
    ],
)
def test_every_answer_is_as_described(view: View) -> None:
    """From the first moment to the fullest page; an unknown figure is null."""
    validator("status").validate(sent(api.status(view, now_ms=now_ms(), read_only="")))
    validator("history").validate(sent(api.history(view)))
    validator("settings").validate(sent(api.settings(view)))


def test_a_plan_is_blocked_by_what_blocks_its_kind_now() -> None:
    """Made while another process held the lock, shown after a broker has gone: the reason is that of this moment."""
    plan = replace(a_plan(), blocked="Another process holds the cluster's lock.")
    settling = "Waiting for replicas to be in sync."
    held = a_view(plans=(plan,), permissions=(permission("moves", code="unsettled", sentence=settling),))
    assert api.status(held, now_ms=0, read_only="")["plans"][0]["blocked"] == settling
    free = a_view(plans=(plan,), permissions=(permission("moves"),))
    assert api.status(free, now_ms=0, read_only="")["plans"][0]["blocked"] == ""


def test_every_address_is_described() -> None:
    """And no other one."""
    board = Board()
    parts = WebParts(
        board=board,
        metrics=Metrics(board),
        clock=WallClock(),
        desk=Desk(None, lambda _: None, WallClock()),
        alive=lambda: Health(ok=True, sentence=""),
        ready=lambda: Health(ok=True, sentence=""),
        healthy=lambda: Health(ok=True, sentence=""),
    )
    served = {route.path for route in build(parts).routes if isinstance(route, Route)}
    assert {path for path in served if path.startswith("/api/")} == set(DOCUMENT["paths"])


def test_the_description_is_strict() -> None:
    """A field that is not described, or is missing, or is of another kind, fails: so the test above says something."""
    told = sent(api.status(a_full_view(), now_ms=now_ms(), read_only=""))
    assert told["cluster"]["brokers"][0]["disk_bytes"] is None
    wrong: list[dict[str, Any]] = [
        {**told, "more": 1},
        {k: v for k, v in told.items() if k != "lock"},
        {**told, "run": {**told["run"], "bytes_left": "many"}},
        {**told, "plans": [{**told["plans"][0], "moves": None}]},
        {**told, "cluster": {**told["cluster"], "brokers": [{**told["cluster"]["brokers"][0], "rackk": "a"}]}},
    ]
    for answer in wrong:
        with pytest.raises(ValidationError):
            validator("status").validate(answer)
