"""Requests to the process that holds the lock: one that acts for a cluster is asked before its lock is taken."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from typing import Final

from ballast.core.wording import ShowLine
from ballast.errors import Refused
from ballast.ports.journal import Journal, Request
from ballast.wiring.journal import this_process

ANSWER_WITHIN_S: Final = 20.0
LOOK_S: Final = 0.5


def ask_holder(log: Journal, kind: str, body: Mapping[str, str], what: str, on_line: ShowLine) -> str | None:
    """Leave a request for the process that holds the lock; its answer, None when there is none, or it does not answer.

    Raises ``Refused`` with what it says where it refuses: then nothing was done.
    """
    holder = log.holder()
    if holder is None:
        return None
    request_id = uuid.uuid4().hex
    by = this_process(f"ballast {kind}").description
    log.request(Request(request_id, kind, by, time.time_ns() // 1_000_000, body))
    on_line(f"Requested from {holder.description}: {what}.")
    deadline = time.monotonic() + ANSWER_WITHIN_S
    while time.monotonic() < deadline:
        for request in log.requests():
            if request.id == request_id and request.answer is not None:
                if request.refused:
                    raise Refused(f"{holder.description} refuses to {what}: {request.answer}")
                return request.answer
        time.sleep(LOOK_S)
    on_line("No answer.")
    return None
