"""What the HTTP API answers, each answer defined once as a type; OpenAPI and ``docs/schemas`` are generated from it.

One style with what ``--output json`` prints.  ``api`` and ``details`` beside this package build the answers.
"""

from __future__ import annotations

from typing import Final

from ballast.daemon.web.answers import cluster, details, runs, status
from ballast.daemon.web.answers.base import Answer

__all__ = ["ANSWERS", "Answer"]

ANSWERS: Final[dict[str, type[Answer]]] = {
    found.__name__: found
    for module in (status, runs, cluster, details)
    for found in vars(module).values()
    if isinstance(found, type) and issubclass(found, Answer) and found is not Answer
}
"""By kind."""
