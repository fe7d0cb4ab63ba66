"""The throttle ledger in the journal, and the one place that changes throttle settings on a cluster."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from ballast.core.cluster import ConfigValue, TopicPartition
from ballast.core.throttles import LISTS, DesiredThrottles, LedgerEntry, Op, Setting, Settlement, parse_list, settle
from ballast.executor.journal.notes import RunNote, why
from ballast.ports.cluster import Cluster, ConfigChange, ConfigResource, Outcome
from ballast.ports.journal import Record, read_record
from ballast.ports.time import Clock

LEDGER_VERSION: Final = 1
OWN_SOURCES: Final = {
    "topic": frozenset({"DYNAMIC_TOPIC_CONFIG"}),
    "broker": frozenset({"DYNAMIC_BROKER_CONFIG"}),
    "": frozenset({"DYNAMIC_DEFAULT_BROKER_CONFIG"}),
}
"""Where a value must come from to be the resource's own; what it inherits comes back by deleting ours."""


BELIEVED_S: Final = 10.0
"""A reading that contradicts what this process has set counts as a foreign change only when that was set this long ago."""
REREAD_S: Final = 0.25
FRESH_S: Final = 1.0
"""An id that was read longer ago is read again before anything is sent to its topic."""
GONE_S: Final = 3.0
"""A topic is gone when every reading for so long shows none: a broker that has just started may not have heard of it."""
EMPTYING_TRIES: Final = 3
"""Readings after which a list that is not seen empty stays in the ledger until the next occasion."""


class Sent(NamedTuple):
    """What this process last changed, and was told that it stands."""

    op: Op
    at_s: float
    """On the monotonic clock."""

    def shows(self, value: str | None) -> bool:
        """Does a reading show it?  Of a list only our own entries are looked for."""
        entries = set(parse_list(self.op.value))
        match self.op.operation:
            case "append":
                return entries <= set(parse_list(value))
            case "subtract":
                return entries.isdisjoint(parse_list(value))
            case _:
                return value == self.op.value


RUNS: Final = "throttle"
"""The ledger of what runs have set: removed when they end, or by the next start."""
BY_HAND: Final = "hand-throttle"
"""The ledger of what ``ballast throttles set`` has set: it stays until a person removes it."""


def ledger_key(setting: Setting, ledger: str = RUNS) -> str:
    """The journal key of a setting."""
    return f"{ledger}/{setting.kind}/{setting.name}/{setting.key}"


def dump_held(setting: Setting, held: LedgerEntry | None, ledger: str = RUNS, *, topic_id: str | None = None) -> Record:
    """A ledger line; None strikes it out.  ``topic_id`` is the topic that the setting was changed on."""
    if held is None:
        return Record(ledger_key(setting, ledger), None)
    line: dict[str, Any] = {
        "version": LEDGER_VERSION,
        "kind": setting.kind,
        "name": setting.name,
        "key": setting.key,
        "prior": held.prior,
        "ours": sorted(held.ours),
    }
    if topic_id is not None:
        line["topic_id"] = topic_id
    return Record(ledger_key(setting, ledger), line)


def load_topic_ids(records: Iterable[Record], ledger: str = RUNS) -> dict[str, str]:
    """The ids of the topics whose settings stand in the ledger, where the cluster has ids."""
    lines = [r for r in records if r.key.startswith(f"{ledger}/topic/") and r.value is not None]
    found = (read_record(line, _Owner) for line in lines)
    return {owner.name: owner.topic_id for owner in found if owner.topic_id is not None}


def load_ledger(records: Iterable[Record], ledger: str = RUNS) -> dict[Setting, LedgerEntry]:
    """Every line of the ledger."""
    out = {}
    for record in records:
        if not record.key.startswith(f"{ledger}/") or record.value is None:
            continue
        line = read_record(record, _Line, version=LEDGER_VERSION)
        out[Setting(line.kind, line.name, line.key)] = LedgerEntry(line.prior, line.ours)
    return out


@dataclass(frozen=True, slots=True)
class _Owner:
    """Whose setting a line is about."""

    name: str
    topic_id: str | None = None


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of the ledger."""

    kind: str
    name: str
    key: str
    prior: str | None
    """It must be said: as if nothing had stood there, the setting would be deleted in the place of being put back."""
    ours: frozenset[str]


def resource_of(setting: Setting) -> ConfigResource:
    """The config resource that the setting belongs to."""
    return ConfigResource(setting.kind, setting.name)


def own_value(setting: Setting, entries: Mapping[str, ConfigValue]) -> str | None:
    """The resource's own value of a setting; None when it merely inherits one."""
    entry = entries.get(setting.key)
    own = OWN_SOURCES["" if setting.kind == "broker" and not setting.name else setting.kind]
    return entry.value if entry is not None and entry.source in own else None


def list_unrestored(unrestored: Mapping[Setting, Outcome]) -> list[str]:
    """A sentence for each setting that could not be removed, with the reason."""
    return [f"{setting}: {why(outcome)}." for setting, outcome in unrestored.items()]


@dataclass(slots=True)
class Throttler:
    """Settles what stands with what is wanted, ledger line first."""

    cluster: Cluster
    clock: Clock
    renew: Callable[[], None]
    """Keeps the lock while a reading is waited for."""
    ledger: dict[Setting, LedgerEntry] = field(default_factory=dict)
    keep_existing_rates: bool = False
    sent: dict[Setting, Sent] = field(default_factory=dict)
    kind: str = RUNS
    """Which of the journal's two ledgers it keeps."""
    topic_ids: dict[str, str] = field(default_factory=dict)
    """The ids of the topics whose settings were changed: another topic of the same name owes nothing."""
    seen: dict[str, tuple[str, float]] = field(default_factory=dict)
    """The ids that topics had when they were last read, and when that was."""

    def load(self, records: Sequence[Record]) -> None:
        """Take up its ledger as the journal has it."""
        self.ledger, self.topic_ids = load_ledger(records, self.kind), load_topic_ids(records, self.kind)

    def settle(
        self,
        desired: DesiredThrottles,
        alive: Collection[int],
        write: Callable[[list[Record]], None],
        note: Callable[[RunNote], None],
    ) -> dict[Setting, Outcome]:
        """Make the settings stand as aimed and everything else of ours be gone; answers what could not be changed.

        ``write`` journals records durably and checks the lock; it is called before the first change is sent.
        """
        failed, unsettled = self._settle_once(desired, {*desired, *self.ledger}, alive, write, note)
        # A list that another process was adding to is left to it; one that is seen to be empty is deleted.
        for _ in range(EMPTYING_TRIES):
            if not unsettled:
                break
            late, unsettled = self._settle_once(desired, unsettled, alive, write, note)
            failed |= late
        return failed

    def _settle_once(
        self,
        desired: DesiredThrottles,
        touched: Collection[Setting],
        alive: Collection[int],
        write: Callable[[list[Record]], None],
        note: Callable[[RunNote], None],
    ) -> tuple[dict[Setting, Outcome], set[Setting]]:
        """One reading and what follows from it: what could not be changed, and lists that are to be looked at again."""
        unreachable = {s for s in touched if s.kind == "broker" and s.name and int(s.name) not in alive}
        failed = {
            s: Outcome(ok=False, code="BROKER_NOT_AVAILABLE", message=f"broker {s.name} is not alive")
            for s in unreachable
        }
        desired, entries = self._read(desired, set(touched) - unreachable, write, note)
        asked = (set(touched) - unreachable) & {*desired, *self.ledger}
        gone = self._find_gone({s.name for s in asked if s.kind == "topic" and resource_of(s) not in entries})
        current: dict[Setting, str | None] = {}
        for setting in asked:
            found = entries.get(resource_of(setting))
            if found is not None:
                current[setting] = own_value(setting, found)
            elif setting.kind == "topic" and setting.name in gone:
                # Its settings went with it: nothing is owed any more.
                failed[setting] = Outcome(
                    ok=False, code="UNKNOWN_TOPIC_OR_PARTITION", message=f"topic {setting.name} does not exist"
                )
                self._strike(setting, write)
            else:
                failed[setting] = Outcome(
                    ok=False,
                    code="NOT_READ",
                    message=f"the settings of {setting.kind} {setting.name} were not reported",
                )
        settlement = settle(
            {s: v for s, v in desired.items() if s in current},
            {s: v for s, v in self.ledger.items() if s in current},
            current,
            keep_existing_rates=self.keep_existing_rates,
        )
        for setting, value in settlement.taken_over.items():
            note(RunNote("throttle-changed-externally", {"setting": str(setting), "value": value}))
        failed |= self._send(settlement, write)
        return failed, settlement.unsettled - failed.keys()

    def _find_gone(self, topics: Collection[str]) -> frozenset[str]:
        """Which of these topics are no longer there; what is owed on one is then forgotten for good, so one broker's word is not enough."""
        until_s = self.clock.monotonic_s() + GONE_S
        missing = {TopicPartition(topic, 0) for topic in topics}
        while missing and (missing := missing - self.cluster.partitions(list(missing)).keys()):
            if self.clock.monotonic_s() >= until_s:
                break
            self.clock.sleep(REREAD_S)
            self.renew()
        return frozenset(name.topic for name in missing)

    def _on_same_topics(
        self, desired: DesiredThrottles, write: Callable[[list[Record]], None], note: Callable[[RunNote], None]
    ) -> DesiredThrottles:
        """The desired throttles without topics that are other ones by now; what was owed on the old ones went with them."""
        named = sorted({s.name for s in (*desired, *self.ledger) if s.kind == "topic"})
        seen = self.cluster.partitions([TopicPartition(name, 0) for name in named]) if named else {}
        ids = {n.topic: state.topic_id for n, state in seen.items() if state.topic_id is not None}
        others = {t for t, id_ in ids.items() if self.topic_ids.get(t, id_) != id_}
        for topic in sorted(others):
            note(RunNote("throttle-topic-recreated", {"topic": topic}))
            for setting in [s for s in self.ledger if s.kind == "topic" and s.name == topic]:
                self._strike(setting, write)
        if self.kind == BY_HAND:
            # A person who sets a throttle now means the topic that is there now.
            others = set()
        self.topic_ids |= {t: id_ for t, id_ in ids.items() if t not in others}
        self.seen = {t: (id_, self.clock.monotonic_s()) for t, id_ in ids.items()}
        return {s: v for s, v in desired.items() if s.kind != "topic" or s.name not in others}

    def ids_now(self) -> dict[str, str]:
        """The ids of the topics that were read a moment ago."""
        oldest_s = self.clock.monotonic_s() - FRESH_S
        return {topic: id_ for topic, (id_, read_s) in self.seen.items() if read_s >= oldest_s}

    def _line(self, setting: Setting, held: LedgerEntry | None) -> Record:
        id_ = self.topic_ids.get(setting.name) if setting.kind == "topic" else None
        return dump_held(setting, held, self.kind, topic_id=id_)

    def _read(
        self,
        desired: DesiredThrottles,
        touched: set[Setting],
        write: Callable[[list[Record]], None],
        note: Callable[[RunNote], None],
    ) -> tuple[DesiredThrottles, Mapping[ConfigResource, Mapping[str, ConfigValue]]]:
        """What stands, read until it shows what this process has set itself, and the desired throttles of the topics that it was read of.

        Brokers show a change a moment after it was acknowledged.  Judged by a reading from before it, our own value would pass
        for one that another process has removed or set, and stay behind.  A topic that was made again shows nothing of ours
        either, so topics are looked at before each reading; and after it, since it may have been made again on the way: then
        the lists that were read are its user's.
        """
        until_s = self.clock.monotonic_s() + BELIEVED_S
        while True:
            desired = self._on_same_topics(desired, write, note)
            asked = touched & {*desired, *self.ledger}
            entries = self.cluster.configs({resource_of(s) for s in asked}) if asked else {}
            strange = self._of_other_topics({s for s in asked if resource_of(s) in entries})
            waits = strange and self.clock.monotonic_s() < until_s
            if not waits and not any(self._is_late(s, entries) for s in asked):
                return desired, {r: e for r, e in entries.items() if r not in strange}
            self.clock.sleep(REREAD_S)
            self.renew()

    def _of_other_topics(self, settings: Collection[Setting]) -> set[ConfigResource]:
        """Of these the topics that are not there, or are not the ones that were looked at and that something is owed on."""
        known = {
            TopicPartition(s.name, 0): resource_of(s)
            for s in settings
            if s.kind == "topic" and s.name in self.topic_ids
        }
        seen = self.cluster.partitions(list(known)) if known else {}
        same = {n for n, state in seen.items() if state.topic_id in {None, self.topic_ids[n.topic]}}
        return {resource for name, resource in known.items() if name not in same}

    def _is_late(self, setting: Setting, entries: Mapping[ConfigResource, Mapping[str, ConfigValue]]) -> bool:
        sent, found = self.sent.get(setting), entries.get(resource_of(setting))
        if sent is None or found is None or sent.shows(own_value(setting, found)):
            return False
        return self.clock.monotonic_s() - sent.at_s < BELIEVED_S

    def _strike(self, setting: Setting, write: Callable[[list[Record]], None]) -> None:
        if self.ledger.pop(setting, None) is not None:
            write([dump_held(setting, None, self.kind)])

    def _send(self, settlement: Settlement, write: Callable[[list[Record]], None]) -> dict[Setting, Outcome]:
        # Written even when nothing changes: the caller's own intents travel with it.
        self.ledger.update(settlement.intent)
        write([self._line(s, h) for s, h in settlement.intent.items()])
        failed: dict[Setting, Outcome] = {}
        for nth in range(max(map(len, settlement.changes.values()), default=0)):
            ops = {s: ops[nth] for s, ops in settlement.changes.items() if len(ops) > nth and s not in failed}
            failed |= self._alter(ops)
        after = {s: h for s, h in settlement.after.items() if s not in failed}
        for setting, held in after.items():
            if held is None:
                self.ledger.pop(setting, None)
            else:
                self.ledger[setting] = held
        if after:
            write([self._line(s, h) for s, h in after.items()])
        return failed

    def _alter(self, ops: Mapping[Setting, Op]) -> dict[Setting, Outcome]:
        """Send one change of each of these settings; what failed."""
        for setting in ops:
            self.sent.pop(setting, None)
        outcomes = self.cluster.alter_configs(
            [ConfigChange(resource_of(s), s.key, op.operation, op.value) for s, op in ops.items()]
        )
        answered_s = self.clock.monotonic_s()
        failed = {}
        for setting, op in ops.items():
            outcome = outcomes.get(
                resource_of(setting), Outcome(ok=False, code="NO_ANSWER", message="the broker did not answer")
            )
            if outcome.ok:
                self.sent[setting] = Sent(op, answered_s)
            else:
                failed[setting] = outcome
        return failed


def merge(desired: DesiredThrottles, others: DesiredThrottles) -> DesiredThrottles:
    """Both runs' list entries; where both set a rate, the run that acts now decides."""
    out = dict(desired)
    for setting, wanted in others.items():
        if setting.key in LISTS:
            out[setting] = out.get(setting, frozenset()) | wanted
        else:
            out.setdefault(setting, wanted)
    return out
