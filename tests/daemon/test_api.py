"""The JSON API against its own description: what is answered is described, and what is described is there."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from jsonschema import Draft202012Validator, ValidationError
from pydantic_core import PydanticSerializationError
from starlette.exceptions import HTTPException
from starlette.routing import Route
from tests.daemon.conftest import WallClock
from tests.page.conftest import a_plan, a_run, a_view, figures, now_ms, permission

from ballast.core.catalogue import Messages
from ballast.core.cluster import UNKNOWN
from ballast.core.cluster.drain import Drain
from ballast.daemon.context.health import Health
from ballast.daemon.context.view import BalanceView, Board, CheckReport, Note, Other, Outage, Role, View, notes_of
from ballast.daemon.metrics.catalog import Metrics
from ballast.daemon.planning.bounds import Objection
from ballast.daemon.process.lock import LockNote
from ballast.daemon.web import api
from ballast.daemon.web.actions import ActionRequests
from ballast.daemon.web.answers import ANSWERS, Answer
from ballast.daemon.web.app import WebParts, build
from ballast.daemon.web.openapi import document
from ballast.daemon.web.requests import ACTIONS, read
from ballast.executor.journal.pause import Pause
from ballast.executor.journal.records import SkippedRun

DOCUMENT = document()
OBJECTIONS = tuple(
    map(Note.of, (Objection("whole-rack", {"racks": ("c",)}), Objection("bytes", {"bytes": 7, "limit": 1}, "at-least")))
)


def validator(path: str) -> Draft202012Validator:
    """For the answer of one address."""
    answer = DOCUMENT["paths"][f"/api/v1/{path}"]["get"]["responses"]["200"]
    schema = answer["content"]["application/json"]["schema"]
    checker = Draft202012Validator.FORMAT_CHECKER
    return Draft202012Validator({**schema, "components": DOCUMENT["components"]}, format_checker=checker)


def sent(answer: Answer) -> dict[str, Any]:
    """As it arrives."""
    arrived: dict[str, Any] = json.loads(answer.to_json())
    return arrived


def a_full_view() -> View:
    """A view in which every part has something to show."""
    measured = figures(displaced=True)
    silent = replace(
        measured.brokers[0],
        replica_bytes=UNKNOWN,
        disk_total_bytes=UNKNOWN,
        disk_usable_bytes=UNKNOWN,
        disk_used_bytes=UNKNOWN,
    )
    return a_view(
        figures=replace(measured, brokers=(silent, *measured.brokers[1:])),
        run=a_run(),
        run_elsewhere=replace(a_run(), bytes_per_s=None),
        plans=(
            a_plan(),
            replace(a_plan(), bound_bytes=None, objections=OBJECTIONS, obstacles=("broker 3: full. Add room.",)),
        ),
        pause=Pause(by="Ada", since_ms=now_ms(), reason="release"),
        others=(Other(code="foreign", detail="Another tool moves.", blocking=True),),
        settings_problem="a mistake",
        drains=(Drain(broker=3, by="Ada", since_ms=now_ms()),),
        history_problem="denied",
        history_skipped=(SkippedRun(id="r0", code="other-version", parameters={"version": 2}, detail="newer"),),
    )


@pytest.mark.parametrize(
    "view",
    [
        a_full_view(),
        a_view(),
        View(),
        a_view(figures=None, outage=Outage(code="unreachable", detail="No answer.", since_ms=0), role=Role.STANDBY),
    ],
)
def test_every_answer_is_as_described(view: View) -> None:
    """From the first moment to the fullest page; an unknown figure is null."""
    validator("status").validate(sent(api.status(view, now_ms=now_ms(), read_only="")))
    validator("history").validate(sent(api.history(view)))
    validator("series").validate(sent(api.series(view)))
    validator("settings").validate(sent(api.settings(view)))


def test_a_plan_is_blocked_by_what_blocks_its_kind_now() -> None:
    """Made while another process held the lock, shown after a broker has gone: the reason is that of this moment."""
    plan = replace(a_plan(), blocked="Another process holds the cluster's lock.")
    settling = "Waiting for replicas to be in sync."
    held = a_view(plans=(plan,), permissions=(permission("moves", code="unsettled", detail=settling),))
    assert api.status(held, now_ms=0, read_only="").plans[0].blocked == settling
    free = a_view(plans=(plan,), permissions=(permission("moves"),))
    assert sent(api.status(free, now_ms=0, read_only=""))["plans"][0]["blocked"] is None


def test_a_plan_says_by_codes_why_it_waits() -> None:
    """With their figures, and the sentence for people."""
    plan = replace(a_plan(), objections=OBJECTIONS)
    shown = sent(api.status(a_view(plans=(plan,)), now_ms=0, read_only=""))
    assert shown["plans"][0]["objections"] == [
        {
            "code": "whole-rack",
            "cause": None,
            "parameters": {"racks": ["c"]},
            "detail": "no broker of rack c is up (repair.whole_racks is false), and it may return",
        },
        {
            "code": "bytes",
            "cause": "at-least",
            "parameters": {"bytes": 7, "limit": 1},
            "detail": "it copies at least 7 B (repair.max_bytes is 1 B)",
        },
    ]


def test_a_check_says_by_codes_what_it_decided() -> None:
    """Sentence after sentence; a check that only does something says it in a sentence alone."""
    said = Messages((LockNote("left-to", {"by": "Ada"}), LockNote("held", {"run": "r"}, "with-run")))
    reports = {"lock": CheckReport(detail=str(said), notes=notes_of(said), at_ms=0, duration_s=0.1)}
    reports |= {"observe": CheckReport(detail="Read.", notes=notes_of("Read."), at_ms=0, duration_s=0.1)}
    shown = sent(api.status(a_view(checks=reports), now_ms=0, read_only=""))["checks"]
    assert [(n["code"], n["cause"], n["parameters"]) for n in shown["lock"]["notes"]] == [
        ("left-to", None, {"by": "Ada"}),
        ("held", "with-run", {"run": "r"}),
    ]
    assert " ".join(n["detail"] for n in shown["lock"]["notes"]) == shown["lock"]["detail"]
    assert (shown["observe"]["detail"], shown["observe"]["notes"]) == ("Read.", [])


def test_every_address_is_described() -> None:
    """And no other one."""
    board = Board()
    parts = WebParts(
        board=board,
        metrics=Metrics(board),
        clock=WallClock(),
        action_requests=ActionRequests(None, lambda _: None, WallClock()),
        alive=lambda: Health(ok=True, sentence=""),
        ready=lambda: Health(ok=True, sentence=""),
        healthy=lambda: Health(ok=True, sentence=""),
    )
    served = {route.path for route in build(parts).routes if isinstance(route, Route)}
    assert {path for path in served if path.startswith("/api/")} == set(DOCUMENT["paths"])


def test_the_description_is_strict() -> None:
    """A field that is not described, or is missing, or is of another kind, fails: so the test above says something."""
    told = sent(api.status(a_full_view(), now_ms=now_ms(), read_only=""))
    assert told["cluster"]["brokers"][0]["replicaBytes"] is None
    wrong: list[dict[str, Any]] = [
        {**told, "more": 1},
        {k: v for k, v in told.items() if k != "lock"},
        {**told, "run": {**told["run"], "bytesLeft": "many"}},
        {**told, "plans": [{**told["plans"][0], "moves": None}]},
        {**told, "cluster": {**told["cluster"], "brokers": [{**told["cluster"]["brokers"][0], "rackk": "a"}]}},
    ]
    for answer in wrong:
        with pytest.raises(ValidationError):
            validator("status").validate(answer)


@pytest.mark.parametrize(
    "wrong",
    [
        {"balance": BalanceView(verdict="riddle")},
        {"outage": Outage(code="riddle", detail="", since_ms=0)},
        {"drains": (3,)},
        {"figures": replace(figures(), reassigning="many")},  # type: ignore[arg-type]
    ],
)
def test_an_answer_that_is_not_as_its_type_says_is_not_sent(wrong: dict[str, Any]) -> None:
    """Building a view checks nothing, since the loop does it all the time: writing it does."""
    with pytest.raises(PydanticSerializationError):
        api.status(a_view(**wrong), now_ms=0, read_only="").to_json()


def test_an_answer_is_a_document() -> None:
    """Every kind is one, and times have their zone."""
    told = sent(api.status(a_full_view(), now_ms=0, read_only="no token"))
    assert (told["apiVersion"], told["kind"], told["now"]) == ("ballast/v1", "DaemonStatus", "1970-01-01T00:00:00.000Z")
    assert told["plans"][0]["reasons"][0] == {"code": "disk", "count": 9}
    assert {kind for kind in ANSWERS if kind in DOCUMENT["components"]["schemas"]} == set(ANSWERS)


@pytest.mark.parametrize(
    ("kind", "body", "recorded"),
    [
        ("pause", "", {}),
        ("pause", '{"by": "Ada", "reason": "release"}', {"reason": "release"}),
        ("resume", "{}", {}),
        ("approve", '{"plan": "moves-1"}', {"plan": "moves-1"}),
        ("reject", '{"plan": "moves-1", "reason": ""}', {"plan": "moves-1", "reason": ""}),
        ("plan", '{"intent": "balance"}', {"intent": "balance"}),
        ("plan", '{"intent": "drain", "broker": 3}', {"intent": "drain", "broker": "3"}),
        ("end-drain", '{"broker": 3}', {"broker": "3"}),
        ("cancel", '{"run": "r1", "rollback": true}', {"run": "r1"}),
        ("cancel", '{"run": null}', {}),
    ],
)
def test_a_request_is_recorded_as_it_was_asked(kind: str, body: str, recorded: dict[str, str]) -> None:
    """What was not said is not there, and a broker is a text in the journal."""
    asked = read(kind, body.encode())
    assert asked.to_record() == recorded
    schema = DOCUMENT["paths"][f"/api/v1/actions/{kind}"]["post"]["requestBody"]["content"]["application/json"][
        "schema"
    ]
    validated = Draft202012Validator({**schema, "components": DOCUMENT["components"]})
    validated.validate(json.loads(body or "{}"))


@pytest.mark.parametrize(
    ("kind", "body", "said"),
    [
        ("pause", b'{"reasn": "release"}', "reasn: Extra inputs are not permitted"),
        ("pause", b'{"reason": 1}', "reason: Input should be a valid string"),
        ("pause", b'{"reason": null}', "reason: "),
        ("pause", b'{"reason": "a\\nb"}', "reason: holds characters that cannot be shown"),
        ("pause", b'{"reason": "%s"}' % (b"x" * 201), "reason: String should have at most 200 characters"),
        ("pause", b'{"by": "%s"}' % (b"x" * 81), "by: String should have at most 80 characters"),
        ("pause", b'{"by": "\\ud800"}', "The body is not JSON: unexpected end of hex escape at line 1 column 15."),
        ("pause", b'{"\\ud800": "x"}', "The body is not JSON: unexpected end of hex escape at line 1 column 9."),
        ("pause", b'{"by": "a", "by": "b"}', "The body is refused: by: this key is there twice."),
        ("pause", b'{"by": "a", "\\u0062y": "a"}', "The body is refused: by: this key is there twice."),
        ("pause", b'{"by": "\xff"}', "not JSON"),
        ("pause", b'{"by": NaN}', "by: "),
        ("pause", '{"by": "a"}'.encode("utf-16"), "not JSON"),
        ("pause", b"[]", "a JSON object"),
        ("pause", b"[" * 9_000, "not JSON"),
        ("pause", b'{"by": ' + b'{"a":' * 1_500 + b"1" + b"}" * 1_500 + b"}", ""),
        ("resume", b'{"reason": "x"}', "reason: Extra inputs are not permitted"),
        ("approve", b"{}", "plan: Field required"),
        ("approve", b'{"plan": ""}', "plan: String should have at least 1 character"),
        ("plan", b'{"intent": "shuffle"}', "intent: Input should be 'balance', 'drain' or 'elect'"),
        ("plan", b'{"intent": "drain"}', "broker should be there with the intent drain"),
        ("plan", b'{"intent": "elect", "broker": 1}', "broker should be there with the intent drain"),
        ("end-drain", b'{"broker": "3"}', "broker: Input should be a valid integer"),
        ("end-drain", b'{"broker": true}', "broker: Input should be a valid integer"),
        ("end-drain", b'{"broker": 1e400}', "broker: "),
        ("end-drain", b'{"broker": %s}' % (b"9" * 5_000), ""),
        ("end-drain", b'{"broker": -1}', "broker: Input should be greater than or equal to 0"),
        ("end-drain", b'{"broker": 99999999999999999999}', "broker: Input should be less than or equal to 2147483647"),
        ("cancel", b'{"rollback": "true"}', "rollback: Input should be a valid boolean"),
        ("cancel", b'{"rollBack": true, "why": 1}', "rollBack: Extra inputs are not permitted. And 1 more like it."),
    ],
)
def test_what_is_no_request_is_refused_with_its_place(kind: str, body: bytes, said: str) -> None:
    """Nothing is dropped silently, and the sentence can be sent."""
    with pytest.raises(HTTPException) as refusal:
        read(kind, body)
    assert refusal.value.status_code == 400
    assert said in refusal.value.detail
    refusal.value.detail.encode()


def test_every_action_is_described() -> None:
    """By the type that reads it."""
    for kind, body in ACTIONS.items():
        assert DOCUMENT["paths"][f"/api/v1/actions/{kind}"]["post"]["summary"] == body.__doc__
        assert DOCUMENT["components"]["schemas"][body.__name__]["additionalProperties"] is False
