"""What the daemon makes of other tools that move things here: ``core.cluster.balancers`` finds them, this judges whether to start nothing.

Pure.  A foreign reassignment always keeps Ballast from starting anything: it ends.  A balancer that is installed keeps it from that
from moves until the operator says that it may be ignored: two balancers undo each other for ever.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from ballast.core.cluster import ClusterState, TopicPartition
from ballast.core.cluster.balancers import (
    OtherBalancer,
    controller_interval_s,
    cordoned_brokers,
    foreign_moves,
    other_balancers,
)
from ballast.core.wording import human_brokers, human_time
from ballast.daemon.context.view import Other
from ballast.daemon.policy import IGNORABLE

_NAMED: Final = 3


def find(
    state: ClusterState, ours: Collection[TopicPartition] = (), *, ignore: Collection[str] = ()
) -> tuple[Other, ...]:
    """Other tools that move partitions or leaders here, the ones that move right now first."""
    judged = [_judge(other, state, ignore) for other in other_balancers(state)]
    # What blocks stands before what is only worth knowing, so that the first of the list says why nothing happens.
    judged.sort(key=lambda other: not other.blocking)
    return (*_foreign(foreign_moves(state, ours)), *judged, *_list_cordoned(cordoned_brokers(state)))


def _judge(other: OtherBalancer, state: ClusterState, ignore: Collection[str]) -> Other:
    if other.id == "controller":
        often = f"runs preferred leader elections itself every {human_time(controller_interval_s(state))}"
        return Other(code=other.id, detail=f"The controller {often}: {other.evidence}.", blocking=False)
    if other.id not in IGNORABLE:
        sentence = (
            f"This is Amazon MSK ({other.evidence}): brokers of its Express type rebalance by themselves, which Kafka's "
            "protocol does not say; keep Ballast in observe there."
        )
        return Other(code=other.id, detail=sentence, blocking=False)
    sentence = f"{other.name} is installed here: {other.evidence}."
    if other.id in ignore:
        return Other(code=other.id, detail=f"{sentence} The settings say to ignore it.", blocking=False)
    way = f"Set guards.ignore_balancers: [{other.id}] if it moves nothing."
    return Other(code=other.id, detail=f"{sentence} {way}", blocking=True)


def _foreign(foreign: tuple[TopicPartition, ...]) -> tuple[Other, ...]:
    if not foreign:
        return ()
    named = ", ".join(str(n) for n in foreign[:_NAMED]) + (" and others" if len(foreign) > _NAMED else "")
    what = "A reassignment" if len(foreign) == 1 else f"{len(foreign)} reassignments"
    sentence = f"{what} that Ballast did not start: {named}."
    return (Other(code="foreign-reassignment", detail=sentence, blocking=True),)


def _list_cordoned(brokers: tuple[int, ...]) -> tuple[Other, ...]:
    if not brokers:
        return ()
    sentence = f"Log dirs of {human_brokers(brokers)} are cordoned: nothing new is placed there."
    return (Other(code="cordoned", detail=sentence, blocking=False),)
