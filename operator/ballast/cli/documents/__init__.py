"""The documents that ``--output json`` prints, each defined once as a type; its JSON Schema is generated from it.

One style: an object with ``apiVersion`` and ``kind``, camelCase keys, times in ISO 8601 with their zone, bytes as bytes, and
null for what is not known.  ``docs/json.md`` tells what they are for; ``tools/json_schemas.py`` writes ``docs/schemas``.
"""

from __future__ import annotations

from typing import Final

from ballast.cli.documents import cluster, history, runs, sandbox, simulation
from ballast.core.document_types import Document
from ballast.core.plan import file

__all__ = ["DOCUMENTS"]

DOCUMENTS: Final[dict[str, type[Document]]] = {
    found.model_fields["kind"].default: found
    for module in (cluster, simulation, runs, history, sandbox, file)
    for found in vars(module).values()
    if isinstance(found, type) and issubclass(found, Document) and found is not Document
}
"""By kind."""
