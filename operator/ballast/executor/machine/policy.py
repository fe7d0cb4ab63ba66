"""How a run may behave: every knob of the executor in one frozen value, journaled with the run it governs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, Self

from ballast.errors import UsageError

MIB = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionPolicy:
    """Limits, rates and timeouts of one run; each docstring stands alone."""

    throttle: Literal["auto", "none"] | int = "auto"
    """Replication rate of every broker involved, as leader and as follower, in bytes/s. `auto` chooses a start rate for each broker by its
    network, its traffic and the size of its copies, raises the rate by a quarter while copies use 70 % of it, and halves it when other
    replicas fall out of sync or further behind; it stays between `auto_min_bytes_per_s` and `auto_max_bytes_per_s`. A number is a
    fixed rate; `none` copies without a throttle."""
    throttle_per_broker: Mapping[int, int] = field(default_factory=dict)
    """Fixed rates by broker id, in bytes/s; they replace `throttle` on these brokers."""
    auto_min_bytes_per_s: int = 1 * MIB
    """Minimum rate of `throttle: auto` on each broker, in bytes/s."""
    auto_max_bytes_per_s: int = 1024 * MIB
    """Maximum rate of `throttle: auto` on each broker, in bytes/s, unless producers write more to the partitions that it copies."""
    auto_start_bytes_per_s: int = 8 * MIB
    """Minimum start rate of `throttle: auto` where the network is not known (`network_bytes_per_s`). A broker starts at half of the traffic
    that it already carries where that is more."""
    auto_small_copy_bytes_per_s: int = 32 * MIB
    """Minimum start rate of `throttle: auto` for a broker whose whole copy takes at most `auto_small_copy_s` at this rate."""
    auto_small_copy_s: float = 8.0
    """Maximum time that a broker's whole copy takes at `auto_small_copy_bytes_per_s` for that rate to be its minimum start rate, in seconds."""
    network_bytes_per_s: int | None = None
    """Network capacity of each broker in each direction, in bytes/s. `throttle: auto` starts at half of what other traffic leaves of it
    (`network_fraction`), and does not exceed what is left. Empty: the capacity is not known."""
    network_fraction: float = 0.8
    """Maximum fraction of `network_bytes_per_s` that moves and all other traffic fill together with `throttle: auto`."""
    log_dir_throttle_bytes_per_s: int | None = None
    """Rate of copies between log dirs of one broker, in bytes/s. Empty: the broker's own setting is not changed."""
    raise_throttle: bool = False
    """True raises a fixed throttle that is too low for the inbound rate of a moving partition. False refuses the move. `throttle: auto` is
    always raised, up to its maximum."""
    keep_existing_rates: bool = False
    """True leaves rates that another process or user set on a broker as they are (`--preserve-throttles` of
    `kafka-reassign-partitions`)."""
    override_rates_of_others: bool = False
    """True sets this run's rates also on brokers of throttled foreign reassignments in progress (`--additional` of
    `kafka-reassign-partitions`). With false, moves that need such a broker wait until these reassignments have ended; repairs do not
    wait."""
    moves_in_per_broker: int = 5
    """Maximum number of replicas that one broker receives at a time."""
    moves_out_per_broker: int = 10
    """Maximum number of partitions that one broker leads and that are moved at a time."""
    moves_at_once: int = 200
    """Maximum number of moves in progress in the whole cluster."""
    bytes_at_once: int | None = None
    """Maximum number of bytes that the moves in progress still have to copy. One move is always allowed. Empty: no limit."""
    no_copy_batch: int = 1000
    """Maximum number of moves submitted together that copy nothing (replica list changes, fewer replicas)."""
    election_batch: int = 500
    """Maximum number of elections in one request."""
    submit_chunk: int = 1000
    """Maximum number of partitions in one AlterPartitionReassignments request; the controller accepts at most 10,000 records."""
    one_batch_at_a_time: bool = False
    """True starts the next moves only when all moves before have ended. It is always so on clusters without AlterPartitionReassignments,
    which reassign through the ZooKeeper znode `/admin/reassign_partitions`."""
    batch_json_bytes: int = 900_000
    """Maximum size of a batch as Kafka's JSON with `one_batch_at_a_time`, in bytes: one znode holds the batch, and a znode has at most 1
    MiB."""
    poll_s: float = 1.0
    """Time between two readings of the moves in progress, in seconds."""
    progress_s: float = 5.0
    """Time between two readings of log dirs (bytes copied) while data moves, in seconds."""
    guard_s: float = 10.0
    """Maximum age of the reading of the whole cluster that guards use, in seconds; ten times as long as the reading took where that is
    more."""
    submit_grace_s: float = 15.0
    """How long a submitted move may be absent from the controller's list of reassignments before it counts as not accepted, in seconds."""
    stall_after_s: float = 60.0
    """A move that copied nothing for this long is stalled, in seconds."""
    stall_min_s: float = 300.0
    """Minimum time for each 10 % of a move's bytes before the move is stalled by `stall_factor`, in seconds, however small it is."""
    stall_factor: float = 4.0
    """A move is stalled when 10 % of its bytes takes more than this multiple of the time expected at its share of the throttle, and more
    than `stall_min_s`."""
    stall_unthrottled_bytes_per_s: int = 1 * MIB
    """Rate that `stall_factor` expects of a move where no throttle is set, in bytes/s."""
    cancel_stalled_after_s: float | None = None
    """Cancel a move that has been stalled for this long, in seconds: it ends as `timed-out`, and other moves continue. Empty: it is not
    cancelled, and the run waits and reports the cause."""
    guard_timeout_s: float | None = None
    """End the run when nothing moves and guards have refused every waiting move for this long, in seconds. Empty: the daemon waits without
    limit, commands wait for 300 s."""
    disk_reserve_fraction: float = 0.05
    """Minimum fraction of a log dir's total size that stays free when a replica is moved there."""
    max_attempts: int = 4
    """Maximum number of submissions (and of elections, and of throttle settings) for each partition before it ends as failed."""
    measure_s: float = 2.0
    """How long the inbound rate of the moving partitions is measured before a throttled run starts, in seconds. With 0 nothing is measured,
    and the throttle is not checked against it."""
    guard_under_replicated_neighbours: bool = True
    """True holds moves back while another partition on a broker they touch is under-replicated."""

    unknown_disk_space: Literal["refuse", "allow"] = "refuse"
    """Whether data is copied where disk space is not known. `refuse` copies no replicas to a broker whose free space is not known, though
    the cluster's brokers report it, and does not copy a partition whose size no broker reports. `allow` copies both."""
    replicas_below_min_isr: Literal["refuse", "allow"] = "refuse"
    """Whether partitions with fewer replicas than `min.insync.replicas` are copied. While all their replicas are in sync they accept writes
    with `acks=all`, but not while a replica is added. `refuse` does not copy them, and automatic plans leave them in place; `allow` copies
    them."""
    replication_factor_change: Literal["allow", "refuse"] = field(default="allow", metadata={"command_only": True})
    """Whether moves may change how many replicas a partition has; `refuse` lets the cluster refuse those that would
    (`--disallow-replication-factor-change` of `kafka-reassign-partitions`, KIP-860)."""
    journal_lost: Literal["finish", "leave"] = field(default="finish", metadata={"command_only": True})
    """When the journal is deleted, recreated or truncated during a run: `finish` recreates it from memory and goes on;
    `leave` begins nothing more, puts throttles back that no move in progress needs, and prints commands for the others. A daemon
    always recreates its journal."""

    def __post_init__(self) -> None:
        """Refuse values that could only be a slip."""
        rates = [r for r in (self.throttle, self.log_dir_throttle_bytes_per_s) if isinstance(r, int)]
        if any(r <= 0 for r in [*rates, *self.throttle_per_broker.values()]):
            raise UsageError(
                "A throttle of zero or less would stop replication.",
                hint="Give bytes per second, auto, or none for no throttle.",
            )
        if min(self.auto_start_bytes_per_s, self.auto_small_copy_bytes_per_s) < 1 or self.auto_small_copy_s < 0:
            raise UsageError(
                "auto_start_bytes_per_s and auto_small_copy_bytes_per_s are above 0, auto_small_copy_s is not below it."
            )
        if self.auto_min_bytes_per_s < 1 or self.auto_min_bytes_per_s > self.auto_max_bytes_per_s:
            raise UsageError("auto_min_bytes_per_s is above 0 and not over auto_max_bytes_per_s.")
        if (
            self.network_bytes_per_s is not None and self.network_bytes_per_s <= 0
        ) or not 0 < self.network_fraction <= 1:
            raise UsageError("network_bytes_per_s is above 0, and network_fraction above 0 and at most 1.")
        counts = (self.moves_in_per_broker, self.moves_out_per_broker, self.moves_at_once)
        if min(counts) < 1 or min(self.no_copy_batch, self.election_batch, self.submit_chunk, self.max_attempts) < 1:
            raise UsageError("Batch sizes and limits are at least 1.")
        if self.stall_min_s <= 0 or self.stall_factor < 1 or self.stall_unthrottled_bytes_per_s < 1:
            raise UsageError(
                "A move's time must be more than nothing: stall_min_s and stall_unthrottled_bytes_per_s above 0, stall_factor at least 1."
            )

    @property
    def throttled(self) -> bool:
        """Does this run set replication throttles at all?"""
        return self.throttle != "none" or bool(self.throttle_per_broker)

    @property
    def auto(self) -> bool:
        """Does the rate of brokers that are not named follow the cluster?"""
        return self.throttle == "auto"

    @property
    def small_bytes(self) -> int:
        """The most that a broker may have to copy for its part of a run to count as small."""
        return int(self.auto_small_copy_bytes_per_s * self.auto_small_copy_s)

    def rate(self, broker: int) -> int | None:
        """The fixed rate of this broker; None where the rate follows the cluster, and where there is no throttle."""
        if broker in self.throttle_per_broker:
            return self.throttle_per_broker[broker]
        return self.throttle if isinstance(self.throttle, int) else None

    def follows(self, broker: int) -> bool:
        """Does this broker's rate follow the cluster?"""
        return self.auto and broker not in self.throttle_per_broker

    def adapt(self, api: Collection[str]) -> Self:
        """The policy for a cluster that understands these calls (``ClusterState.api``).

        Without KIP-455 reassignments go through one znode, which takes one batch at a time.
        """
        return self if "reassign" in api else replace(self, one_batch_at_a_time=True)

    def dump(self) -> dict[str, Any]:
        """JSON for the journal: only what differs from the defaults."""
        default = type(self)()
        out: dict[str, Any] = {}
        for f in fields(self):
            value = getattr(self, f.name)
            if value != getattr(default, f.name):
                out[f.name] = {str(k): v for k, v in value.items()} if f.name == "throttle_per_broker" else value
        return out

    @classmethod
    def unknown(cls, value: Mapping[str, Any]) -> tuple[str, ...]:
        """The knobs in ``dump``'s JSON that this version does not have."""
        return tuple(sorted(set(value) - {f.name for f in fields(cls)}))
