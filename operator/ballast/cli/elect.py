"""``ballast elect``: leader elections for some or all partitions, in batches, journaled like any run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ballast.cli.cluster_options import ClusterOptions, cluster_options
from ballast.cli.reassign_options import read_text
from ballast.cli.run_options import confirm, lock_options
from ballast.cli.run_screen import say
from ballast.cli.tables import output_option

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
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@lock_options
@output_option
@cluster_options
def elect(
    *,
    path_to_json_file: Path | None,
    topics: tuple[str, ...],
    partition: int | None,
    brokers: tuple[int, ...],
    election_type: str,
    yes: bool,
    journal: str | None,
    lock_wait: float,
    output: str,
    cluster: ClusterOptions,
) -> int:
    """Give leadership back to the preferred leaders (or, unclean, to any replica that lives)."""
    from ballast.cli.run_apply import run_plan
    from ballast.core.fingerprint import fingerprint
    from ballast.core.plan import Plan
    from ballast.errors import UsageError
    from ballast.executor.policy import ExecutionPolicy

    unclean = election_type.lower() == "unclean"
    if partition is not None and len(topics) != 1:
        raise UsageError("--partition needs exactly one --topic.")
    if path_to_json_file is not None and (topics or brokers):
        raise UsageError("--path-to-json-file names the partitions; --topic and --broker do not go with it.")
    with cluster.open() as opened:
        state = opened.cluster.snapshot(log_dirs=False, configs=False)
        if path_to_json_file is not None:
            wanted = named_in(path_to_json_file, state)
        else:
            missing = [t for t in topics if t not in state.topic_index]
            if missing:
                raise UsageError(f"Topic {missing[0]} does not exist.")
            wanted = [n for n in state.index if (not topics or n.topic in topics) and partition in {None, n.partition}]
        names = electable(state, wanted, frozenset(brokers), unclean=unclean)
        if not names:
            say("Nothing to elect: every partition asked for has the leader it should have.")
            return 0
        what = "UNCLEAN elections (records may be lost)" if unclean else "elections"
        confirm(f"Hold {len(names)} {what}?", yes=yes)
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


def named_in(path: Path, state: ClusterState) -> list[TopicPartition]:
    """The partitions of an election file, every one of which this cluster has."""
    from ballast.core.stock_checks import check_election
    from ballast.core.stock_json import parse_election

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
