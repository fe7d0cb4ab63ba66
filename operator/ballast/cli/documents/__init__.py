"""The documents that ``--output json`` prints, each defined once as a type; its JSON Schema is generated from it.

One style: an object with ``apiVersion`` and ``kind``, camelCase keys, times in ISO 8601 with their zone, bytes as bytes, and
null for what is not known.  ``docs/json.md`` tells what they are for; ``tools/json_schemas.py`` writes ``docs/schemas``.
"""

from __future__ import annotations

from typing import Any, Final

from pydantic.json_schema import GenerateJsonSchema

from ballast.cli.documents import cluster, history, runs, sandbox, simulation
from ballast.core.document_types import Document
from ballast.core.plan import file

__all__ = ["DOCUMENTS", "schema"]

DOCUMENTS: Final[dict[str, type[Document]]] = {
    found.model_fields["kind"].default: found
    for module in (cluster, simulation, runs, history, sandbox, file)
    for found in vars(module).values()
    if isinstance(found, type) and issubclass(found, Document) and found is not Document
}
"""By kind."""


class _Plain(GenerateJsonSchema):
    """A key's title would only repeat it; every key is there but those that the type itself calls optional."""

    def field_title_should_be_set(self, _: object) -> bool:
        return False

    def field_is_required(self, field: Any, total: bool) -> bool:  # noqa: FBT001 — pydantic calls it so
        return bool(field.get("required", total)) if field["type"] == "typed-dict-field" else True


def schema(kind: str) -> dict[str, Any]:
    """The JSON Schema of a document."""
    found = DOCUMENTS[kind].model_json_schema(mode="serialization", schema_generator=_Plain)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **found}
