"""The API's own description, in OpenAPI 3.1, from the types of its answers and requests."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from pydantic import TypeAdapter
from pydantic.json_schema import JsonSchemaMode

from ballast import __version__
from ballast.core.document_types import PlainSchema
from ballast.daemon.web.answers import (
    ANSWERS,
    Answer,
    DaemonBroker,
    DaemonPartitions,
    DaemonRuns,
    DaemonSeries,
    DaemonSettings,
    DaemonStatus,
    DaemonTopic,
    RequestAccepted,
    RequestRefused,
)
from ballast.daemon.web.details import STATES
from ballast.daemon.web.requests import ACTIONS, Body

_ANSWERED: Final[dict[str, type[Answer]]] = {
    "status": DaemonStatus,
    "history": DaemonRuns,
    "series": DaemonSeries,
    "settings": DaemonSettings,
    "brokers/{name}": DaemonBroker,
    "topics/{name}": DaemonTopic,
    "partitions/{name}": DaemonPartitions,
}
_AFTER: Final = "Wait, for 25 s at most, until there is a newer version than this."
_NAMES: Final = {
    "brokers/{name}": "The broker's id.",
    "topics/{name}": "The topic's name.",
    "partitions/{name}": f"One of {', '.join(STATES)}.",
}
_SCHEME: Final = "A token of web.token_file. Without that setting every action answers 403; reading takes one where web.read_needs_token is set."
_REFUSALS: Final = {
    "400": "The body is not what it should be; the sentence names the place.",
    "401": "The token is missing or wrong.",
    "403": "The page is read-only, or the request came from another site.",
    "409": "The daemon cannot take it now; the sentence says why.",
    "413": "The body is too long.",
}


@cache
def document() -> dict[str, Any]:
    """What ``/api/v1/openapi.json`` says."""
    types: list[tuple[str, JsonSchemaMode, TypeAdapter[Any]]] = [
        *((kind, "serialization", TypeAdapter(answer)) for kind, answer in ANSWERS.items()),
        *((kind, "validation", TypeAdapter(body)) for kind, body in ACTIONS.items()),
    ]
    _, schemas = TypeAdapter.json_schemas(
        types, schema_generator=PlainSchema, ref_template="#/components/schemas/{model}"
    )
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Ballast",
            "version": __version__,
            "description": "What one Ballast process knows about its cluster, and what a person may ask of it.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": {
            **{f"/api/v1/{path}": {"get": _get(path, answer)} for path, answer in _ANSWERED.items()},
            "/api/v1/openapi.json": {"get": {"summary": "This description.", "responses": {"200": _this()}}},
            **{f"/api/v1/actions/{kind}": {"post": _post(body)} for kind, body in ACTIONS.items()},
        },
        "components": {
            "schemas": schemas["$defs"],
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer", "description": _SCHEME}},
        },
    }


def _get(path: str, answer: type[Answer]) -> dict[str, Any]:
    named = {"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}
    after = {"name": "after", "in": "query", "schema": {"type": "integer"}, "description": _AFTER}
    parameters = [named | {"description": _NAMES[path]}] if path in _NAMES else [after] if path == "status" else []
    missing = {"404": _describe("The cluster has nothing of this name."), "503": _describe("It has not been read yet.")}
    return {
        "summary": answer.__doc__,
        "parameters": parameters,
        "security": [{}, {"token": []}],
        "responses": {
            "200": _describe(str(answer.__doc__), answer),
            "401": _describe("web.read_needs_token is set, and the token is missing or wrong."),
            **(missing if path in _NAMES else {}),
        },
    }


def _post(body: type[Body]) -> dict[str, Any]:
    return {
        "summary": body.__doc__,
        "security": [{"token": []}],
        "requestBody": {"content": _content(body)},
        "responses": {
            "202": _describe("Taken; the next check executes it.", RequestAccepted),
            **{code: _describe(text) for code, text in _REFUSALS.items()},
        },
    }


def _describe(text: str, answer: type[Answer] = RequestRefused) -> dict[str, Any]:
    return {"description": text, "content": _content(answer)}


def _content(model: type[Answer | Body]) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": f"#/components/schemas/{model.__name__}"}}}


def _this() -> dict[str, Any]:
    return {"description": "This description.", "content": {"application/json": {"schema": {"type": "object"}}}}
