"""Ballast's command line as a process that dies by ``kill -9`` at a chosen point: ``python -m tests.containers.mortal POINT ARGUMENT…``.

Points: ``journaled:STAGE``, right after a move or an election in this stage became durable in the journal and before anything
is sent; ``entering:STAGE``, in the step that moves there, where the machine passes through a stage too fast for the journal;
``sent:CALL``, right after the cluster took a write and before anybody hears of it; ``none``, to live.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Sequence
from functools import partial, wraps
from typing import Any, Final

from ballast.adapters.journal.topic import TopicJournal
from ballast.adapters.kafka.cluster import KafkaCluster
from ballast.cli.main import main
from ballast.executor.journal.records import unpack
from ballast.executor.machine import observe as absorb
from ballast.executor.machine import transitions
from ballast.executor.machine.notes import MoveNote
from ballast.executor.machine.run import MoveRun, Now
from ballast.executor.machine.stages import Stage
from ballast.ports.journal import Record
from ballast.wiring import runs
from ballast.wiring.journal import this_process

LEASE_S: Final = 3.0
"""A dead holder's lease is what its successor waits for.  Shorter than people's, since only one of these lives at a time: a
lease that lapses while no other process takes it is renewed."""


def die() -> None:
    """Nothing is caught, flushed or released."""
    os.kill(os.getpid(), signal.SIGKILL)


def dies_journaled(stage: str) -> None:
    """Die when a record of this stage is durable."""
    append = TopicJournal.append

    @wraps(append)
    def mortal(self: TopicJournal, records: Sequence[Record]) -> None:
        append(self, records)
        written = [part for record in records if record.value is not None for part in unpack(record)]
        if any(is_in(record, stage) for record in written):
            die()

    TopicJournal.append = mortal  # type: ignore[method-assign]


def is_in(record: Record, stage: str) -> bool:
    """Whether this is a move (``moving``) or an election (``election-requested``) in the stage."""
    kind = record.key.partition("/")[0]
    prefix = {"move": "", "election": "election-"}.get(kind)
    return prefix is not None and record.value is not None and f"{prefix}{record.value['stage']}" == stage


def dies_entering(stage: str) -> None:
    """Die in the step in which the machine sees a move in this stage."""
    enter = transitions.move_to

    @wraps(enter)
    def mortal(m: MoveRun, to: Stage, now: Now, why: MoveNote | None = None) -> MoveRun:
        if to.code == stage:
            die()
        return enter(m, to, now, why)

    absorb.move_to = mortal  # type: ignore[assignment, attr-defined]


def dies_sent(call: str) -> None:
    """Die when the cluster has answered this call."""
    perform: Callable[..., Any] = getattr(KafkaCluster, call)

    @wraps(perform)
    def mortal(self: KafkaCluster, *arguments: Any, **options: Any) -> None:
        perform(self, *arguments, **options)
        die()

    setattr(KafkaCluster, call, mortal)


if __name__ == "__main__":
    kind, _, what = sys.argv.pop(1).partition(":")
    if kind == "journaled":
        dies_journaled(what)
    elif kind == "entering":
        dies_entering(what)
    elif kind == "sent":
        dies_sent(what)
    runs.this_process = partial(this_process, lease_s=LEASE_S)  # type: ignore[attr-defined]
    sys.exit(main())
