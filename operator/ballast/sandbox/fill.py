"""Fills a cluster with topics and data, balanced, or unbalanced in a chosen way."""

from __future__ import annotations

import math
import random
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ballast.core.wording import ShowLine
from ballast.errors import Unavailable, UsageError

if TYPE_CHECKING:
    from ballast.sandbox.cluster import Sandbox

Assignment = list[list[int]]
"""Per partition its replicas, the preferred leader first."""

RECORD_BYTES: Final = 16_384
APPLIED_WITHIN_S: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Filling:
    """What to put into a cluster."""

    topics: int = 8
    """How many topics, named with the prefix and a number."""
    partitions: int = 6
    """Partitions of each topic."""
    replication_factor: int = 2
    """Replicas of each partition."""
    megabytes: float = 20.0
    """Data in all, in units of 1,000,000 bytes, counted once however many replicas it has."""
    shape: str = "even"
    """How it lies over the brokers: a key of ``SHAPES``."""
    prefix: str = "orders"
    """What the topics' names begin with."""
    seed: int = 1
    """Draws that are not told otherwise come out the same for the same seed."""

    def __post_init__(self) -> None:
        if self.shape not in SHAPES:
            raise UsageError(f"There is no shape {self.shape!r}.", hint=f"Choose one of {', '.join(SHAPES)}.")
        if min(self.topics, self.partitions, self.replication_factor) < 1 or not 0 <= self.megabytes < math.inf:
            raise UsageError("Topics, partitions and replicas are counted from 1, and data from 0.")
        if not re.fullmatch(r"[A-Za-z0-9._-]{1,200}", self.prefix):
            raise UsageError(
                f"No topic's name can begin with {self.prefix!r}.",
                hint="Use letters, digits, '.', '_' and '-', 200 of them at most.",
            )


def even(brokers: Sequence[int], racks: Mapping[int, str | None], count: int, copies: int) -> Assignment:
    """Leaders in turn over all brokers, followers on the next brokers of other racks while there are any."""
    rows = []
    for row in range(count):
        start = row % len(brokers)
        turn = [*brokers[start:], *brokers[:start]]
        # Followers start elsewhere on each lap, so that a down broker's load falls on all others.
        shift = (row // len(brokers)) % max(1, len(turn) - 1)
        rest = [*turn[1 + shift :], *turn[1 : 1 + shift]]
        chosen = [turn[0]]
        for distinct in (True, False):
            for broker in rest:
                taken = {racks.get(other) for other in chosen}
                if len(chosen) < copies and broker not in chosen and not (distinct and racks.get(broker) in taken):
                    chosen.append(broker)
        rows.append(chosen)
    return rows


def empty_broker(brokers: Sequence[int], racks: Mapping[int, str | None], count: int, copies: int) -> Assignment:
    """Even over all brokers but the last, which holds nothing, as after it joined."""
    return even(brokers[:-1] or brokers, racks, count, copies)


def leaders(brokers: Sequence[int], racks: Mapping[int, str | None], count: int, copies: int) -> Assignment:
    """Replicas balanced, but the preferred leader is always the lowest id of the row: leadership piles up there."""
    return [sorted(row) for row in even(brokers, racks, count, copies)]


def one_rack(brokers: Sequence[int], racks: Mapping[int, str | None], count: int, copies: int) -> Assignment:
    """Every row's replicas are neighbours in one rack first: a rack's loss takes partitions with it."""
    return even(sorted(brokers, key=lambda broker: str(racks.get(broker))), {}, count, copies)


SHAPES: Final[dict[str, Callable[[Sequence[int], Mapping[int, str | None], int, int], Assignment]]] = {
    "even": even,
    "empty-broker": empty_broker,
    "leaders": leaders,
    "one-rack": one_rack,
    "hot": even,
}
"""Shape by name; ``hot`` lies like ``even`` and differs in how much each partition holds."""


def assignments(filling: Filling, brokers: Sequence[int], racks: Mapping[int, str | None]) -> dict[str, Assignment]:
    """Every topic's replica lists; raises ``UsageError`` when there are fewer brokers than replicas."""
    usable = len(brokers) - 1 if filling.shape == "empty-broker" and len(brokers) > 1 else len(brokers)
    if filling.replication_factor > usable:
        raise UsageError(
            f"{filling.replication_factor} replicas do not fit on {usable} brokers.", hint="Lower --replication-factor."
        )
    rows = SHAPES[filling.shape](brokers, racks, filling.topics * filling.partitions, filling.replication_factor)
    return {
        f"{filling.prefix}-{number + 1}": rows[number * filling.partitions : (number + 1) * filling.partitions]
        for number in range(filling.topics)
    }


def records_per_partition(filling: Filling) -> list[int]:
    """How many records each partition gets, topic by topic; ``hot`` gives each next one less (Zipf), shuffled."""
    count = filling.topics * filling.partitions
    weights = [1.0 / rank for rank in range(1, count + 1)] if filling.shape == "hot" else [1.0] * count
    random.Random(filling.seed).shuffle(weights)
    records = filling.megabytes * 1e6 / RECORD_BYTES
    return [round(records * weight / sum(weights)) for weight in weights]


def fill(sandbox: Sandbox, filling: Filling, *, on_line: ShowLine = lambda _: None) -> None:
    """Create the topics and write the data; returns when every topic is served and every record acknowledged."""
    alive = [broker for broker, runs in sandbox.running().items() if runs]
    plan = assignments(filling, alive, {broker: sandbox.spec.rack_of(broker) for broker in alive})
    check_space(filling, shutil.disk_usage(sandbox.folder).free)
    on_line(
        f"creating {filling.topics} topics of {filling.partitions} partitions, {filling.replication_factor} replicas each"
    )
    config = {"bootstrap.servers": sandbox.bootstrap_server, "log_level": 0, **sandbox.librdkafka_properties}
    _create(config, plan)
    on_line(f"writing {filling.megabytes:g} MB")
    _write(config, plan, records_per_partition(filling), random.Random(filling.seed))


def check_space(filling: Filling, free_bytes: int) -> None:
    """Raise ``UsageError`` when the data and its copies would leave less than a tenth of the free space."""
    needed = filling.megabytes * 1e6 * filling.replication_factor
    if needed > 0.9 * free_bytes:
        raise UsageError(
            f"{filling.megabytes:g} MB with {filling.replication_factor} replicas do not fit: "
            f"{free_bytes / 1e6:,.0f} MB are free on this machine.",
            hint="Lower --megabytes.",
        )


def _create(config: dict[str, Any], plan: dict[str, Assignment]) -> None:
    from confluent_kafka import KafkaException  # noqa: PLC0415
    from confluent_kafka.admin import AdminClient, NewTopic  # noqa: PLC0415

    from ballast.adapters.kafka import librdkafka  # noqa: PLC0415

    admin = AdminClient(config)
    wanted = [NewTopic(name, num_partitions=len(rows), replica_assignment=rows) for name, rows in plan.items()]
    for name, created in admin.create_topics(wanted, operation_timeout=30).items():
        try:
            librdkafka.answer_of_controller(admin, created, APPLIED_WITHIN_S)
        except KafkaException as refused:
            error = refused.args[0]
            if error.name() == "TOPIC_ALREADY_EXISTS":
                raise UsageError(f"There is a topic {name} already.", hint="Choose another --prefix.") from refused
            raise Unavailable(f"Topic {name} could not be created: {error.str()}.") from refused


def _write(config: dict[str, Any], plan: dict[str, Assignment], records: list[int], chance: random.Random) -> None:
    from confluent_kafka import Producer  # noqa: PLC0415

    producer = Producer({**config, "linger.ms": 50, "batch.size": 1_000_000, "acks": "all"})
    failures: list[str] = []

    def note(error: Any, _message: Any) -> None:
        if error is not None:
            failures.append(error.str())

    # Noise, so that nothing on the way compresses it.
    value = chance.randbytes(RECORD_BYTES)
    partitions = [(name, number) for name, rows in plan.items() for number in range(len(rows))]
    for (name, number), count in zip(partitions, records, strict=True):
        for _ in range(count):
            while True:
                try:
                    producer.produce(name, value=value, partition=number, on_delivery=note)
                    break
                except BufferError:
                    producer.poll(0.1)
            producer.poll(0)
    left = producer.flush(APPLIED_WITHIN_S)
    if left or failures:
        raise Unavailable(f"{left + len(failures)} records were not acknowledged: {(failures or ['timeout'])[0]}.")
