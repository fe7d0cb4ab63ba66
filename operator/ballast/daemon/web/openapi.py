"""The API's own description, in OpenAPI 3.1."""

from __future__ import annotations

from typing import Any

from ballast import __version__
from ballast.daemon.web.details import STATES
from ballast.daemon.web.shapes import (
    BROKER,
    COUNT,
    FLAG,
    PARTITIONS,
    TEXT,
    TOPIC,
    array,
    closed,
    components,
    or_null,
    ref,
)


def document() -> dict[str, Any]:
    """What ``/api/v1/openapi.json`` says."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Ballast",
            "version": __version__,
            "description": "What one Ballast process knows about its cluster, and what a person may ask of it.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": {
            "/api/v1/status": {
                "get": _get(
                    "The cluster, the run in flight, the plans that wait and what every tick said last.",
                    ref("Status"),
                    parameters=[
                        {
                            "name": "after",
                            "in": "query",
                            "schema": COUNT,
                            "description": "Wait, for 25 s at most, until there is a newer version than this.",
                        }
                    ],
                )
            },
            "/api/v1/history": {
                "get": _get(
                    "Runs that ended, newest first.",
                    closed(
                        "Fifty at most.",
                        {
                            "runs": array(ref("Run")),
                            "skipped": array(
                                closed("A run that the journal does not tell whole.", {"id": TEXT, "why": TEXT})
                            ),
                            "problem": {**or_null(TEXT), "description": "Why they are not known; null where they are."},
                        },
                    ),
                )
            },
            "/api/v1/series": {
                "get": _get(
                    "The last day, a point a minute; what was before this process comes from samples.store, where it is set.",
                    closed(
                        "Oldest first.",
                        {
                            "points": array(ref("Point")),
                            "problem": {
                                **or_null(TEXT),
                                "description": "Why points are missing or not kept; null where nothing fails.",
                            },
                        },
                    ),
                )
            },
            **{
                f"/api/v1/{what}/{{name}}": {"get": _get(summary, shape, parameters=[_NAME | {"description": means}])}
                for what, summary, shape, means in (
                    ("brokers", "One broker: disks, throttles, replicas.", BROKER, "The broker's id."),
                    ("topics", "One topic and its partitions.", TOPIC, "The topic's name."),
                    ("partitions", "The partitions in one state.", PARTITIONS, f"One of {', '.join(STATES)}."),
                )
            },
            "/api/v1/settings": {
                "get": _get(
                    "The settings in force; secrets are never among them.",
                    closed(
                        "By their names.",
                        {"settings": array(closed("One.", {"name": TEXT, "value": TEXT, "changed": FLAG}))},
                    ),
                )
            },
            "/api/v1/openapi.json": {"get": _get("This description.", {"type": "object"})},
            **{f"/api/v1/actions/{kind}": {"post": _act(what, extra)} for kind, (what, extra) in _ACTIONS.items()},
        },
        "components": {
            "schemas": components(),
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "A token of web.token_file. Without that setting every action answers 403; reading takes one where "
                    "web.read_needs_token is set.",
                }
            },
        },
    }


_NAME: dict[str, Any] = {"name": "name", "in": "path", "required": True, "schema": TEXT}
_ACTIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "pause": ("Start nothing new until it is resumed; it survives restarts.", {"reason": TEXT}),
    "resume": ("Switch the pause off.", {}),
    "plan": (
        "Have a plan made; it waits for approval.",
        {
            "intent": {"enum": ["balance", "drain", "elect"]},
            "broker": {
                **TEXT,
                "description": "The id of the broker to drain; from its approval on it takes no replica until the drain is ended.",
            },
        },
    ),
    "end-drain": (
        "Let a drained broker take replicas again.",
        {"broker": {**TEXT, "description": "The broker's id, as `drains` of status names it."}},
    ),
    "reject": ("Do not propose this plan again.", {"plan": TEXT, "reason": TEXT}),
    "approve": ("Let a waiting plan start.", {"plan": {**TEXT, "description": "The plan's id, as status shows it."}}),
    "cancel": (
        "Cancel the reassignments in progress.",
        {
            "run": {
                **TEXT,
                "description": "The run that is meant, as status shows it; another one is then left alone.",
            },
            "rollback": {**FLAG, "description": "Also undo what has already arrived."},
        },
    ),
}


def _get(summary: str, schema: dict[str, Any], *, parameters: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    return {
        "summary": summary,
        **({"parameters": parameters} if parameters else {}),
        "security": [{}, {"token": []}],
        "responses": {
            "200": {"description": summary, "content": {"application/json": {"schema": schema}}},
            "401": {"description": "web.read_needs_token is set, and the token is missing or wrong."},
        },
    }


def _act(summary: str, properties: dict[str, Any]) -> dict[str, Any]:
    body = {
        "type": "object",
        "properties": {"by": {**TEXT, "description": "Who asks, for the audit line."}, **properties},
    }
    problem = {"type": "object", "properties": {"error": TEXT}}
    return {
        "summary": summary,
        "security": [{"token": []}],
        "requestBody": {"content": {"application/json": {"schema": body}}},
        "responses": {
            "202": {
                "description": "Taken; the next tick carries it out.",
                "content": {
                    "application/json": {"schema": closed("The request's id.", {"request": TEXT, "accepted": FLAG})}
                },
            },
            **{
                code: {"description": text, "content": {"application/json": {"schema": problem}}}
                for code, text in (
                    ("401", "The token is missing or wrong."),
                    ("403", "The page is read-only, or the request came from another site."),
                    ("409", "The daemon cannot take it now; the sentence says why."),
                )
            },
        },
    }
