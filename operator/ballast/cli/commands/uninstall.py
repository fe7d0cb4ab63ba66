"""``ballast uninstall``: remove from a cluster what Ballast keeps in it."""

from __future__ import annotations

import click

from ballast.cli.cluster_options import ClusterOptions, cluster_options
from ballast.cli.option_types import TIME
from ballast.cli.tables import human_many, output_option, print_json, print_line


@click.command()
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.option(
    "--lock-wait",
    type=TIME,
    default="20s",
    show_default=True,
    help="Time to wait for the lock lease.",
)
@output_option("TopicsDeleted")
@cluster_options
def uninstall(*, yes: bool, lock_wait: float, output: str, cluster: ClusterOptions) -> int:
    """Delete the topics that Ballast keeps in a cluster: __ballast_journal and __ballast_requests.

    Refused while a run is open, while throttles of Ballast's are set, and while another process holds the lock. Stop the daemon
    first. Nothing else in the cluster is changed; runs in a deleted journal can no longer be shown or rolled back.
    """
    from ballast.app.uninstall import uninstall as remove
    from ballast.cli.terminal import Terminal

    with cluster.open() as opened:
        topics = remove(opened, Terminal(yes=yes), lock_wait_s=lock_wait)
    if output == "json":
        from ballast.cli.documents.runs import TopicsDeleted

        print_json(TopicsDeleted(topics=list(topics)))
    print_line(f"Deleted {human_many(len(topics), 'topic')}." if topics else "No topic of Ballast's in this cluster.")
    return 0
