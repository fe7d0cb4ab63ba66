"""What the throttle ledger takes for shown, for read a moment ago, and for not done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from tests.unit.executor.scenes import Scene, T, fail, scene

from ballast.core.cluster import ConfigValue, TopicPartition
from ballast.core.throttles import FOLLOWER_RATE, FOLLOWER_REPLICAS, LEADER_REPLICAS, LedgerEntry, Op, Setting
from ballast.executor.journal.ledger import (
    BELIEVED_S,
    BY_HAND,
    FRESH_S,
    RUNS,
    Sent,
    Throttler,
    dump_held,
    ledger_key,
    list_unrestored,
    load_ledger,
    load_topic_ids,
    merge,
    own_value,
    resource_of,
)
from ballast.executor.journal.notes import RunNote
from ballast.ports.cluster import ConfigChange, ConfigResource, Outcome, PartitionState
from ballast.ports.journal import OtherVersion, Record

RATE = Setting("broker", "1", FOLLOWER_RATE)


@pytest.mark.parametrize(
    ("op", "read", "shown"),
    [
        (Op("append", "0:1,0:2"), "0:1,0:2", True),
        (Op("append", "0:1,0:2"), "0:2,7:7,0:1", True),
        (Op("append", "0:1,0:2"), "0:1", False),
        (Op("append", "0:1"), None, False),
        (Op("subtract", "0:1"), "0:2", True),
        (Op("subtract", "0:1"), None, True),
        (Op("subtract", "0:1,0:2"), "0:2", False),
        (Op("set", "5"), "5", True),
        (Op("set", "5"), "6", False),
        (Op("delete", None), None, True),
        (Op("delete", None), "5", False),
    ],
)
def test_when_a_reading_shows_what_was_sent(op: Op, read: str | None, *, shown: bool) -> None:
    """Of a list all our entries, or none of those that were taken away, whatever others keep there; a rate exactly."""
    assert Sent(op, 0.0).shows(read) is shown


def test_an_id_is_fresh_for_a_moment() -> None:
    """After that the topic may have been made again."""
    s = scene()
    throttler = Throttler(s.cluster, s.world.clock, renew=lambda: None)
    throttler.seen = {"t": ("id", s.world.clock.monotonic_s())}
    s.world.clock.sleep(FRESH_S - 0.01)
    assert throttler.ids_now() == {"t": "id"}
    s.world.clock.sleep(0.02)
    assert throttler.ids_now() == {}


def test_a_change_without_an_answer_is_not_done(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may have taken effect: its line stays, nothing is taken for shown, and the next occasion restores it."""
    s = scene()
    throttler = Throttler(s.cluster, s.world.clock, renew=lambda: None)
    written: list[Record] = []

    def settle(*rate: str) -> dict[Setting, Outcome]:
        aim = {RATE: frozenset(rate)} if rate else {}
        return throttler.settle(aim, {1, 2, 3, 4}, written.extend, fail)

    assert settle("5") == {}
    assert throttler.sent[RATE].op == Op("set", "5")
    with monkeypatch.context() as silent:
        silent.setattr(s.cluster, "alter_configs", lambda _: {})
        (outcome,) = settle("6").values()
    assert (outcome.ok, outcome.code) == (False, "NO_ANSWER")
    assert outcome.message
    assert RATE not in throttler.sent
    assert throttler.ledger == {RATE: LedgerEntry(None, frozenset({"5", "6"}))}
    assert settle() == {}
    assert not throttler.ledger
    assert s.throttles() == {}


def test_a_reading_that_contradicts_a_change_is_doubted_for_some_seconds() -> None:
    """However long the process has run: brokers show a change a moment after it, and a person may have changed it since."""
    s = scene()
    throttler = Throttler(s.cluster, s.world.clock, renew=lambda: None)
    s.world.clock.sleep(1000)
    throttler.sent[RATE] = Sent(Op("set", "5"), s.world.clock.monotonic_s())
    read = {resource_of(RATE): {FOLLOWER_RATE: ConfigValue("6", "DYNAMIC_BROKER_CONFIG")}}
    s.world.clock.sleep(BELIEVED_S - 0.01)
    assert throttler._is_late(RATE, read)
    assert not throttler._is_late(RATE, {resource_of(RATE): {FOLLOWER_RATE: ConfigValue("5", "DYNAMIC_BROKER_CONFIG")}})
    assert not throttler._is_late(RATE, {}), "what was not read says nothing"
    s.world.clock.sleep(0.02)
    assert not throttler._is_late(RATE, read)


def test_what_a_down_broker_has_stays_owed() -> None:
    """Nothing is sent to it, and the rest is done: its line waits for the next occasion."""
    s = scene()
    throttler = Throttler(s.cluster, s.world.clock, renew=lambda: None)
    other = Setting("broker", "2", FOLLOWER_RATE)
    both = {RATE: frozenset({"5"}), other: frozenset({"5"})}
    assert throttler.settle(both, {1, 2, 3, 4}, lambda _: None, fail) == {}
    (owed,) = throttler.settle({}, {2, 3, 4}, lambda _: None, fail).items()
    assert (owed[0], owed[1].ok, owed[1].code) == (RATE, False, "BROKER_NOT_AVAILABLE")
    assert throttler.ledger.keys() == {RATE}
    assert throttler.settle({}, {1, 2, 3, 4}, lambda _: None, fail) == {}
    assert s.throttles() == {}


def test_lists_of_two_runs_are_joined_and_the_one_that_acts_sets_the_rate() -> None:
    """Neither loses an entry to the other."""
    entries, more = Setting("topic", "t", FOLLOWER_REPLICAS), Setting("topic", "u", FOLLOWER_REPLICAS)
    rest = Setting("broker", "2", FOLLOWER_RATE)
    mine = {entries: frozenset({"0:1"}), RATE: frozenset({"5"})}
    theirs = {entries: frozenset({"1:1"}), more: frozenset({"0:2"}), RATE: frozenset({"6"}), rest: frozenset({"6"})}
    assert merge(mine, theirs) == {
        entries: {"0:1", "1:1"},
        more: {"0:2"},
        RATE: {"5"},
        rest: {"6"},
    }


@pytest.mark.parametrize(
    ("setting", "gone", "code"),
    [
        (Setting("topic", T, FOLLOWER_REPLICAS), False, "NOT_READ"),
        (Setting("topic", T, FOLLOWER_REPLICAS), True, "UNKNOWN_TOPIC_OR_PARTITION"),
        (RATE, True, "NOT_READ"),
    ],
)
def test_settings_that_are_not_told_stay_owed_unless_their_topic_is_gone(
    monkeypatch: pytest.MonkeyPatch, setting: Setting, code: str, *, gone: bool
) -> None:
    """With a topic its settings went, and the journal is told so; of anything else nothing is known, and nothing is sent."""
    s = scene()
    throttler = Throttler(s.cluster, s.world.clock, renew=lambda: None)
    written: list[Record] = []
    aim = {setting: frozenset({"0:3"} if setting.kind == "topic" else {"5"})}
    assert throttler.settle(aim, {1, 2, 3, 4}, written.extend, fail) == {}
    written.clear()
    monkeypatch.setattr(s.cluster, "configs", lambda _: {})
    if gone:
        monkeypatch.setattr(s.cluster, "partitions", lambda _: {})
    ((owed, outcome),) = throttler.settle({}, {1, 2, 3, 4}, written.extend, fail).items()
    assert (owed, outcome.ok, outcome.code) == (setting, False, code)
    assert setting.name in outcome.message
    struck = code == "UNKNOWN_TOPIC_OR_PARTITION"
    assert (setting not in throttler.ledger) is struck
    assert [r.key for r in written if r.value is None] == ([ledger_key(setting)] if struck else [])


def test_one_broker_that_has_not_heard_of_a_topic_does_not_make_it_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has just started, and answers twice: what is owed on the topic stays owed, and is restored by the next settlement."""
    s = scene()
    throttler = Throttler(s.cluster, s.world.clock, renew=lambda: None)
    on = Setting("topic", T, FOLLOWER_REPLICAS)
    assert throttler.settle({on: frozenset({"0:3"})}, {1, 2, 3, 4}, lambda _: None, fail) == {}
    partitions, late = s.cluster.partitions, [1, 1]
    with monkeypatch.context() as stale:
        stale.setattr(s.cluster, "configs", lambda _: {})
        stale.setattr(s.cluster, "partitions", lambda names: {} if late and late.pop() else partitions(names))
        assert throttler.settle({}, {1, 2, 3, 4}, lambda _: None, fail)[on].code == "NOT_READ"
    assert on in throttler.ledger
    assert throttler.settle({}, {1, 2, 3, 4}, lambda _: None, fail) == {}
    assert s.throttles() == {}


@pytest.mark.parametrize("keep", [True, False])
def test_a_rate_that_stands_is_kept_where_that_is_asked(*, keep: bool) -> None:
    """A rate that is kept is not in the ledger; one that is replaced is, and is restored at the end."""
    s = scene()
    s.cluster.alter_configs([ConfigChange(resource_of(RATE), FOLLOWER_RATE, "set", "7")])
    throttler = Throttler(s.cluster, s.world.clock, renew=lambda: None, keep_existing_rates=keep)
    assert throttler.settle({RATE: frozenset({"5"})}, {1, 2, 3, 4}, lambda _: None, fail) == {}
    assert list(s.throttles().values()) == (["7"] if keep else ["5"])
    assert (RATE in throttler.ledger) is not keep
    assert throttler.settle({}, {1, 2, 3, 4}, lambda _: None, fail) == {}
    assert list(s.throttles().values()) == ["7"]


@pytest.mark.parametrize(
    ("setting", "source", "own"),
    [
        (RATE, "DYNAMIC_BROKER_CONFIG", True),
        (RATE, "DYNAMIC_DEFAULT_BROKER_CONFIG", False),
        (RATE, "STATIC_BROKER_CONFIG", False),
        (Setting("broker", "", FOLLOWER_RATE), "DYNAMIC_DEFAULT_BROKER_CONFIG", True),
        (Setting("broker", "", FOLLOWER_RATE), "DYNAMIC_BROKER_CONFIG", False),
        (Setting("topic", T, FOLLOWER_REPLICAS), "DYNAMIC_TOPIC_CONFIG", True),
        (Setting("topic", T, FOLLOWER_REPLICAS), "DYNAMIC_DEFAULT_BROKER_CONFIG", False),
    ],
)
def test_a_value_that_is_merely_inherited_is_not_the_resources_own(setting: Setting, source: str, *, own: bool) -> None:
    """Written down as its own it would be set there when ours is restored, and outlive what it came from."""
    assert own_value(setting, {setting.key: ConfigValue("5", source)}) == ("5" if own else None)
    assert own_value(setting, {}) is None


def test_a_line_that_was_struck_out_owes_nothing() -> None:
    """A tombstone is no line; a line of a cluster without topic ids names none."""
    held, on = LedgerEntry(None, frozenset({"0:1"})), Setting("topic", T, FOLLOWER_REPLICAS)
    assert load_ledger([dump_held(on, None)]) == {}
    assert load_topic_ids([dump_held(on, None)]) == {}
    assert load_topic_ids([dump_held(on, held)]) == {}
    assert load_topic_ids([dump_held(on, held, topic_id="id")]) == {T: "id"}


def test_what_is_not_restored_is_told_with_its_reason() -> None:
    """The broker's own words, or its code where it had none."""
    owed = {
        RATE: Outcome(ok=False, code="NO_ANSWER", message="broker 1 is silent."),
        Setting("broker", "2", FOLLOWER_RATE): Outcome(ok=False, code="NOT_CONTROLLER", message=""),
    }
    assert list_unrestored(owed) == [
        f"broker 1 {FOLLOWER_RATE}: broker 1 is silent.",
        f"broker 2 {FOLLOWER_RATE}: NOT_CONTROLLER.",
    ]


def test_a_list_whose_last_change_fails_is_told_and_stays_owed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its entries are gone; that the empty list could not be deleted comes out at the second look."""
    s = scene()
    throttler = Throttler(s.cluster, s.world.clock, renew=lambda: None)
    on = Setting("topic", T, FOLLOWER_REPLICAS)
    alive, written = {1, 2, 3, 4}, list[Record]()
    assert throttler.settle({on: frozenset({"0:1"})}, alive, written.extend, fail) == {}
    send = s.cluster.alter_configs
    refused = Outcome(ok=False, code="POLICY_VIOLATION", message="no")

    def alter(changes: list[ConfigChange]) -> dict[ConfigResource, Outcome]:
        if any(c.operation == "delete" for c in changes):
            return {c.resource: refused for c in changes}
        return dict(send(changes))

    monkeypatch.setattr(s.cluster, "alter_configs", alter)
    assert throttler.settle({}, alive, written.extend, fail) == {on: refused}
    assert on in throttler.ledger
    monkeypatch.setattr(s.cluster, "alter_configs", send)
    assert throttler.settle({}, alive, written.extend, fail) == {}
    assert on not in throttler.ledger


@pytest.mark.parametrize("kind", [RUNS, BY_HAND])
def test_a_topic_that_was_made_again_owes_nothing_of_the_old_one(kind: str) -> None:
    """Its lines are struck out and told, no other's; a run sets nothing on the new one, a person who sets it now means that one."""
    s = scene()
    throttler = Throttler(s.cluster, s.world.clock, renew=lambda: None, kind=kind)
    on, written = Setting("topic", T, FOLLOWER_REPLICAS), list[Record]()
    present = s.cluster.partitions([TopicPartition(T, 0)])[TopicPartition(T, 0)].topic_id
    assert present is not None
    throttler.topic_ids = {T: "old"}
    throttler.ledger = {on: LedgerEntry("7:7", frozenset({"0:1"}))}
    aim, seen = {on: frozenset({"0:2"})}, list[RunNote]()
    assert throttler._on_same_topics({**aim, RATE: frozenset({"5"})}, written.extend, seen.append) == (
        {RATE: {"5"}} if kind == RUNS else {**aim, RATE: {"5"}}
    )
    assert len(seen) == 1
    assert [(r.key, r.value) for r in written] == [(ledger_key(on, kind), None)]
    assert throttler.ledger == {}
    assert throttler.topic_ids == {T: "old" if kind == RUNS else present}


def test_only_lines_of_the_topic_that_was_made_again_are_struck_out() -> None:
    """Another topic's, and the rates of brokers, are owed as before; an id that no broker tells is not another one."""
    s = scene()
    throttler = Throttler(s.cluster, s.world.clock, renew=lambda: None)
    lists = [Setting("topic", T, key) for key in (FOLLOWER_REPLICAS, LEADER_REPLICAS)]
    other = Setting("topic", "other", FOLLOWER_REPLICAS)
    held = LedgerEntry(None, frozenset({"0:1"}))
    throttler.topic_ids = {T: "old"}
    throttler.ledger = {**dict.fromkeys(lists, held), other: held, RATE: LedgerEntry(None, frozenset({"5"}))}
    throttler._on_same_topics({}, lambda _: None, lambda _: None)
    assert throttler.ledger.keys() == {other, RATE}


def test_a_topic_whose_id_is_not_told_is_not_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Brokers before Kafka 2.8, or one that has just started: what is owed stays owed."""
    s = scene()
    throttler = Throttler(s.cluster, s.world.clock, renew=lambda: None)
    on = Setting("topic", T, FOLLOWER_REPLICAS)
    throttler.topic_ids, throttler.ledger = {T: "id"}, {on: LedgerEntry(None, frozenset({"0:1"}))}
    read = s.cluster.partitions
    monkeypatch.setattr(
        s.cluster, "partitions", lambda names: {n: replace(p, topic_id=None) for n, p in read(names).items()}
    )
    written = list[Record]()
    throttler._on_same_topics({}, written.extend, fail)
    assert written == []
    assert throttler.topic_ids == {T: "id"}
    assert throttler.ledger.keys() == {on}


def test_a_setting_that_is_not_told_is_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """What stands there could not be put back."""
    s = scene()
    throttler = Throttler(s.cluster, s.world.clock, renew=lambda: None)
    monkeypatch.setattr(s.cluster, "configs", lambda _: {})
    (outcome,) = throttler.settle({RATE: frozenset({"5"})}, {1, 2, 3, 4}, lambda _: None, fail).values()
    assert outcome.code == "NOT_READ"
    assert throttler.ledger == {}
    assert s.throttles() == {}


def test_a_rate_that_another_user_took_over_is_told() -> None:
    """Once, with what they set, and it stays theirs."""
    s = scene()
    throttler = Throttler(s.cluster, s.world.clock, renew=lambda: None)
    assert throttler.settle({RATE: frozenset({"5"})}, {1, 2, 3, 4}, lambda _: None, fail) == {}
    s.cluster.alter_configs([ConfigChange(resource_of(RATE), FOLLOWER_RATE, "set", "7")])
    s.world.clock.sleep(BELIEVED_S)
    notes: list[RunNote] = []
    for _ in range(2):
        assert throttler.settle({}, {1, 2, 3, 4}, lambda _: None, notes.append) == {}
    assert notes == [RunNote("throttle-changed-externally", {"setting": str(RATE), "value": "7"})]
    assert list(s.throttles().values()) == ["7"]


def test_the_line_of_a_broker_names_no_topic() -> None:
    """Also where a topic is called as the broker is."""
    s = scene()
    throttler = Throttler(s.cluster, s.world.clock, renew=lambda: None, topic_ids={"1": "id"})
    written: list[Record] = []
    assert throttler.settle({RATE: frozenset({"5"})}, {1, 2, 3, 4}, written.extend, fail) == {}
    assert [r.key for r in written if "topic_id" in (r.value or {})] == []
    assert load_ledger(written) == {RATE: LedgerEntry(None, frozenset({"5"}))}


def test_a_line_of_another_version_is_refused_by_name() -> None:
    """With what to do about it: as if it were not there, what it owes would be lost."""
    line = dump_held(RATE, LedgerEntry(None, frozenset({"5"})))
    with pytest.raises(OtherVersion) as refused:
        load_ledger([Record(line.key, {**(line.value or {}), "version": 99})])
    assert (refused.value.values["record"], refused.value.values["version"]) == (line.key, 99)
    assert refused.value.hint


def test_what_fails_at_the_first_look_is_told_after_the_second(monkeypatch: pytest.MonkeyPatch) -> None:
    """A list is looked at once more, the rate of a down broker is not, and that broker is not asked for anything."""
    s = scene()
    throttler = Throttler(s.cluster, s.world.clock, renew=lambda: None)
    on = Setting("topic", T, FOLLOWER_REPLICAS)
    both = {on: frozenset({"0:1"}), RATE: frozenset({"5"})}
    assert throttler.settle(both, {1, 2, 3, 4}, lambda _: None, fail) == {}
    read, asked = s.cluster.configs, set[ConfigResource]()

    def configs(resources: set[ConfigResource]) -> object:
        asked.update(resources)
        return read(resources)

    monkeypatch.setattr(s.cluster, "configs", configs)
    failed = throttler.settle({}, {2, 3, 4}, lambda _: None, fail)
    assert {setting: o.code for setting, o in failed.items()} == {RATE: "BROKER_NOT_AVAILABLE"}
    assert throttler.ledger.keys() == {RATE}
    assert asked == {resource_of(on)}


def test_a_failed_change_is_told_though_a_later_one_succeeds(monkeypatch: pytest.MonkeyPatch) -> None:
    """A list takes two changes, a rate one: the rate that was refused stays in the ledger with both values."""
    s = scene()
    throttler = Throttler(s.cluster, s.world.clock, renew=lambda: None)
    on = Setting("topic", T, FOLLOWER_REPLICAS)
    first = {on: frozenset({"0:1"}), RATE: frozenset({"5"})}
    assert throttler.settle(first, {1, 2, 3, 4}, lambda _: None, fail) == {}
    send = s.cluster.alter_configs
    refused = Outcome(ok=False, code="POLICY_VIOLATION", message="no")

    def alter(changes: list[ConfigChange]) -> dict[ConfigResource, Outcome]:
        return {**send(changes), **{c.resource: refused for c in changes if c.resource == resource_of(RATE)}}

    monkeypatch.setattr(s.cluster, "alter_configs", alter)
    then = {on: frozenset({"0:2"}), RATE: frozenset({"6"})}
    assert throttler.settle(then, {1, 2, 3, 4}, lambda _: None, fail) == {RATE: refused}
    assert throttler.ledger == {
        on: LedgerEntry(None, frozenset({"0:2"})),
        RATE: LedgerEntry(None, frozenset({"5", "6"})),
    }


def test_a_topic_that_is_made_again_between_two_looks_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its list is not deleted on the new one, and nothing is owed."""
    s = scene()
    throttler = Throttler(s.cluster, s.world.clock, renew=lambda: None)
    on = Setting("topic", T, FOLLOWER_REPLICAS)
    assert throttler.settle({on: frozenset({"0:1"})}, {1, 2, 3, 4}, lambda _: None, fail) == {}
    old = throttler.topic_ids[T]
    read, ids = s.cluster.partitions, iter([old, old, "new"])
    monkeypatch.setattr(
        s.cluster, "partitions", lambda names: {n: replace(p, topic_id=next(ids)) for n, p in read(names).items()}
    )
    notes: list[RunNote] = []
    assert throttler.settle({}, {1, 2, 3, 4}, lambda _: None, notes.append) == {}
    assert notes == [RunNote("throttle-topic-recreated", {"topic": T})]
    assert throttler.ledger == {}


def being_made_again(
    s: Scene, monkeypatch: pytest.MonkeyPatch, ids: list[str | None]
) -> tuple[Throttler, Setting, list[RunNote]]:
    """Our list on a topic whose id is read as these, one after the other, the last one for ever; None: it is not there.

    Its settings are those of the new topic all along: its user's list has an entry that ours had as well.
    """
    throttler = Throttler(s.cluster, s.world.clock, renew=lambda: None)
    on = Setting("topic", T, FOLLOWER_REPLICAS)
    assert throttler.settle({on: frozenset({"0:1"})}, {1, 2, 3, 4}, lambda _: None, fail) == {}
    s.cluster.alter_configs([ConfigChange(resource_of(on), FOLLOWER_REPLICAS, "set", "0:1,0:3")])
    read, old = s.cluster.partitions, throttler.topic_ids[T]

    def partitions(names: list[TopicPartition]) -> Mapping[TopicPartition, PartitionState]:
        id_ = ids.pop(0) if len(ids) > 1 else ids[0]
        shown = {"old": old}.get(id_ or "", id_)
        return {n: replace(p, topic_id=shown) for n, p in read(names).items()} if id_ is not None else {}

    monkeypatch.setattr(s.cluster, "partitions", partitions)
    return throttler, on, []


@pytest.mark.parametrize("ids", [["old", "new"], ["old", None, "new"], [None, "new"], [None, None, "new"]])
def test_the_list_of_a_topic_that_is_made_again_while_it_is_read_stays_its_users(
    ids: list[str | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Deleted at the look before the settings were read, or between the two: nothing of ours is on the new one."""
    s = scene()
    throttler, _, notes = being_made_again(s, monkeypatch, ids)
    assert throttler.settle({}, {1, 2, 3, 4}, lambda _: None, notes.append) == {}
    assert notes == [RunNote("throttle-topic-recreated", {"topic": T})]
    assert throttler.ledger == {}
    assert list(s.throttles().values()) == ["0:1,0:3"]


def test_a_topic_that_no_broker_knows_is_gone_whatever_settings_are_told_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker that has not heard of the deletion still tells them: nothing is sent, and nothing is owed."""
    s = scene()
    throttler, on, notes = being_made_again(s, monkeypatch, [None])
    failed = throttler.settle({}, {1, 2, 3, 4}, lambda _: None, notes.append)
    assert {setting: o.code for setting, o in failed.items()} == {on: "UNKNOWN_TOPIC_OR_PARTITION"}
    assert throttler.ledger == {}
    assert list(s.throttles().values()) == ["0:1,0:3"]
