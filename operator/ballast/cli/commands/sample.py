"""``ballast sample``: record what the cluster looks like this minute, once, for those who have cron instead of a daemon."""

from __future__ import annotations

import os
import uuid

import click

from ballast.cli.cluster_options import ClusterOptions, cluster_options
from ballast.cli.store_option import resolve_store, store_option
from ballast.cli.tables import output_option
from ballast.core.wording import human_many


@click.command()
@store_option
@output_option("Sample")
@cluster_options
def sample(*, store: str | None, output: str, cluster: ClusterOptions) -> int:
    """Record one minute: sizes, offsets, leaders, replicas, brokers and their disks.

    Two samples at most ten minutes apart make a rate, so run it every minute.  A minute that is recorded already is left
    as it is.  Where the settings name a Prometheus (load.prometheus), what consumers read and what brokers use joins it.
    """
    from ballast.adapters.clock import SystemClock
    from ballast.adapters.extras import require

    require("history", "Recording samples")
    from ballast.adapters.samples.sampler import take
    from ballast.adapters.samples.store import SampleStore
    from ballast.cli.tables import print_json
    from ballast.settings.load import load_settings
    from ballast.wiring.external import external_load

    url = resolve_store(store, cluster.config)
    external = external_load(load_settings(cluster.config, os.environ).load.prometheus)
    with cluster.open() as opened:
        state = opened.cluster.snapshot()
        sink, clock, writer = SampleStore(url), SystemClock(), uuid.uuid4().hex
        report = take(opened.cluster, state, sink, clock, writer=writer, external=external)
    if output == "json":
        from ballast.cli.documents.history import Sample

        print_json(
            Sample(
                cluster=state.cluster_id,
                store=url,
                recorded=report.recorded,
                partitions=report.partitions,
                replicas=report.replicas,
                gaps=len(state.gaps) + len(report.missing),
                seconds=report.seconds,
            )
        )
    elif report.recorded:
        click.echo(
            f"{human_many(report.partitions, 'partition')} with {human_many(report.replicas, 'replica')} recorded in {url}."
        )
    else:
        click.echo("This minute is recorded already; nothing was written.")
    for gap in state.gaps:
        click.echo(f"Missing: {gap.missing} of {gap.subject} ({gap.detail})", err=True)
    for sentence in report.missing:
        click.echo(f"not known: {sentence}", err=True)
    return 0
