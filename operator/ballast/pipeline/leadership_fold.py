"""Who led what when, and how far that was from the preferred leaders: from raw minutes, by the live measure's own code."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa

from ballast.core.cluster import UNKNOWN, Ints
from ballast.core.leadership import DEFAULT_THRESHOLD_PERCENT, LeaderImbalance, tally
from ballast.core.rates import previous
from ballast.pipeline import arrow
from ballast.pipeline.hour_fold import GROUP, Block, read_block
from ballast.pipeline.schemas import BROKER_IMBALANCE, LEADERSHIP_HISTORY

HOUR: list[str] = ["cluster", "hour"]
MINUTE: list[str] = ["cluster", "hour", "minute"]


def fold_leaderships(batches: Iterable[Any]) -> Iterator[Any]:
    """Rows sorted as for ``fold_hours`` to one row for each change of a leader."""
    for table in arrow.whole_groups(batches, GROUP):
        cuts = arrow.boundaries(table, GROUP)
        for begin, end in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True):
            group = table.slice(begin, end - begin).combine_chunks()
            yield _changes(group, read_block(group))


def _changes(table: Any, block: Block) -> Any:
    """A change is seen at the first sample that shows it; the sample before may be minutes older."""
    leader, present = block.by_partition["leader"], block.by_partition["present"]
    since = previous(present)
    before = np.where(since >= 0, np.take_along_axis(leader, np.maximum(since, 0), axis=0), leader)
    sample, row = np.nonzero(present & (before != leader) & (block.minute[:, None] >= 0))
    topic = block.partition_topic[row]
    return arrow.batch(
        LEADERSHIP_HISTORY,
        {
            "cluster": pa.repeat(table.column("cluster")[0], len(row)),
            "hour": pa.repeat(table.column("fold_hour")[0], len(row)),
            "minute": block.minute[sample],
            "topic": pa.array(block.topic, pa.string()).take(pa.array(topic)),
            "topic_id": pa.array(block.topic_id, pa.string()).take(pa.array(topic)),
            "partition": block.partition[row],
            "leader_before": before[sample, row],
            "leader": leader[sample, row],
        },
    )


def fold_imbalances(batches: Iterable[Any]) -> Iterator[Any]:
    """Minute rows sorted by ``MINUTE`` to one row for each broker and hour.

    A minute is reduced to a few numbers for each broker as soon as it is whole.
    """
    hours = groupby(_minutes(batches), key=itemgetter(0))
    for (cluster, hour), minutes in hours:
        yield _imbalance(cluster, hour, [found for _, found in minutes])


def _minutes(batches: Iterable[Any]) -> Iterator[tuple[tuple[str, str], tuple[LeaderImbalance, Ints]]]:
    for table in arrow.whole_groups(batches, MINUTE):
        cuts = arrow.boundaries(table, MINUTE)
        for begin, end in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True):
            key = (table.column("cluster")[begin].as_py(), table.column("hour")[begin].as_py())
            yield key, _minute(table.slice(begin, end - begin))


def _imbalance(cluster: str, hour: str, minutes: list[tuple[LeaderImbalance, Ints]]) -> Any:
    brokers = np.unique(np.concatenate([found.broker for found, _ in minutes]))
    shape = (len(minutes), len(brokers))
    preferred, not_led, led = (np.zeros(shape, np.int64) for _ in range(3))
    over = np.zeros(shape, np.bool_)
    for at, (found, leaders) in enumerate(minutes):
        slot = np.searchsorted(brokers, found.broker)
        preferred[at, slot], not_led[at, slot], over[at, slot] = found.preferred, found.not_led, found.over
        led[at] = leaders_of(leaders, brokers)
    ratio = not_led / np.maximum(preferred, 1)
    fair = led.sum(axis=1, keepdims=True) / len(brokers)
    return arrow.batch(
        BROKER_IMBALANCE,
        {
            "cluster": pa.repeat(cluster, len(brokers)),
            "hour": pa.repeat(hour, len(brokers)),
            "broker": brokers,
            "minutes": np.full(len(brokers), len(minutes)),
            "preferred": preferred[-1],
            "not_led": not_led[-1],
            "ratio_last": ratio[-1],
            "ratio_mean": ratio.mean(axis=0),
            "ratio_max": ratio.max(axis=0),
            "minutes_over": over.sum(axis=0),
            "led_mean": led.mean(axis=0),
            "leader_skew": (led / np.where(fair > 0, fair, 1)).mean(axis=0),
        },
    )


def leaders_of(leaders: Ints, brokers: Ints) -> Ints:
    """How many partitions each broker leads."""
    known = leaders[np.isin(leaders, brokers)]
    return np.bincount(np.searchsorted(brokers, known), minlength=len(brokers)).astype(np.int64)


def _minute(rows: Any) -> tuple[LeaderImbalance, Ints]:
    """The live measure on the chunks of one minute, and every partition's leader."""
    counts = arrow.all_unpacked("replica_count", rows.column("replica_count")).astype(np.int64)
    replica = arrow.all_unpacked("replica", rows.column("replica"))
    removing = arrow.all_unpacked("removing", rows.column("removing"))
    owner = np.repeat(np.arange(len(counts)), counts)
    preferred = np.full(len(counts), UNKNOWN, np.int64)
    keep = ~removing
    # Written back to front so that the first replica that stays is the one that remains.
    preferred[owner[keep][::-1]] = replica[keep][::-1]
    cells = rows.column("partition_topic")
    sizes = [cell.as_buffer().size // 4 for cell in cells]
    topic = arrow.all_unpacked("partition_topic", cells) + np.repeat(arrow.starts(rows.column("topic"))[:-1], sizes)
    deleting = arrow.values(rows.column("deleting"))[topic]
    leader = arrow.all_unpacked("leader", rows.column("leader")).astype(np.int64)
    everyone = np.unique(replica).tolist()
    return tally(preferred, leader, everyone, deleting=deleting, threshold_percent=DEFAULT_THRESHOLD_PERCENT), leader
