"""The style of JSON documents as a base of their types: what is printed, and the files that are read again.

An object has camelCase keys and nothing beside what its type names; a whole document has ``apiVersion`` and ``kind``.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Final, Literal, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
)
from pydantic.alias_generators import to_camel, to_snake
from pydantic.json_schema import GenerateJsonSchema

from ballast.core.document_errors import refusal, refuse_repeated_keys

API_VERSION: Final = "ballast/v1"


def key_of(name: str) -> str:
    """In documents, where a moment is a time: ``since_ms`` inside is ``since``."""
    return to_camel(name.removesuffix("_ms") if name.endswith(_MOMENTS) else name)


_MOMENTS: Final = ("at_ms", "now_ms", "since_ms")
STYLE: Final = ConfigDict(
    alias_generator=key_of,
    validate_by_name=True,
    validate_by_alias=True,
    serialize_by_alias=True,
    extra="forbid",
    frozen=True,
    allow_inf_nan=False,
    use_attribute_docstrings=True,
)
"""Built by the names here, read and written by those of JSON."""


def _finite(values: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
    # pydantic refuses infinite numbers where a number belongs, and not where anything may be.
    try:
        if info.mode == "json":
            json.dumps(values, allow_nan=False)
    except ValueError:
        raise ValueError("should hold finite numbers only") from None
    return values


Figures = Annotated[dict[str, Any], AfterValidator(_finite)]
"""Whatever JSON can say, by names."""


def figures(parameters: dict[str, Any]) -> dict[str, Any]:
    """The same by the names inside, as a file has them."""
    return {to_snake(k): tuple(v) if isinstance(v, list) else v for k, v in parameters.items()}


class Part(BaseModel):
    """An object of a document."""

    model_config = STYLE


class Document(Part):
    """A whole document; a subclass sets ``kind`` to the name of its class."""

    api_version: Literal["ballast/v1"] = API_VERSION
    kind: str


D = TypeVar("D", bound=Document)


class PlainSchema(GenerateJsonSchema):
    """A key's title would only repeat it; every key that is written is there but those that the type itself calls optional.

    So what it would be by default is said only of what is read.
    """

    def default_schema(self, schema: Any) -> dict[str, Any]:
        """Without the default of what is written."""
        return self.generate_inner(schema["schema"]) if self.mode == "serialization" else super().default_schema(schema)

    def field_title_should_be_set(self, _: object) -> bool:
        """Never."""
        return False

    def field_is_required(self, field: Any, total: bool) -> bool:  # noqa: FBT001 — pydantic calls it so
        """What is read may leave out what has a default."""
        written = self.mode == "serialization" and field["type"] != "typed-dict-field"
        return written or super().field_is_required(field, total)


def schema_of(document: type[Any]) -> dict[str, Any]:
    """The JSON Schema of a document as it is written."""
    found = TypeAdapter(document).json_schema(mode="serialization", schema_generator=PlainSchema)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **found}


def read(document: type[D], text: str, *, source: str, what: str, hint: str) -> D:
    """A document from a file; whatever is not one is refused with its place.  ``hint`` says how to make a right one."""
    try:
        found = document.model_validate_json(text, strict=True, by_alias=True, by_name=False)
    except ValidationError as error:
        version = ("apiVersion", API_VERSION)
        raise refusal(error, source=source, what=what, hint=hint, form="kind", version=version) from None
    refuse_repeated_keys(text, found.model_dump_json(exclude_unset=True).count(":"), source=source, hint=hint)
    return found
