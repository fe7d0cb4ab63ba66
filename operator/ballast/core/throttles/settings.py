"""Replication throttles (KIP-73): what to set, how it blends with what stands there, and how to restore exactly what was there.

Four settings make a throttle: on each topic the lists of throttled replicas, leader and follower side, as
``partition:broker``; on each broker the two rates.  A throttle bites only on *listed replicas that are not in sync*.

The ledger is the memory of what this program changed: for each setting the value that stood there before (None when the
resource had none of its own, whatever a cluster default or a static file says) and every value or entry that we may have
put there.  Invariants: a setting is changed only after its ledger line is durable; restoring removes our entries and
nothing else; a rate that another process or person has set over ours is theirs and stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from ballast.core.cluster import TopicPartition
from ballast.core.plan import Move
from ballast.core.wording import human_bytes

LEADER_REPLICAS: Final = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS: Final = "follower.replication.throttled.replicas"
LEADER_RATE: Final = "leader.replication.throttled.rate"
FOLLOWER_RATE: Final = "follower.replication.throttled.rate"
LOG_DIR_RATE: Final = "replica.alter.log.dirs.io.max.bytes.per.second"
LISTS: Final = (LEADER_REPLICAS, FOLLOWER_REPLICAS)
RATES: Final = (LEADER_RATE, FOLLOWER_RATE, LOG_DIR_RATE)
EVERYTHING: Final = "*"
"""As a list: every replica of the topic is throttled."""

SAFE_SHARE: Final = 0.8
"""A rate is enough when the inbound rate it must keep up with is under this share of it."""


class Setting(NamedTuple):
    """One config entry: ``topic`` or ``broker``, its name, and the key."""

    kind: str
    name: str
    key: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name} {self.key}"


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """What we changed of one setting; without ``ours``, a rate that another process or person took over and that is left to them."""

    prior: str | None
    """The resource's own value before us; None when it had none."""
    ours: frozenset[str]
    """List entries we may have added, or rate values we may have set."""


DesiredThrottles = Mapping[Setting, frozenset[str]]
"""What a run wants to stand: list entries, or the one rate value. A setting that is absent is to be as it was."""
Ledger = Mapping[Setting, LedgerEntry]


class Op(NamedTuple):
    """One change of one setting, as KIP-339 has it: ``set``, ``delete``, or for lists ``append`` and ``subtract``."""

    operation: str
    value: str | None


@dataclass(frozen=True, slots=True)
class Settlement:
    """How to get from what stands to what is wanted."""

    intent: dict[Setting, LedgerEntry] = field(default_factory=dict)
    """Ledger lines to write before acting; each covers both what stands and what will."""
    changes: dict[Setting, list[Op]] = field(default_factory=dict)
    """What to send, in order; a request takes one change of each setting."""
    unsettled: set[Setting] = field(default_factory=set)
    """Lists that these changes may leave empty: they are to be read and settled once more, and stay in the ledger until then."""
    after: dict[Setting, LedgerEntry | None] = field(default_factory=dict)
    """Ledger lines once the change has succeeded; None means that nothing of ours is left there."""
    taken_over: dict[Setting, str | None] = field(default_factory=dict)
    """Rates of ours that another process or person has changed since; they are left as they are."""


def parse_list(text: str | None) -> list[str]:
    """The entries of a throttled-replicas list, in order."""
    return [e.strip() for e in (text or "").split(",") if e.strip()]


def _sort_key(entry: str) -> tuple[int, int]:
    partition, _, broker = entry.partition(":")
    return int(partition), int(broker)


def entries(moves: Iterable[Move]) -> dict[Setting, frozenset[str]]:
    """The list entries that these moves need.

    Leader side: every replica before the move, since any of them may come to lead.  Follower side: every replica that
    must be copied.  A move that copies nothing needs no entry.
    """
    out: dict[Setting, set[str]] = {}
    for m in moves:
        if not m.adding:
            continue
        out.setdefault(Setting("topic", m.topic, LEADER_REPLICAS), set()).update(f"{m.partition}:{b}" for b in m.old)
        out.setdefault(Setting("topic", m.topic, FOLLOWER_REPLICAS), set()).update(
            f"{m.partition}:{b}" for b in m.adding
        )
    return {s: frozenset(v) for s, v in out.items()}


def brokers_involved(moves: Iterable[Move]) -> frozenset[int]:
    """Every broker that may send or receive a byte of these moves."""
    return frozenset(b for m in moves if m.adding for b in (*m.old, *m.adding))


def settle(
    desired: DesiredThrottles,
    ledger: Ledger,
    current: Mapping[Setting, str | None],
    *,
    keep_existing_rates: bool = False,
) -> Settlement:
    """Compare what is wanted with what stands; pure, and idempotent: settling twice changes nothing the second time."""
    out = Settlement()
    for setting in sorted({*desired, *ledger}):
        if setting.key in LISTS:
            _settle_list(out, setting, desired.get(setting, frozenset()), ledger.get(setting), current.get(setting))
        else:
            wanted = next(iter(desired.get(setting, ())), None)
            _settle_rate(out, setting, wanted, ledger.get(setting), current.get(setting), keep=keep_existing_rates)
    return out


def _settle_list(
    out: Settlement, setting: Setting, wanted: frozenset[str], held: LedgerEntry | None, now: str | None
) -> None:
    """Append what is missing and subtract what is over: an entry that another process adds between reading and writing stays.

    A list that is empty afterwards is deleted only when a reading after the subtraction shows it empty.
    """
    standing = parse_list(now)
    mine = held.ours if held else frozenset()
    prior = held.prior if held else now
    if EVERYTHING in wanted or EVERYTHING in mine:
        _settle_everything(out, setting, wanted, held, now)
        return
    base = [e for e in standing if e not in mine]
    # Where the list standing there throttles every replica already, there is nothing to add.
    ours = frozenset() if EVERYTHING in standing else wanted - set(base)
    ops = [Op("append", _text(missing))] if (missing := ours - set(standing)) else []
    ops += [Op("subtract", _text(over))] if (over := (mine & set(standing)) - ours) else []
    if ours:
        if ops:
            out.intent[setting] = LedgerEntry(prior, mine | ours)
        if held != (line := LedgerEntry(prior, ours)):
            out.after[setting] = line
    elif held is not None:
        ops = _delete_once_empty(out, setting, prior, ops, now if not base else None)
        if ops:
            out.intent[setting] = held
        if setting not in out.unsettled:
            out.after[setting] = None
    if ops:
        out.changes[setting] = ops


def _settle_everything(
    out: Settlement, setting: Setting, wanted: frozenset[str], held: LedgerEntry | None, now: str | None
) -> None:
    """The list ``*``, which stands alone: what was there before it comes back by appending it again."""
    standing = parse_list(now)
    if EVERYTHING in wanted:
        if EVERYTHING not in standing:
            out.intent[setting] = LedgerEntry(held.prior if held else now, frozenset({EVERYTHING}))
            out.changes[setting] = [Op("set" if standing else "append", EVERYTHING)]
            out.after[setting] = out.intent[setting]
        return
    assert held is not None, "no move wants it, so it is in the ledger"
    ops = []
    others = [e for e in standing if e != EVERYTHING]
    if EVERYTHING in standing:
        back = [e for e in parse_list(held.prior) if e not in others]
        # Brokers take ``*`` alone, so it goes first.
        ops = [Op("subtract", EVERYTHING), *([Op("append", ",".join(back))] if back else [])]
        others += back
    ops = _delete_once_empty(out, setting, held.prior, ops, now if not others else None)
    if ops:
        out.intent[setting] = held
        out.changes[setting] = ops
    if setting not in out.unsettled:
        out.after[setting] = None


def _delete_once_empty(
    out: Settlement, setting: Setting, prior: str | None, ops: list[Op], now: str | None
) -> list[Op]:
    """``ops``, which subtract our last entries, or the deletion of a list that this reading shows to be empty.

    ``now`` is None where the list holds entries of others, or there is no list: then nothing is deleted.
    """
    was_empty = prior is not None and not parse_list(prior)
    if now is None or was_empty:
        return ops
    if ops:
        out.unsettled.add(setting)
        return ops
    return [Op("delete", None)]


def _text(entries_: Iterable[str]) -> str:
    return ",".join(sorted(entries_, key=_sort_key))


def _settle_rate(
    out: Settlement, setting: Setting, wanted: str | None, held: LedgerEntry | None, now: str | None, *, keep: bool
) -> None:
    if held is None:
        if wanted is None or now == wanted or (keep and now is not None):
            return
        out.intent[setting] = LedgerEntry(now, frozenset({wanted}))
        out.changes[setting] = [Op("set", wanted)]
        out.after[setting] = out.intent[setting]
        return
    if is_theirs(now, held):
        if held.ours:
            out.taken_over[setting] = now
        # A line without values of ours remembers whose it is, so that it is not set over at the next occasion.
        left = LedgerEntry(now, frozenset()) if wanted is not None and now is not None else None
        if left != held:
            out.after[setting] = left
        return
    if not held.ours:
        # The rate was left to another process or person, who removed it: theirs is not ours to bring back.
        held = LedgerEntry(None, frozenset())
    text = held.prior if wanted is None else wanted
    if text != now:
        out.intent[setting] = held if wanted is None else LedgerEntry(held.prior, held.ours | {wanted})
        out.changes[setting] = [Op("delete" if text is None else "set", text)]
    after = None if wanted is None else LedgerEntry(held.prior, frozenset({wanted}))
    if after != held:
        out.after[setting] = after


def is_theirs(now: str | None, held: LedgerEntry) -> bool:
    """Has another process or person changed a rate of ours, or does one stand that was left to them?"""
    if not held.ours:
        return now is not None
    return now not in held.ours and now != held.prior


@dataclass(frozen=True, slots=True)
class RateShortfall:
    """A rate at which a move could never finish, with the arithmetic."""

    name: TopicPartition
    broker: int
    side: str
    """``follower`` or ``leader``."""
    inbound_bytes_per_s: float
    """What the broker must copy just to stand still."""
    rate_bytes_per_s: int
    needed_bytes_per_s: int

    def __str__(self) -> str:
        verb = "fetch" if self.side == "follower" else "send"
        return (
            f"Producers write {human_bytes(self.inbound_bytes_per_s)}/s to {self.name}, which broker {self.broker} must {verb} for this move, "
            f"and its throttle is {human_bytes(self.rate_bytes_per_s)}/s: "
            + (
                f"it would fall behind by {human_bytes(self.inbound_bytes_per_s - self.rate_bytes_per_s)} each second"
                if self.inbound_bytes_per_s > self.rate_bytes_per_s
                else "next to nothing would be left for catching up"
            )
            + f"; at least {human_bytes(self.needed_bytes_per_s)}/s is needed"
        )


def shortfall(move: Move, leader: int, inbound_bytes_per_s: float, rates: Mapping[int, int]) -> RateShortfall | None:
    """The first broker of this move whose rate could not even keep up with what producers write to the partition."""
    sides = [(b, "follower", inbound_bytes_per_s) for b in move.adding]
    if leader >= 0:
        sides.append((leader, "leader", inbound_bytes_per_s * len(move.adding)))
    for broker, side, inbound in sides:
        rate = rates.get(broker)
        if rate is not None and inbound > rate * SAFE_SHARE:
            return RateShortfall(move.name, broker, side, inbound, rate, int(inbound / SAFE_SHARE) + 1)
    return None


def follow(rate: int, *, used_bytes_per_s: float, bystanders_suffer: bool, minimum: int, maximum: int) -> int:
    """The next ``auto`` rate: halve when bystanders suffer, grow by a quarter while the moves use what they have.

    An unused rate is left alone: raising it would speed nothing up, and lowering it would only slow the next move down.
    """
    if bystanders_suffer:
        return max(minimum, rate // 2)
    if used_bytes_per_s >= 0.7 * rate:
        return min(maximum, rate + max(rate // 4, 1))
    return max(minimum, min(rate, maximum))
