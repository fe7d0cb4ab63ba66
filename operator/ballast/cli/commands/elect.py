"""``ballast elect``: leader elections for some or all partitions, in batches, journaled like any run."""

from __future__ import annotations

from pathlib import Path

import click

from ballast.cli.cluster_options import ClusterOptions, cluster_options
from ballast.cli.commands.reassign import read_text
from ballast.cli.option_types import BROKERS
from ballast.cli.run_options import LockOptions, lock_options
from ballast.cli.run_screen import RUN_DOCUMENTS
from ballast.cli.tables import output_option
from ballast.core.named_brokers import NamedBrokers


@click.command()
@click.option(
    "--path-to-json-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help='Partitions as Kafka\'s tool takes them: {"partitions": [{"topic": "a", "partition": 0}]}.',
)
@click.option("--topic", "topics", multiple=True, metavar="NAME", help="Only this topic; may be repeated.")
@click.option("--partition", type=click.IntRange(0), metavar="N", help="Only this partition of the one --topic given.")
@click.option("--brokers", type=BROKERS, help="Only partitions whose preferred leader is one of these brokers.")
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
    help="Elect where leader imbalance exceeds this percentage.  "
    "[default: settings, else the cluster's own with ZooKeeper, else 10]",
)
@click.option("--all", "everything", is_flag=True, help="Elect on every broker, whatever its leader imbalance.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@lock_options
@output_option(*RUN_DOCUMENTS)
@cluster_options
def elect(
    *,
    path_to_json_file: Path | None,
    topics: tuple[str, ...],
    partition: int | None,
    brokers: NamedBrokers | None,
    election_type: str,
    threshold: float | None,
    everything: bool,
    yes: bool,
    lock: LockOptions,
    output: str,
    cluster: ClusterOptions,
) -> int:
    """Run preferred leader elections, or unclean ones, which may choose any live replica.

    Without partitions, topics or brokers it elects as Kafka's controller does: on the brokers over the threshold.
    No election makes a draining broker the leader.
    """
    from ballast.app.elect import Election
    from ballast.app.elect import elect as hold
    from ballast.cli.terminal import Terminal
    from ballast.core.stock.files import parse_election
    from ballast.errors import UsageError

    unclean = election_type.lower() == "unclean"
    if partition is not None and len(topics) != 1:
        raise UsageError("--partition needs exactly one --topic.")
    if path_to_json_file is not None and (topics or brokers):
        raise UsageError("--path-to-json-file names the partitions; --topic and --brokers do not go with it.")
    named = bool(path_to_json_file or topics or brokers)
    if (threshold is not None or everything) and (named or unclean):
        raise UsageError(
            "--threshold and --all go without partitions, topics and brokers, and with preferred elections."
        )
    if threshold is not None and everything:
        raise UsageError("--all elects whatever the threshold says: give one of the two.")
    asked = Election(
        names=None
        if path_to_json_file is None
        else parse_election(read_text(path_to_json_file), source=path_to_json_file.name),
        source="" if path_to_json_file is None else path_to_json_file.name,
        topics=topics,
        partition=partition,
        brokers=brokers or NamedBrokers(),
        unclean=unclean,
        everywhere=everything,
    )
    percentage = threshold if threshold is not None else cluster.imbalance_percentage()
    with cluster.open() as opened:
        session = lock.session(opened, Terminal(output, yes), "ballast elect")
        result = hold(session, asked, cluster.settings().balance, percentage)
    return 0 if result is None else result.exit_code
