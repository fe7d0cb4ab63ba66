"""Brokers that people drain: they are emptied and take no replica, in every plan, until a person ends the drain.

A drain begins with the approval of its plan and stands in the journal, so that it outlasts restarts and fail-overs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from ballast.core.catalogue import Message
from ballast.core.cluster import ClusterState
from ballast.core.cluster.drain import Drain
from ballast.daemon.acting.answers import answer, refusal
from ballast.daemon.acting.proposal import Proposal
from ballast.daemon.context.access import Access
from ballast.daemon.context.view import Board, Role, View
from ballast.daemon.observing.reading import Reading
from ballast.daemon.policy import LivePolicy
from ballast.executor.journal.drains import drain_record
from ballast.ports.journal import Request
from ballast.ports.time import Clock


def named_broker(state: ClusterState, request: Request) -> int:
    """The broker that a request means; raises where the cluster has none of this id."""
    return _broker_among([b.id for b in state.brokers], request, "broker-unknown")


def _broker_among(known: Iterable[int], request: Request, otherwise: str) -> int:
    """The broker that a request names, if it is one of these; the refusal of this code otherwise."""
    broker = str(request.body.get("broker", ""))
    if not broker.isdecimal() or int(broker) not in known:
        raise refusal(otherwise, broker=broker or "without a number", drained=list(known))
    return int(broker)


def broker_to_drain(proposal: Proposal) -> int | None:
    """The broker that this plan was asked for to drain; None where it was asked for something else."""
    request = proposal.request
    if request is None or request.body.get("intent") != "drain":
        return None
    return int(str(request.body["broker"]))


@dataclass(frozen=True, slots=True)
class Drains:
    """Begins and ends drains of brokers; the board shows them, the journal keeps them."""

    clock: Clock
    board: Board
    policy: LivePolicy
    access: Access
    reading: Reading
    look_again: Callable[[], None]

    def begin(self, broker: int, by: str) -> None:
        """Drain the broker: from now on no plan puts a replica on it."""
        drain = Drain(broker=broker, by=by, since_ms=self.clock.now_ms())
        self.access.write(drain_record(broker, drain))

        def add_drain(view: View) -> Mapping[str, object]:
            others = [d for d in view.drains if d.broker != broker]
            return {"drains": tuple(sorted((*others, drain), key=lambda d: d.broker))}

        self.board.update(add_drain)
        self.look_again()

    def begin_empty(self, request: Request) -> Message | None:
        """A broker without replicas needs no plan and no approval to be drained: it stays empty.  None where a plan is needed."""
        state = self.reading.state
        if request.body.get("intent") != "drain" or state is None or self.board.view.role is not Role.ACTIVE:
            return None
        broker = named_broker(state, request)
        if (state.partitions.replica == broker).any():
            return None
        self.begin(broker, request.by)
        return answer("drained-empty", broker=broker)

    def end(self, request: Request) -> Message:
        """The broker takes its share again; the next balance fills it."""
        drained = sorted(d.broker for d in self.board.view.drains)
        broker = _broker_among(drained, request, "not-draining")
        self.access.write(drain_record(broker, None))
        self.board.update(lambda view: {"drains": tuple(d for d in view.drains if d.broker != broker)})
        self.look_again()
        kept = "kept" if broker in self.policy.now.balance.draining else ""
        return answer("drain-ended", kept, by=request.by, broker=broker)
