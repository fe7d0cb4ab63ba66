"""What ``kafka-reassign-partitions`` says about moves, word for word, since scripts read it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ballast.core.cluster import TopicPartition
from ballast.core.stock.files import format_reassignment, sort_as_kafka

EXISTING: Final = (
    "Cannot execute because there is an existing partition assignment.  Use --additional to override this and create a "
    "new partition assignment in addition to the existing one. The --additional flag can also be used to change the "
    "throttle by resubmitting the current reassignment."
)
NONE_ACTIVE: Final = "None of the specified partition reassignments are active."
NO_MOVES_ACTIVE: Final = "None of the specified partition moves are active."


def current_assignment(
    current: Mapping[TopicPartition, Sequence[int]], log_dirs: Mapping[tuple[TopicPartition, int], str]
) -> str:
    """The assignment before, to be kept for a rollback."""
    return (
        f"Current partition replica assignment\n\n{format_reassignment(current, log_dirs)}\n\n"
        "Save this to use as the --reassignment-json-file option during rollback"
    )


def _names(names: Iterable[TopicPartition]) -> str:
    return ",".join(map(str, sort_as_kafka(names)))


def start_message(names: Sequence[TopicPartition]) -> str:
    """Reassignments were accepted."""
    return f"Successfully started partition reassignment{'' if len(names) == 1 else 's'} for {_names(names)}"


def cancel_message(names: Sequence[TopicPartition]) -> str:
    """Reassignments were cancelled."""
    return f"Successfully cancelled partition reassignment{'' if len(names) == 1 else 's'} for: {_names(names)}"


def start_failure_message(reasons: Mapping[TopicPartition, str]) -> str:
    """Reassignments were not accepted."""
    lines = [f"{name}: {reasons[name]}" for name in sort_as_kafka(reasons)]
    return "\n".join(["Error reassigning partition(s):", *lines])


def count_change_message(now: int, then: int) -> str:
    """The number of replicas would change, and may not: the controller's words, which the tool repeats."""
    return f"The replication factor is changed from {now} to {then}"


def cancel_failure_message(reasons: Mapping[TopicPartition, str]) -> str:
    """Reassignments were not cancelled."""
    lines = [f"{name}: {reasons[name]}" for name in sort_as_kafka(reasons)]
    return "\n".join([f"Error cancelling partition reassignment{'' if len(reasons) == 1 else 's'} for:", *lines])


def inter_broker_throttle_message(rate: int) -> str:
    """The throttle between brokers was set."""
    return f"The inter-broker throttle limit was set to {rate} B/s"


def log_dir_throttle_message(rate: int) -> str:
    """The throttle between log dirs was set."""
    return f"The replica-alter-dir throttle limit was set to {rate} B/s"


def throttle_removal_message(brokers: Iterable[int], topics: Iterable[str]) -> str:
    """Throttles are about to be removed."""
    ids, names = sorted(brokers), sorted(topics)
    return (
        f"Clearing broker-level throttles on broker{'' if len(ids) == 1 else 's'} {','.join(map(str, ids))}\n"
        f"Clearing topic-level throttles on topic{'' if len(names) == 1 else 's'} {','.join(names)}"
    )


def status(
    wanted: Mapping[TopicPartition, Sequence[int]],
    current: Mapping[TopicPartition, Sequence[int]],
    moving: Iterable[TopicPartition],
) -> str:
    """How each partition of the file stands; one that does not exist has no replicas."""
    busy = set(moving)
    lines = ["Status of partition reassignment:"]
    for name in sort_as_kafka(wanted):
        now = list(current.get(name, ()))
        if name in busy:
            lines.append(f"Reassignment of partition {name} is still in progress.")
        elif now == list(wanted[name]):
            lines.append(f"Reassignment of partition {name} is completed.")
        else:
            lines.append(
                f"There is no active reassignment of partition {name}, but replica set is "
                f"{','.join(map(str, now))} rather than {','.join(map(str, wanted[name]))}."
            )
    return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class DirMove:
    """One replica that a file wants in a log dir, and where it is."""

    name: TopicPartition
    broker: int
    wanted: str
    current: str | None
    """None where no live log dir has it."""
    future: str | None
    """Where a copy is being made."""
    known: bool = True
    """False where the broker did not tell."""

    @property
    def active(self) -> bool:
        """A copy is being made."""
        return self.future is not None


def dir_status(moves: Iterable[DirMove]) -> str:
    """How each replica with a log dir stands, by broker, topic and partition."""
    return "\n".join(_dir_line(m) for m in sorted(moves, key=lambda m: (m.broker, m.name.topic, m.name.partition)))


def _dir_line(m: DirMove) -> str:
    replica = f"{m.name.topic}-{m.name.partition}-{m.broker}"
    where = f"Partition {m.name} on broker {m.broker}"
    if not m.known:
        return f"Partition {m.name} cannot be found in any live log directory on broker {m.broker}."
    if m.current is None:
        return (
            f"Partition {m.name} is not found in any live log dir on broker {m.broker}. "
            "There is likely an offline log directory on the broker."
        )
    if m.future is not None:
        if m.future == m.wanted:
            return f"Reassignment of replica {replica} is still in progress."
        return f"{where} is being moved to log dir {m.future} instead of {m.wanted}."
    if m.current == m.wanted:
        return f"Reassignment of replica {replica} completed successfully."
    return f"{where} is not being moved from log dir {m.current} to {m.wanted}."


def dir_move_start_message(moves: Iterable[DirMove]) -> str:
    """Moves between log dirs have begun."""
    ordered = sorted(moves, key=lambda m: (m.broker, m.name.topic, m.name.partition))
    return "\n".join(
        f"Successfully started moving log directory to {m.wanted} for replica {m.name} with broker {m.broker} "
        for m in ordered
    )
