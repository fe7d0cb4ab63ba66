"""A plan that a person or a mode may start, and the name by which every process knows it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from ballast.core.catalogue import Message
from ballast.core.plan import Plan
from ballast.daemon.policy import ActionKind
from ballast.ports.journal import Request


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A plan and the kind of action that would execute it."""

    id: str
    kind: ActionKind
    plan: Plan
    approved_by: str | None = None
    objections: tuple[Message, ...] = ()
    """Why it waits for approval whatever the mode; empty where it need not."""
    request: Request | None = None
    """Of the person who asked for it; None where Ballast made it by itself."""


def name_of(kind: ActionKind, plan: Plan) -> str:
    """A plan's name says what it would do: whichever replica makes it, and however often, it is the same name.

    So a person may approve on any replica's page what another one executes.  Sizes are left out, since they grow while
    producers write, and so are log dirs, which go by the room of the moment: neither makes it another plan.
    """
    digest = hashlib.sha256(plan.fingerprint.encode())
    for move in plan.moves:
        digest.update(f"\n{move.topic} {move.partition} {move.old} {move.new}".encode())
    for name in plan.elections:
        digest.update(f"\n{name.topic} {name.partition}".encode())
    return f"{kind.value}-{digest.hexdigest()[:10]}"
