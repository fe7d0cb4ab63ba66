"""Changing clusters whose brokers are older than Kafka 2.4, through ZooKeeper's two admin znodes.

``/admin/reassign_partitions`` holds one batch at a time: the controller performs it and deletes the znode when the last of it
is done.  A batch that stands there is waited for and never deleted or added to, be it Ballast's or a foreign one.  The controller believes
what it reads, so everything is validated here first: an unknown broker would be accepted and stay stuck for ever.
``/admin/preferred_replica_election`` is consumed at once; large elections go in several pieces, each under the size that
ZooKeeper takes, where the stock tool writes one and fails.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from ballast.adapters.clock import SystemClock
from ballast.adapters.zookeeper.client import ELECTION, REASSIGN, LeaderAndIsr, ZooKeeper, _translate_errors
from ballast.adapters.zookeeper.lock import ZooKeeperLock, wait_until_gone
from ballast.core.cluster import NO_LEADERSHIP_RECORD, TopicPartition
from ballast.ports.cluster import OK, Epochs, Outcome, PartitionState

ZNODE_BYTES: Final = 900_000
"""Longest value written; ZooKeeper's ``jute.maxbuffer`` is 1 MiB for the whole request unless it is set lower."""
WAIT_S: Final = 10.0
"""How long one call waits for another's znode to go away before it answers that it is in the way."""
ELECTION_S: Final = 60.0
"""How long the controller may take to consume one piece of an election."""
SETTLING_S: Final = 5.0
"""How long the state znodes may take to show an election's result after its znode was consumed."""

IN_THE_WAY: Final = Outcome(
    ok=False, code="REASSIGNMENT_IN_PROGRESS", message="Another batch is in ZooKeeper; this one waits for its end."
)
NO_CANCEL: Final = Outcome(
    ok=False,
    code="UNSUPPORTED_VERSION",
    message="Brokers before Kafka 2.4 cannot cancel a move; it ends when its new replicas are in sync.",
)
NO_UNCLEAN: Final = Outcome(
    ok=False, code="UNSUPPORTED_VERSION", message="Brokers before Kafka 2.4 cannot run unclean elections on request."
)


class ZooKeeperWrites:
    """Moves and elections through the admin znodes."""

    def __init__(
        self, zookeeper: ZooKeeper, *, owner: str = "Ballast", wait_s: float = WAIT_S, znode_bytes: int = ZNODE_BYTES
    ) -> None:
        self._zookeeper = zookeeper
        self._wait_s = wait_s
        self._znode_bytes = znode_bytes
        self._clock = SystemClock()
        self._lock = ZooKeeperLock(zookeeper.client, owner, wait_s=wait_s)

    # Moves

    def alter_reassignments(
        self,
        targets: Mapping[TopicPartition, tuple[int, ...] | None],
        *,
        allow_replication_factor_change: bool = False,
    ) -> dict[TopicPartition, Outcome]:
        """Start as many of the moves as one znode holds; the others answer that something is in the way."""
        outcomes = {name: NO_CANCEL for name, target in targets.items() if target is None}
        wanted = {name: target for name, target in targets.items() if target is not None}
        outcomes |= self._refusals(wanted, allow_replication_factor_change=allow_replication_factor_change)
        wanted = {name: target for name, target in wanted.items() if name not in outcomes}
        if not wanted:
            return outcomes
        entries = [
            {"topic": n.topic, "partition": n.partition, "replicas": list(target)} for n, target in wanted.items()
        ]
        first = next(pieces(entries, self._znode_bytes))
        begun = self._begin(first)
        for i, name in enumerate(wanted):
            outcomes[name] = OK if begun and i < len(first) else IN_THE_WAY
        return outcomes

    def _begin(self, entries: Sequence[Mapping[str, Any]]) -> bool:
        """Write the batch once the place is free; False when it did not become free in time."""
        with self._speaking(), self._lock.hold() as writer:
            return wait_until_gone(writer.client, REASSIGN, self._wait_s) and writer.create(REASSIGN, body(entries))

    def _refusals(
        self, targets: Mapping[TopicPartition, tuple[int, ...]], *, allow_replication_factor_change: bool
    ) -> dict[TopicPartition, Outcome]:
        """What the controller does not check and newer ones do, with their words."""
        if not targets:
            return {}
        lists = self._zookeeper.assignments({name.topic for name in targets})
        moving = self._zookeeper.moving()
        live = self._zookeeper.broker_ids()
        refused = {}
        for name, target in targets.items():
            has = lists.get(name)
            if has is None:
                refused[name] = Outcome(False, "UNKNOWN_TOPIC_OR_PARTITION", f"There is no partition {name}.")
                continue
            # While it moves, its list is a union, and its target's length is the count that will stand.
            count = len(moving.get(name, has))
            problem = _problem(target, has, live)
            if problem is not None:
                refused[name] = Outcome(False, "INVALID_REPLICA_ASSIGNMENT", problem)
            elif count != len(target) and not allow_replication_factor_change:
                sentence = f"The replication factor is changed from {count} to {len(target)}"
                refused[name] = Outcome(False, "INVALID_REPLICATION_FACTOR", sentence)
        return refused

    # Elections

    def elect_leaders(
        self, names: Collection[TopicPartition], *, unclean: bool = False
    ) -> dict[TopicPartition, Outcome]:
        """Hold preferred elections piece by piece and read from the state znodes what came of them."""
        if unclean:
            return dict.fromkeys(names, NO_UNCLEAN)
        lists = self._zookeeper.assignments({name.topic for name in names})
        outcomes = {
            name: Outcome(False, "UNKNOWN_TOPIC_OR_PARTITION", f"There is no partition {name}.")
            for name in names
            if name not in lists
        }
        preferred = {name: lists[name][0] for name in names if name in lists}
        states = self._zookeeper.partition_states(preferred)
        drifted = [name for name, first in preferred.items() if _leader(states, name) != first]
        outcomes |= dict.fromkeys(preferred.keys() - set(drifted), OK)
        waiting = [{"topic": n.topic, "partition": n.partition} for n in drifted]
        for piece in pieces(waiting, self._znode_bytes):
            held = {TopicPartition(e["topic"], e["partition"]) for e in piece}
            outcomes |= self._hold({name: preferred[name] for name in held}, piece)
        return outcomes

    def _hold(
        self, preferred: Mapping[TopicPartition, int], piece: Sequence[Mapping[str, Any]]
    ) -> dict[TopicPartition, Outcome]:
        with self._speaking(), self._lock.hold() as writer:
            begun = wait_until_gone(writer.client, ELECTION, ELECTION_S) and writer.create(ELECTION, body(piece))
            if not begun or not wait_until_gone(writer.client, ELECTION, ELECTION_S):
                late = Outcome(False, "REQUEST_TIMED_OUT", "The controller does not take elections from ZooKeeper.")
                return dict.fromkeys(preferred, late)
        return self._results(preferred)

    def _results(self, preferred: Mapping[TopicPartition, int]) -> dict[TopicPartition, Outcome]:
        """Who leads now; the controller deletes the znode when it has written the states, give or take a moment."""
        deadline = self._clock.monotonic_s() + SETTLING_S
        while True:
            states = self._zookeeper.partition_states(preferred)
            missed = [name for name, first in preferred.items() if _leader(states, name) != first]
            possible = [n for n in missed if n in states and preferred[n] in states[n].isr]
            if not possible or self._clock.monotonic_s() > deadline:
                break
            self._clock.sleep(0.1)
        no = Outcome(False, "PREFERRED_LEADER_NOT_AVAILABLE", "Its preferred leader is not in sync or not alive.")
        return dict.fromkeys(preferred, OK) | dict.fromkeys(missed, no)

    # The truth

    def partitions(self, names: Collection[TopicPartition]) -> dict[TopicPartition, PartitionState]:
        """Leader, replicas and ISR as the controller wrote them, where brokers' metadata may be a minute old.

        A partition exists once its topic's znode lists it; the controller writes its state a moment later.
        """
        lists = self._zookeeper.assignments({name.topic for name in names})
        wanted = [name for name in names if name in lists]
        states = self._zookeeper.partition_states(wanted)
        return {
            name: PartitionState(state.leader, lists[name], state.isr)
            if (state := states.get(name)) is not None
            else PartitionState(NO_LEADERSHIP_RECORD, lists[name], ())
            for name in wanted
        }

    def epochs(self, names: Collection[TopicPartition]) -> dict[TopicPartition, Epochs]:
        """The epochs in the partitions' state znodes."""
        states = self._zookeeper.partition_states(names)
        return {name: Epochs(s.leader_epoch, s.controller_epoch) for name, s in states.items()}

    def broker_entries(self, names: Collection[str]) -> dict[str, dict[str, str]]:
        """The dynamic entries of brokers (an empty name is the cluster-wide default), as their znodes hold them."""
        return self._zookeeper.broker_entries(names)

    def _speaking(self) -> Any:
        return _translate_errors("the cluster's hosts")


def body(entries: Sequence[Mapping[str, Any]]) -> bytes:
    """The form that Kafka's ``ReassignPartitionsZNode`` and ``PreferredReplicaElectionZNode`` share."""
    return json.dumps({"version": 1, "partitions": list(entries)}, separators=(",", ":")).encode()


def pieces(entries: Sequence[Mapping[str, Any]], limit_bytes: int) -> Iterator[list[Mapping[str, Any]]]:
    """Consecutive runs of entries whose znode is no longer than the limit; an entry alone may be longer."""
    piece: list[Mapping[str, Any]] = []
    used = empty = len(body([]))
    for entry in entries:
        size = len(json.dumps(entry, separators=(",", ":"))) + 1
        if piece and used + size > limit_bytes:
            yield piece
            piece, used = [], empty
        piece.append(entry)
        used += size
    if piece:
        yield piece


def _leader(states: Mapping[TopicPartition, LeaderAndIsr], name: TopicPartition) -> int | None:
    state = states.get(name)
    return None if state is None else state.leader


def _problem(target: tuple[int, ...], has: tuple[int, ...], live: frozenset[int]) -> str | None:
    """What is wrong with a replica list, in the words of the controllers that check it."""
    prefix = "The manual partition assignment includes"
    if not target:
        return f"{prefix} an empty replica list."
    doubled = [b for b in target if target.count(b) > 1]
    if doubled:
        return f"{prefix} the broker {doubled[0]} more than once."
    unknown = [b for b in target if b not in live and b not in has]
    if unknown:
        return f"{prefix} broker {unknown[0]}, but no such broker is alive."
    return None
