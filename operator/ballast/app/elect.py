"""Elect leaders: which partitions an election would change, of those that were asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ballast.app.journal_reading import read_drained
from ballast.app.runs import Session
from ballast.core.cluster import ClusterState, TopicPartition
from ballast.core.cluster.drain import hint_to_end
from ballast.core.leadership import imbalance
from ballast.core.leadership.elections import election_plan, elections
from ballast.core.leadership.limits import CLUSTER, imbalance_percentage
from ballast.core.named_brokers import NamedBrokers
from ballast.core.planner import PlannerPolicy
from ballast.core.stock.checks import check_election
from ballast.core.wording import ShowLine, human_brokers, human_elections, planned_elections
from ballast.errors import Refused
from ballast.executor.driver.events import RunResult
from ballast.executor.machine.policy import ExecutionPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class Election:
    """What a person asks for; without partitions, topics, brokers and ``everywhere`` it elects as Kafka's controller does."""

    names: Sequence[TopicPartition] | None = None
    """These partitions alone."""
    source: str = ""
    """The file that names them."""
    topics: tuple[str, ...] = ()
    partition: int | None = None
    brokers: NamedBrokers = field(default_factory=NamedBrokers)
    """Only partitions that one of these should lead."""
    unclean: bool = False
    """Also a replica that is out of sync, for partitions without a leader."""
    everywhere: bool = False
    """On every broker, however small its share."""

    @property
    def over_the_threshold(self) -> bool:
        """Does the threshold choose the brokers?"""
        return self.names is None and not (self.topics or self.brokers or self.unclean or self.everywhere)


def elect(session: Session, asked: Election, policy: PlannerPolicy, percentage: float | None) -> RunResult | None:
    """Hold the elections, journaled like any run; None where there is nothing to elect.

    ``percentage`` is the imbalance to tolerate, None for the cluster's own.
    """
    state = session.opened.cluster.snapshot(log_dirs=False, configs=asked.over_the_threshold and percentage is None)
    on_line = session.user_interface.show_line
    preferred = asked.brokers.among(state.broker_index)
    if asked.over_the_threshold:
        names = over_threshold(state, percentage, on_line)
    else:
        names = led_elsewhere(state, choose(state, asked), preferred, unclean=asked.unclean)
    if not asked.unclean:
        drained = read_drained(session.opened, state, on_line)
        _refuse_drained(preferred & drained)
        names = without_drained(state, names, policy.with_drained(drained).draining, on_line)
    if not names:
        on_line(
            "Nothing to elect: no broker is over the threshold with partitions that can be elected; --all elects the others."
            if asked.over_the_threshold
            else "Nothing to elect: every partition asked for has the leader it should have."
        )
        return None
    lossy = f"{human_elections(len(names), unclean=True)} (records may be lost)"
    session.user_interface.confirm(f"Run {lossy if asked.unclean else planned_elections(len(names))}?")
    plan = election_plan(state, names, unclean=asked.unclean)
    return session.execute(plan, ExecutionPolicy(), unclean=asked.unclean)


def _refuse_drained(brokers: frozenset[int]) -> None:
    if brokers:
        raise Refused(
            f"No election makes a draining broker the leader: {human_brokers(sorted(brokers))}.",
            hint=hint_to_end(min(brokers), "Leave it out"),
        )


def over_threshold(state: ClusterState, given: float | None, on_line: ShowLine) -> list[TopicPartition]:
    """What the controller would elect: whatever can be elected on the brokers that are over the percentage."""
    limit = imbalance_percentage(state, given)
    origin = " (the cluster's own setting)" if limit.origin == CLUSTER else ""
    over = imbalance(state, limit.value).over_ids
    on_line(f"Over {limit.value:g} %{origin}: {', '.join(f'broker {b}' for b in over) or 'no broker'}.")
    return list(elections(state, over))


def choose(state: ClusterState, asked: Election) -> list[TopicPartition]:
    """The partitions that are asked for; raises ``UsageError`` where the cluster has no such topic or broker."""
    if asked.names is not None:
        check_election(asked.names, state, source=asked.source)
        return list(asked.names)
    state.require_topics(asked.topics)
    state.require_brokers(asked.brokers.ids)
    topics, partition = asked.topics, asked.partition
    return [n for n in state.index if (not topics or n.topic in topics) and partition in {None, n.partition}]


def led_elsewhere(
    state: ClusterState, wanted: list[TopicPartition], brokers: frozenset[int], *, unclean: bool
) -> list[TopicPartition]:
    """Of the partitions asked for, those that their preferred leader does not lead; for unclean elections, those that nothing leads."""
    out = []
    for name in wanted:
        row = state.index[name]
        leader, preferred = int(state.partitions.leader[row]), int(state.preferred[row])
        if brokers and preferred not in brokers:
            continue
        if leader < 0 if unclean else leader != preferred:
            out.append(name)
    return out


def without_drained(
    state: ClusterState, names: list[TopicPartition], draining: frozenset[int], on_line: ShowLine
) -> list[TopicPartition]:
    """The partitions whose preferred leader is no drained broker, which would lose it again; tells of the others.

    One without any leader is elected all the same: it cannot be written to, nor copied from.
    """
    led, preferred = state.partitions.leader, state.preferred
    kept = [n for n in names if int(led[state.index[n]]) < 0 or int(preferred[state.index[n]]) not in draining]
    if len(kept) < len(names):
        homes = sorted({int(preferred[state.index[n]]) for n in names} & draining)
        on_line(f"{human_elections(len(names) - len(kept))} left out, to {human_brokers(homes)}: draining.")
    return kept
