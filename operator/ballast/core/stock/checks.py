"""Can this cluster do what a stock file asks for?  Each obstacle has its own sentence.

``check_entries`` looks at the file alone and refuses what ``kafka-reassign-partitions --execute`` refuses before it asks
the cluster.  ``check_against`` holds it against a cluster.  Both list every problem, not the first only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from ballast.core.cluster import Broker, ClusterState, TopicPartition
from ballast.core.plan import ANY_LOG_DIR, Move, Reason
from ballast.core.stock.files import FileProblem, ReassignmentEntry, StockFormatError


def check_entries(entries: Sequence[ReassignmentEntry], *, source: str = "reassignment JSON") -> None:
    """Refuse an empty list, duplicate partitions, empty replica lists, duplicate and negative brokers, odd log dirs."""
    problems = list(_file_problems(entries))
    if problems:
        raise StockFormatError(source, problems)


def check_against(
    entries: Sequence[ReassignmentEntry], state: ClusterState, *, source: str = "reassignment JSON"
) -> None:
    """Refuse unknown topics and partitions, topics being deleted, unknown and down new brokers, unknown log dirs.

    A down broker that already has a replica of the partition may stay in its list: nothing is copied to it.
    """
    problems = [p for i, entry in enumerate(entries) for p in _cluster_problems(i, entry, state)]
    if problems:
        raise StockFormatError(source, problems)


def check_topics(topics: Sequence[str], state: ClusterState, *, source: str = "topics-to-move JSON") -> None:
    """Refuse topics that do not exist or are being deleted."""
    problems = [
        FileProblem(f"topics[{i}]", reason) for i, name in enumerate(topics) if (reason := _topic_problem(name, state))
    ]
    if problems:
        raise StockFormatError(source, problems)


def check_election(names: Sequence[TopicPartition], state: ClusterState, *, source: str = "election JSON") -> None:
    """Refuse partitions that do not exist and topics that are being deleted."""
    problems = []
    for i, name in enumerate(names):
        reason = _topic_problem(name.topic, state) or _partition_problem(name, state)
        if reason:
            problems.append(FileProblem(f"partitions[{i}]", reason))
    if problems:
        raise StockFormatError(source, problems)


def find_count_changes(moves: Iterable[Move], state: ClusterState) -> dict[TopicPartition, tuple[int, int]]:
    """The partitions that would have another number of replicas: how many now, and how many then.

    Of a partition in mid-move those count that it will have, as in Kafka's ``ReplicationControlManager``.
    """
    counts = {m.name: (len(state.target(state.index[m.name])), len(m.new)) for m in moves}
    return {name: (now, then) for name, (now, then) in counts.items() if now != then}


def moves(entries: Sequence[ReassignmentEntry], state: ClusterState) -> tuple[Move, ...]:
    """What the entries change, in the file's order, for a file that passed both checks.

    An entry that asks for what is already there, in the same order and without a log dir, is no move.
    """
    found = (_move(entry, state) for entry in entries)
    return tuple(move for move in found if move is not None)


def _move(entry: ReassignmentEntry, state: ClusterState) -> Move | None:
    row = state.index[entry.name]
    old = state.target(row)
    wants_dirs = entry.log_dirs is not None and any(d != ANY_LOG_DIR for d in entry.log_dirs)
    if old == entry.replicas and not wants_dirs:
        return None
    p = state.partitions
    size = int(p.size_bytes[p.start[row] : p.start[row + 1]].max(initial=-1))
    return Move(
        entry.topic,
        entry.partition,
        old,
        entry.replicas,
        size_bytes=size,
        reason=Reason("file", "asked for by a reassignment file"),
        log_dirs=entry.log_dirs if wants_dirs else None,
    )


def _file_problems(entries: Sequence[ReassignmentEntry]) -> Iterator[FileProblem]:
    if not entries:
        yield FileProblem("partitions", "the list of partitions is empty, so there is nothing to do")
    for name, times in Counter(e.name for e in entries).items():
        if times > 1:
            yield FileProblem("partitions", f"{name} is listed {times} times")
    for i, entry in enumerate(entries):
        place = f"partitions[{i}]"
        if entry.partition < 0:
            yield FileProblem(f"{place}.partition", f"a partition number is not negative: {entry.partition}")
        if not entry.replicas:
            yield FileProblem(f"{place}.replicas", f"the replica list of {entry.name} is empty")
        for broker, times in Counter(entry.replicas).items():
            if times > 1:
                yield FileProblem(f"{place}.replicas", f"{entry.name} lists broker {broker} {times} times")
            if broker < 0:
                yield FileProblem(f"{place}.replicas", f"a broker id is not negative: {broker}")
        for log_dir in entry.log_dirs or ():
            if log_dir != ANY_LOG_DIR and not log_dir.startswith("/"):
                yield FileProblem(f"{place}.log_dirs", f'a log dir is "any" or an absolute path, not "{log_dir}"')


def _cluster_problems(i: int, entry: ReassignmentEntry, state: ClusterState) -> Iterator[FileProblem]:
    place = f"partitions[{i}]"
    reason = _topic_problem(entry.topic, state) or _partition_problem(entry.name, state)
    if reason:
        yield FileProblem(place, reason)
        return
    present = state.replicas(state.index[entry.name])
    for at, broker in enumerate(entry.replicas):
        known = state.broker(broker)
        if known is None:
            yield FileProblem(f"{place}.replicas[{at}]", f"broker {broker} is unknown: it is not registered now")
        elif not known.alive and broker not in present:
            yield FileProblem(f"{place}.replicas[{at}]", f"broker {broker} is down and cannot take a new replica")
        elif entry.log_dirs is not None and (unknown := _log_dir_problem(entry.log_dirs[at], known)):
            yield FileProblem(f"{place}.log_dirs[{at}]", unknown)


def _topic_problem(topic: str, state: ClusterState) -> str | None:
    at = state.topic_index.get(topic)
    if at is None:
        return f"topic {topic} does not exist"
    return f"topic {topic} is being deleted" if state.topics[at].deleting else None


def _partition_problem(name: TopicPartition, state: ClusterState) -> str | None:
    return None if name in state.index else f"topic {name.topic} has no partition {name.partition}"


def _log_dir_problem(log_dir: str, broker: Broker) -> str | None:
    if log_dir == ANY_LOG_DIR or not broker.log_dirs_known:
        return None
    paths = [d.path for d in broker.log_dirs]
    return None if log_dir in paths else f"broker {broker.id} has no log dir {log_dir}; it has {', '.join(paths)}"
