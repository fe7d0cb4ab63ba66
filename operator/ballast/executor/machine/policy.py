"""How a run may behave: every knob of the executor in one frozen value, journaled with the run it governs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, Self

from ballast.errors import UsageError

MIB = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionPolicy:
    """Limits, rates and timeouts of one run."""

    throttle: Literal["auto", "none"] | int = "auto"
    """Replication rate of every broker involved, leader and follower side alike.  ``auto`` starts from what is known and follows
    what the moves use and how other partitions fare, between the two bounds below; a whole number is a fixed rate in bytes/s;
    ``none`` copies without a throttle."""
    throttle_per_broker: Mapping[int, int] = field(default_factory=dict)
    """Fixed rates in bytes/s for single brokers; they replace ``throttle`` there."""
    auto_floor_bytes_per_s: int = 1 * MIB
    """``auto`` never goes under this."""
    auto_ceiling_bytes_per_s: int = 1024 * MIB
    """``auto`` never goes over this."""
    auto_start_bytes_per_s: int = 8 * MIB
    """Where no network is stated, ``auto`` starts at half of what a broker carries already, and at least at this."""
    auto_small_bytes_per_s: int = 32 * MIB
    """``auto`` starts a broker that is done within ``auto_small_s`` at this rate at no less than this rate."""
    auto_small_s: float = 8.0
    """How long a broker may copy at ``auto_small_bytes_per_s`` for its part of a run to count as small."""
    network_bytes_per_s: int | None = None
    """What each broker's network carries in each direction; ``auto`` starts at half of what is left of it and never
    goes over that.  None: nothing is assumed of the network."""
    network_share: float = 0.8
    """Share of that network that ``auto`` lets moves and all other traffic fill together."""
    log_dir_throttle_bytes_per_s: int | None = None
    """Rate for copies between log dirs of one broker; None leaves the broker's setting alone."""
    raise_throttle: bool = False
    """Raise a throttle that is below the inbound rate of the moving partitions, instead of refusing it."""
    keep_existing_rates: bool = False
    """Leave rates that another process or person set on a broker as they are (the stock tool's ``--preserve-throttles``)."""
    override_rates_of_others: bool = False
    """Set this run's rates also where throttled foreign reassignments are in progress (the stock tool's ``--additional``);
    otherwise moves that need such a broker wait until those have ended, repairs excepted."""
    moves_in_per_broker: int = 5
    """Replicas that one broker may be receiving at a time."""
    moves_out_per_broker: int = 10
    """Moving partitions that one broker may be the source (leader) of at a time."""
    moves_in_cluster: int = 200
    """Moves in progress in the whole cluster."""
    bytes_in_flight: int | None = None
    """Bytes still to be copied by the moves in progress; None does not bound them. One move may always run."""
    no_copy_batch: int = 1000
    """Moves that copy nothing (replica list changes, fewer replicas) submitted together."""
    election_batch: int = 500
    """Elections asked for in one request."""
    submit_chunk: int = 1000
    """Partitions in one AlterPartitionReassignments request; the controller takes at most 10,000 records."""
    one_batch_at_a_time: bool = False
    """Start the next moves only when every one before has ended; clusters with the ZooKeeper admin znode need it."""
    batch_json_bytes: int = 900_000
    """In that mode, the size of the batch as Kafka's JSON: one znode holds it, and znodes end at 1 MiB."""
    poll_s: float = 1.0
    """Time between looks at the moves in progress."""
    progress_s: float = 5.0
    """Time between readings of log dirs (bytes copied) while something moves."""
    guard_s: float = 10.0
    """Oldest whole-cluster reading that a guard may judge by."""
    submit_grace_s: float = 15.0
    """How long a submitted move may be absent from the cluster's list before it counts as not taken."""
    stall_after_s: float = 60.0
    """A move that copied nothing for this long is stalled."""
    stall_minimum_s: float = 300.0
    """A move has at least this long for each tenth of its bytes before it counts as stalled, however small it is."""
    stall_factor: float = 4.0
    """Beyond that, how many times as long as its share of the throttle needs for a tenth of its bytes."""
    least_bytes_per_s: int = 1 * MIB
    """What a move is expected to copy where no throttle is set."""
    cancel_stalled_after_s: float | None = None
    """Cancel a move that has been stalled for this long (it ends as timed-out, the rest goes on); None keeps it, waits, and
    keeps saying why."""
    guard_timeout_s: float | None = None
    """Give up when nothing moves and every waiting move has been refused for this long; None never does."""
    disk_reserve_share: float = 0.05
    """Share of a log dir's total size that a move must leave free."""
    max_attempts: int = 4
    """Submissions (and elections, and throttle settings) per partition before it ends as failed."""
    measure_s: float = 2.0
    """How long the inbound rate of the moving partitions is measured before a throttled run begins; 0 trusts the rate."""
    guard_under_replicated_neighbours: bool = True
    """Hold moves while another partition on a broker they touch is under-replicated."""

    unknown_disk_space: Literal["refuse", "allow"] = "refuse"
    """A broker whose free space is not known, though the cluster's brokers report it, gets no replicas, and a partition whose size no
    broker reports is not copied; or both are trusted to fit."""
    replicas_below_min_isr: Literal["refuse", "allow"] = "refuse"
    """A partition with fewer replicas than `min.insync.replicas`, all in sync, takes writes with `acks=all`, and refuses them while a
    replica is added to it: it is not copied, and automatic plans leave it in place; or it is copied all the same."""
    replication_factor_change: Literal["allow", "refuse"] = field(default="allow", metadata={"command_only": True})
    """Whether moves may change how many replicas a partition has; `refuse` lets the cluster refuse those that would (the stock tool's
    ``--disallow-replication-factor-change``, KIP-860)."""
    journal_lost: Literal["finish", "leave"] = field(default="finish", metadata={"command_only": True})
    """When the journal is deleted, made again or cut off while a run goes on: `finish` makes it again from memory and goes on;
    `leave` begins nothing more, puts throttles back that no move in progress needs, and prints commands for the others. A daemon
    always makes its journal again."""

    def __post_init__(self) -> None:
        """Refuse values that could only be a slip."""
        rates = [r for r in (self.throttle, self.log_dir_throttle_bytes_per_s) if isinstance(r, int)]
        if any(r <= 0 for r in [*rates, *self.throttle_per_broker.values()]):
            raise UsageError(
                "A throttle of zero or less would stop replication.",
                hint="Give bytes per second, auto, or none for no throttle.",
            )
        if min(self.auto_start_bytes_per_s, self.auto_small_bytes_per_s) < 1 or self.auto_small_s < 0:
            raise UsageError(
                "auto_start_bytes_per_s and auto_small_bytes_per_s are above 0, auto_small_s is not below it."
            )
        if self.auto_floor_bytes_per_s < 1 or self.auto_floor_bytes_per_s > self.auto_ceiling_bytes_per_s:
            raise UsageError("auto_floor_bytes_per_s is above 0 and not over auto_ceiling_bytes_per_s.")
        if (self.network_bytes_per_s is not None and self.network_bytes_per_s <= 0) or not 0 < self.network_share <= 1:
            raise UsageError("network_bytes_per_s is above 0, and network_share above 0 and at most 1.")
        counts = (self.moves_in_per_broker, self.moves_out_per_broker, self.moves_in_cluster)
        if min(counts) < 1 or min(self.no_copy_batch, self.election_batch, self.submit_chunk, self.max_attempts) < 1:
            raise UsageError("Batch sizes and caps are at least 1.")
        if self.stall_minimum_s <= 0 or self.stall_factor < 1 or self.least_bytes_per_s < 1:
            raise UsageError(
                "A move's time must be more than nothing: stall_minimum_s and least_bytes_per_s above 0, stall_factor at least 1."
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
        return int(self.auto_small_bytes_per_s * self.auto_small_s)

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

    @classmethod
    def load(cls, value: Mapping[str, Any], *, skips_unknown: bool = False) -> Self:
        """Read ``dump``'s JSON; a knob of a newer version is refused rather than ignored, unless nothing acts by it any more."""
        strange = cls.unknown(value)
        if skips_unknown:
            value = {name: v for name, v in value.items() if name not in strange}
        elif strange:
            raise UsageError(
                f"The journaled policy has settings this version does not know: {', '.join(strange)}.",
                hint="Use the Ballast version that started the run, or a newer one.",
            )
        given = dict(value)
        if "throttle_per_broker" in given:
            given["throttle_per_broker"] = {int(k): int(v) for k, v in given["throttle_per_broker"].items()}
        return cls(**given)
