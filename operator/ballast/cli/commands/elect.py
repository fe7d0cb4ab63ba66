"""``ballast elect``: leader elections for some or all partitions, in batches, journaled like any run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ballast.cli.cluster_options import ClusterOptions, cluster_options
from ballast.cli.commands.reassign.options import read_text
from ballast.cli.run_options import confirm, lock_options
from ballast.cli.run_screen import RUN_DOCUMENTS, say
from ballast.cli.tables import output_option
from ballast.core.wording import human_brokers, human_elections, planned_elections

if TYPE_CHECKING:
    from ballast.core.cluster import ClusterState, TopicPartition


@click.command()
@click.option(
    "--path-to-json-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help='Partitions as Kafka\'s tool takes them: {"partitions": [{"topic": "a", "partition": 0}]}.',
)
@click.option("--topic", "topics", multiple=True, help="Only this topic; may be repeated.")
@click.option("--partition", type=click.IntRange(0), help="Only this partition of the one --topic given.")
@click.option("--broker", "brokers", type=int, multiple=True, help="Only partitions that this broker should lead.")
@click.option(
    "--election-type",
    type=click.Choice(["preferred", "unclean"], case_sensitive=False),
    default="preferred",
    show_default=True,
    help="Unclean elects a replica that is out of sync for partitions without a leader: records may be lost.",
)
@click.option(
    "--threshold",
    type=click.FloatRange(0, 100),
    default=None,
    metavar="PERCENT",
    help="Elect on brokers that do not lead more than this share of the partitions that prefer them.  "
    "[default: as in the settings, else the cluster's own with ZooKeeper, else 10]",
)
@click.option("--all", "everything", is_flag=True, help="Elect on every broker, however small its share.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@lock_options
@output_option(*RUN_DOCUMENTS)
@cluster_options
def elect(
    *,
    path_to_json_file: Path | None,
    topics: tuple[str, ...],
    partition: int | None,
    brokers: tuple[int, ...],
    election_type: str,
    threshold: float | None,
    everything: bool,
    yes: bool,
    journal: str | None,
    lock_wait: float,
    output: str,
    cluster: ClusterOptions,
) -> int:
    """Run preferred leader elections, or unclean ones, which may choose any live replica.

    Without partitions, topics or brokers it elects as Kafka's controller does: on the brokers over the threshold.  Leaders do
    not come home to a broker that is drained.
    """
    from ballast.cli.journal_reading import heeding, read_drained
    from ballast.cli.run_apply import run_plan
    from ballast.core.cluster.drain import refuse_drained
    from ballast.core.cluster.fingerprint import fingerprint
    from ballast.core.plan import Plan
    from ballast.errors import UsageError
    from ballast.executor.machine.policy import ExecutionPolicy

    unclean = election_type.lower() == "unclean"
    if partition is not None and len(topics) != 1:
        raise UsageError("--partition needs exactly one --topic.")
    if path_to_json_file is not None and (topics or brokers):
        raise UsageError("--path-to-json-file names the partitions; --topic and --broker do not go with it.")
    named = bool(path_to_json_file or topics or brokers)
    if (threshold is not None or everything) and (named or unclean):
        raise UsageError(
            "--threshold and --all go without partitions, topics and brokers, and with preferred elections."
        )
    if threshold is not None and everything:
        raise UsageError("--all elects whatever the threshold says: give one of the two.")
    as_the_controller = not (named or unclean or everything)
    given = threshold if threshold is not None else cluster.imbalance_percentage()
    with cluster.open() as opened:
        state = opened.cluster.snapshot(log_dirs=False, configs=as_the_controller and given is None)
        if as_the_controller:
            names = over_threshold(state, given)
        else:
            wanted = chosen(state, path_to_json_file, topics, partition, brokers)
            names = electable(state, wanted, frozenset(brokers), unclean=unclean)
        if not unclean:
            drained = read_drained(opened, state)
            refuse_drained(brokers, drained, "Leaders would come home to", "Leave it out")
            names = without_drained(state, names, heeding(cluster.settings().balance, drained).draining)
        if not names:
            say(
                "Nothing to elect: every partition asked for has the leader it should have."
                if not as_the_controller
                else "Nothing to elect: no broker is over the threshold with partitions that can be elected; --all elects the others."
            )
            return 0
        lossy = f"{human_elections(len(names), unclean=True)} (records may be lost)"
        confirm(f"Hold {lossy if unclean else planned_elections(len(names))}?", yes=yes)
        plan = Plan(
            intent=f"elect {election_type.lower()}",
            cluster_id=state.cluster_id,
            fingerprint=fingerprint(state),
            moves=(),
            elections=tuple(names),
        )
        return run_plan(
            opened,
            plan,
            ExecutionPolicy(),
            command="ballast elect",
            journal=journal,
            lock_wait_s=lock_wait,
            output=output,
            unclean=unclean,
        )


def over_threshold(state: ClusterState, given: float | None) -> list[TopicPartition]:
    """What the controller would elect: whatever can be elected on the brokers that are over the percentage."""
    from ballast.core.leadership import elections, imbalance
    from ballast.core.leadership.limits import CLUSTER, imbalance_percentage

    limit = imbalance_percentage(state, given)
    origin = " (the cluster's own setting)" if limit.origin == CLUSTER else ""
    over = imbalance(state, limit.value).over_ids
    say(f"Over {limit.value:g} %{origin}: {', '.join(f'broker {b}' for b in over) or 'no broker'}.")
    return [name for batch in elections(state, limit.value) for name in batch]


def chosen(
    state: ClusterState,
    path_to_json_file: Path | None,
    topics: tuple[str, ...],
    partition: int | None,
    brokers: tuple[int, ...],
) -> list[TopicPartition]:
    """The partitions that the arguments name; raises ``UsageError`` where the cluster has no such topic or broker."""
    from ballast.errors import UsageError

    if path_to_json_file is not None:
        return named_in(path_to_json_file, state)
    missing = [t for t in topics if t not in state.topic_index]
    if missing:
        raise UsageError(f"Topic {missing[0]} does not exist.")
    unknown = [b for b in brokers if b not in state.broker_index]
    if unknown:
        known = ", ".join(str(b.id) for b in state.brokers)
        raise UsageError(f"There is no broker {unknown[0]} on this cluster.", hint=f"It has {known}.")
    return [n for n in state.index if (not topics or n.topic in topics) and partition in {None, n.partition}]


def without_drained(state: ClusterState, names: list[TopicPartition], draining: frozenset[int]) -> list[TopicPartition]:
    """The partitions whose leader would not come home to a drained broker, which gives it away again; tells of the others.

    One without any leader is elected all the same: it cannot be written to, nor copied from.
    """
    led, preferred = state.partitions.leader, state.preferred
    kept = [n for n in names if int(led[state.index[n]]) < 0 or int(preferred[state.index[n]]) not in draining]
    if len(kept) < len(names):
        homes = sorted({int(preferred[state.index[n]]) for n in names} & draining)
        say(f"{human_elections(len(names) - len(kept))} left out, to {human_brokers(homes)}: drained.")
    return kept


def named_in(path: Path, state: ClusterState) -> list[TopicPartition]:
    """The partitions of an election file, every one of which this cluster has."""
    from ballast.core.stock.checks import check_election
    from ballast.core.stock.files import parse_election

    names = parse_election(read_text(path), source=path.name)
    check_election(names, state, source=path.name)
    return list(names)


def electable(
    state: ClusterState, wanted: list[TopicPartition], brokers: frozenset[int], *, unclean: bool
) -> list[TopicPartition]:
    """Of the partitions asked for, those that an election would change."""
    out = []
    for name in wanted:
        row = state.index[name]
        leader, preferred = int(state.partitions.leader[row]), int(state.preferred[row])
        if brokers and preferred not in brokers:
            continue
        if leader < 0 if unclean else leader != preferred:
            out.append(name)
    return out
