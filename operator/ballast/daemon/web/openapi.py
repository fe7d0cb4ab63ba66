"""The API's own description, in OpenAPI 3.1."""

from __future__ import annotations

from typing import Any

from ballast import __version__

_TEXT = {"type": "string"}
_COUNT = {"type": "integer"}


def document() -> dict[str, Any]:
    """What ``/api/v1/openapi.json`` says."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Ballast",
            "version": __version__,
            "description": "What one Ballast process knows about its cluster, and the four things a person may ask of it.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": {
            "/api/v1/status": {
                "get": _get(
                    "The cluster, the run in flight, the plans that wait and what every tick said last.",
                    {"type": "object", "required": _STATUS_KEYS, "properties": _STATUS},
                    parameters=[
                        {
                            "name": "after",
                            "in": "query",
                            "schema": _COUNT,
                            "description": "Wait, for 25 s at most, until there is a newer version than this.",
                        }
                    ],
                )
            },
            "/api/v1/history": {
                "get": _get(
                    "Runs that ended, newest first.",
                    {"type": "object", "properties": {"runs": {"type": "array", "items": {"type": "object"}}}},
                )
            },
            "/api/v1/settings": {
                "get": _get(
                    "The settings in force; secrets are never among them.",
                    {"type": "object", "properties": {"settings": {"type": "array", "items": {"type": "object"}}}},
                )
            },
            "/api/v1/openapi.json": {"get": _get("This description.", {"type": "object"})},
            **{f"/api/v1/actions/{kind}": {"post": _act(what, extra)} for kind, (what, extra) in _ACTIONS.items()},
        },
        "components": {
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "The content of web.token_file. Without that setting every action answers 403.",
                }
            }
        },
    }


_ACTIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "pause": ("Start nothing new until somebody resumes; it survives restarts.", {"reason": _TEXT}),
    "resume": ("Switch the pause off.", {}),
    "approve": ("Let a waiting plan start.", {"plan": {**_TEXT, "description": "The plan's id, as status shows it."}}),
    "cancel": (
        "Take the moves in flight back.",
        {"rollback": {"type": "boolean", "description": "Also undo what has already arrived."}},
    ),
}

_STATUS: dict[str, Any] = {
    "version": {**_COUNT, "description": "Grows with every change."},
    "now_ms": _COUNT,
    "name": _TEXT,
    "instance": _TEXT,
    "started_at_ms": _COUNT,
    "role": {"enum": ["starting", "observer", "leader", "standby", "stopping"]},
    "mode": {"enum": ["observe", "approve", "auto"]},
    "actions_enabled": {"type": "boolean", "description": "False: the page is read-only."},
    "cluster": {"type": ["object", "null"]},
    "cluster_error": {"type": ["string", "null"]},
    "standings": {"type": "array", "items": {"type": "object"}},
    "others": {"type": "array", "items": {"type": "object"}},
    "pause": {"type": ["object", "null"]},
    "lock": {"type": "object"},
    "level": {
        "type": "object",
        "properties": {"verdict": {"enum": ["unknown", "level", "uneven", "stuck"]}, "sentence": _TEXT},
    },
    "run": {"type": ["object", "null"]},
    "run_elsewhere": {"type": ["object", "null"]},
    "plans": {"type": "array", "items": {"type": "object"}},
    "ticks": {"type": "object"},
    "throttle_debts": _COUNT,
    "settings_problem": {"type": ["string", "null"]},
}
_STATUS_KEYS = sorted(_STATUS)


def _get(summary: str, schema: dict[str, Any], *, parameters: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    return {
        "summary": summary,
        **({"parameters": parameters} if parameters else {}),
        "responses": {"200": {"description": summary, "content": {"application/json": {"schema": schema}}}},
    }


def _act(summary: str, properties: dict[str, Any]) -> dict[str, Any]:
    body = {
        "type": "object",
        "properties": {"by": {**_TEXT, "description": "Who asks, for the audit line."}, **properties},
    }
    problem = {"type": "object", "properties": {"error": _TEXT}}
    return {
        "summary": summary,
        "security": [{"token": []}],
        "requestBody": {"content": {"application/json": {"schema": body}}},
        "responses": {
            "202": {
                "description": "Taken; the next tick carries it out.",
                "content": {"application/json": {"schema": {"type": "object", "properties": {"request": _TEXT}}}},
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
