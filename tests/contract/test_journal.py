"""Every form of the journal keeps the same promises: the topic on a real cluster, the file, and the simulator's memory."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import confluent_kafka as ck
import pytest
from tests.contract.journal_forms import JournalForm
from tests.waiting import PATIENCE_S, becomes

from ballast.adapters.clock import SystemClock
from ballast.adapters.journal.file import FileJournal
from ballast.adapters.journal.topic import TopicJournal
from ballast.errors import Fenced, LockHeld, Refused, Unavailable
from ballast.ports.journal import Journal, Record, Request
from ballast.sim import JournalStore, MemoryJournal, SimClock

SHORT_LEASE_S = 3.0
"""Long enough for a transaction on a busy machine, short enough to wait for."""


@pytest.fixture(params=["memory", "file", pytest.param("topic", marks=pytest.mark.kafka)])
def form(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[JournalForm]:
    """One fresh journal of each form."""
    with ExitStack() as stack:

        def closing(make: Callable[[], Journal]) -> Callable[[], Journal]:
            def opened() -> Journal:
                journal = make()
                stack.callback(journal.close)
                return journal

            return opened

        if request.param == "memory":
            store, clock = JournalStore(), SimClock()
            yield JournalForm(
                "memory", closing(lambda: MemoryJournal(store, clock)), clock, SHORT_LEASE_S, store.requests.__setitem__
            )
        elif request.param == "file":
            path = tmp_path / "journal"
            yield JournalForm(
                "file", closing(lambda: FileJournal(path)), SystemClock(), SHORT_LEASE_S, partial(append_request, path)
            )
        else:
            client = {"bootstrap.servers": request.getfixturevalue("kraft").bootstrap_server}
            topic = f"__ballast_test_{uuid.uuid4().hex[:12]}"
            make = closing(
                lambda: TopicJournal(client, journal_topic=topic, requests_topic=f"{topic}_requests", timeout_s=60)
            )
            yield JournalForm(
                "topic", make, SystemClock(), SHORT_LEASE_S, partial(send_request, client, f"{topic}_requests")
            )


def append_request(path: Path, request_id: str, data: bytes) -> None:
    """One more line of a journal file."""
    text = json.dumps([[f"request/{request_id}", data.decode()]], separators=(",", ":"))
    with path.open("a") as file:
        file.write(f"{hashlib.sha256(text.encode()).hexdigest()[:16]} {text}\n")


def send_request(client: dict[str, str], topic: str, request_id: str, data: bytes) -> None:
    """One more record of the topic."""
    producer = ck.Producer(client)
    producer.produce(topic, key=request_id.encode(), value=data, partition=0)
    assert producer.flush(PATIENCE_S) == 0


def values(journal: Journal) -> dict[str, object]:
    """The journal's records as a mapping."""
    return {r.key: dict(r.value or {}) for r in journal.read()}


def reads(journal: Journal, wanted: dict[str, object]) -> None:
    """Wait until these are its records: what another process has committed becomes readable a moment later."""
    becomes(lambda: values(journal), wanted)


def hears(journal: Journal, description: str, doing: str = "testing") -> None:
    """Wait until it reads that this process has the lock, and does this: a candidate that has not would take it for free."""

    def told() -> tuple[str, str] | None:
        holder = journal.holder()
        return None if holder is None else (holder.description, holder.doing)

    becomes(told, (description, doing))


def test_an_untouched_journal_is_empty(form: JournalForm) -> None:
    """Reading needs no lock, creates nothing, and finds nothing."""
    journal = form.open()
    assert list(journal.read()) == []
    assert list(journal.requests()) == []
    assert journal.holder() is None


def test_a_lock_that_is_no_longer_wanted_is_not_taken(form: JournalForm) -> None:
    """Nothing is written for it, whether it is free or another process holds it; the wait ends at once."""
    held = form.open()
    held.acquire(form.holder("holder"))
    with pytest.raises(LockHeld):
        form.open().acquire(form.holder("second"), wait_s=3600, wanted=lambda: False)
    held.release()
    with pytest.raises(LockHeld):
        form.open().acquire(form.holder("second"), wanted=lambda: False)
    becomes(form.open().holder, None)


def test_records_come_back_newest_by_key_in_order_of_writing(form: JournalForm) -> None:
    """A tombstone takes a key away; a rewritten key moves to the end; another process reads the same."""
    writer = form.open()
    writer.acquire(form.holder("writer"))
    writer.append([Record("run/1", {"stage": "planned"}), Record("pause", {"by": "é ☃"}), Record("gone", {"x": 1})])
    writer.append([Record("gone", None), Record("run/1", {"stage": "moving", "moves": [1, 2, {"a": None}]})])
    for journal in (writer, form.open()):
        reads(journal, {"run/1": {"stage": "moving", "moves": [1, 2, {"a": None}]}, "pause": {"by": "é ☃"}})
        assert [r.key for r in journal.read()] == ["pause", "run/1"]


def test_a_record_longer_than_a_message_survives_and_shrinks_again(form: JournalForm) -> None:
    """Ten thousand moves with their assignments are one record; a shorter value leaves no piece of the longer behind."""
    moves = [[f"a-topic-with-a-long-name-{i % 97}", i, [1, 2, 3], [4, 5, 6]] for i in range(30_000)]
    writer = form.open()
    writer.acquire(form.holder("writer", lease_s=60))
    writer.append([Record("plan", {"moves": moves})])
    reads(form.open(), {"plan": {"moves": moves}})
    writer.append([Record("plan", {"moves": moves[:10]})])
    reads(form.open(), {"plan": {"moves": moves[:10]}})
    writer.append([Record("plan", None)])
    reads(form.open(), {})


def test_ten_thousand_records_in_one_append(form: JournalForm) -> None:
    """A whole plan is journaled at once, all of it or none."""
    writer = form.open()
    writer.acquire(form.holder("writer", lease_s=60))
    writer.append([Record(f"move/r/{i}", {"old": [1, 2], "new": [2, 3]}) for i in range(10_000)])
    reader = form.open()
    becomes(lambda: len(reader.read()), 10_000)


def test_the_second_is_told_who_holds_the_lock_and_what_it_does(form: JournalForm) -> None:
    """One acts, the other says who, since when, doing what."""
    first, second = form.open(), form.open()
    first.acquire(form.holder("ana@laptop ballast apply", lease_s=60))
    first.renew("moving orders-3")
    hears(second, "ana@laptop ballast apply", "moving orders-3")
    with pytest.raises(LockHeld) as held:
        second.acquire(form.holder("pod"))
    assert (held.value.holder, held.value.is_follower) == ("ana@laptop ballast apply", False)
    seen = second.holder()
    assert seen is not None
    assert (seen.description, seen.doing) == ("ana@laptop ballast apply", "moving orders-3")
    first.append([Record("still", {"mine": True})])


def test_when_the_lease_was_renewed_is_known_or_is_none(form: JournalForm) -> None:
    """A reader tells a holder that died by it: only the holder's own writes count, not what others ask of it."""
    first, reader = form.open(), form.open()
    before_ms = form.clock.now_ms()
    first.acquire(form.holder("first"))
    assert reader.holder() is not None
    renewed_ms = reader.renewed_ms()
    assert renewed_ms is None or before_ms <= renewed_ms <= form.clock.now_ms()
    assert (renewed_ms is not None) == (form.name == "topic")
    reader.request(Request("q", "pause", "Ada", form.clock.now_ms(), {}))
    reader.requests()
    assert reader.holder() is not None
    assert reader.renewed_ms() == renewed_ms


def test_the_lock_is_held_since_it_was_taken_not_since_its_holder_started(form: JournalForm) -> None:
    """For its holder, for every reader, at each term, and through renewals."""
    journal, patient = form.open(), form.holder("patient", lease_s=60)
    for _ in range(2):
        before = form.clock.now_ms()
        taken = journal.acquire(patient)
        assert before <= taken.since_ms <= form.clock.now_ms()
        journal.renew("moving orders-3")
        reader = form.open()

        def seen(reader: Journal = reader) -> tuple[str, int, str] | None:
            holder = reader.holder()
            return None if holder is None else (holder.id, holder.since_ms, holder.doing)

        becomes(seen, (patient.id, taken.since_ms, "moving orders-3"))
        journal.release()
        becomes(journal.holder, None)
        form.clock.sleep(0.01)


def test_a_released_lock_is_free_at_once(form: JournalForm) -> None:
    """No process waits for the lease of a holder that released the lock; a released handle writes no more."""
    first, second = form.open(), form.open()
    first.acquire(form.holder("first", lease_s=600))
    first.append([Record("a", {"n": 1})])
    hears(second, "first")
    first.release()
    # A moment, and not the lease.
    becomes(second.holder, None)
    second.acquire(form.holder("second"))
    second.append([Record("b", {"n": 2})])
    reads(first, {"a": {"n": 1}, "b": {"n": 2}})
    with pytest.raises(Fenced):
        first.append([Record("a", {"n": 3})])
    first.release()
    seen = second.holder()
    assert seen is not None
    assert seen.description == "second"


def test_a_dead_holder_is_waited_out_for_one_whole_lease(form: JournalForm) -> None:
    """Without a renewal the lock is taken, not before one lease has passed on the candidate's own clock."""
    dead, next_one = form.open(), form.open()
    dead.acquire(form.holder("dead"))
    dead.append([Record("intent", {"n": 1})])
    dead.close()
    hears(next_one, "dead")
    with pytest.raises(LockHeld):
        next_one.acquire(form.holder("next"), wait_s=0)
    began = form.clock.monotonic_s()
    next_one.acquire(form.holder("next"), wait_s=60)
    assert form.clock.monotonic_s() - began >= form.lease_s
    assert values(next_one) == {"intent": {"n": 1}}


def test_a_holder_that_hangs_is_fenced_for_good(form: JournalForm) -> None:
    """After the takeover nothing the old holder does gets into the journal, and it is told before it acts."""
    old, new = form.open(), form.open()
    old.acquire(form.holder("old"))
    old.check()
    new.acquire(form.holder("new"), wait_s=60)
    new.append([Record("run", {"by": "new"})])
    with pytest.raises(Fenced):
        old.check()
    with pytest.raises(Fenced):
        old.append([Record("run", {"by": "old"})])
    with pytest.raises(Fenced):
        old.renew()
    old.release()
    seen = new.holder()
    assert seen is not None
    assert seen.description == "new"
    assert values(new) == {"run": {"by": "new"}}


def test_a_lapsed_lease_that_no_other_process_took_is_renewed(form: JournalForm) -> None:
    """A holder that was away too long asks the journal; where no other process took the lock, it goes on."""
    journal = form.open()
    journal.acquire(form.holder("slow"))
    form.clock.sleep(form.lease_s * 1.2)
    journal.check()
    journal.append([Record("a", {})])


def test_a_holder_that_renews_keeps_the_lock(form: JournalForm) -> None:
    """A candidate that waits longer than a lease gets nothing while beats are seen."""
    first, second = form.open(), form.open()
    # Each round is to be shorter than the lease, whatever a reading takes: nothing renews it while the candidate waits.
    lease_s = form.lease_s * 3
    first.acquire(form.holder("first", lease_s=lease_s))
    hears(second, "first")
    until = form.clock.monotonic_s() + lease_s * 1.2
    rounds = 0
    while form.clock.monotonic_s() < until or rounds < 2:
        first.renew()
        first.check()
        with pytest.raises(LockHeld):
            second.acquire(form.holder("second"), wait_s=form.lease_s / 4)
        rounds += 1
    first.append([Record("a", {"n": 1})])


def test_only_the_holder_writes(form: JournalForm) -> None:
    """Without the lock there is no append, no check, no renewal and no answer."""
    journal = form.open()
    with pytest.raises(Fenced):
        journal.append([Record("a", {})])
    with pytest.raises(Fenced):
        journal.check()
    with pytest.raises(Fenced):
        journal.renew()
    with pytest.raises(Fenced):
        journal.answer("r", "ok")


def test_requests_of_others_are_answered_by_the_holder(form: JournalForm) -> None:
    """Anyone may ask; a repeated question is one question, and does not wipe out its answer."""
    holder, laptop = form.open(), form.open()
    holder.acquire(form.holder("daemon", lease_s=60))
    pause = Request("q-1", "pause", "ana", 1000, {"for_s": 60})
    laptop.request(pause)
    laptop.request(Request("q-2", "cancel", "bo", 2000, {"run": "7"}))
    assert [(r.id, r.kind, r.by, r.body, r.answer) for r in holder.requests()] == [
        ("q-1", "pause", "ana", {"for_s": 60}, None),
        ("q-2", "cancel", "bo", {"run": "7"}, None),
    ]
    holder.answer("q-1", "paused until 10:00")
    laptop.request(pause)

    def answers() -> list[tuple[str | None, bool]]:
        return [(r.answer, r.refused) for r in laptop.requests()]

    becomes(answers, [("paused until 10:00", False), (None, False)])
    holder.answer("q-2", "run 7 has ended", refused=True)
    becomes(answers, [("paused until 10:00", False), ("run 7 has ended", True)])
    with pytest.raises(Refused, match="q-9"):
        holder.answer("q-9", "?")
    assert list(holder.read()) == []


@pytest.mark.parametrize("data", [b"?", b'{"version":99,"value":{}}', b'{"version":1,"value":{"kind":"cancel"}}'])
def test_a_request_that_cannot_be_read_is_no_order_and_is_named(form: JournalForm, data: bytes) -> None:
    """One of a newer version, and what is none: the others are read, and the holder can say why this one is not obeyed."""
    holder, laptop = form.open(), form.open()
    holder.acquire(form.holder("daemon", lease_s=60))
    cancel, pause = Request("q-1", "cancel", "bo", 1000, {"run": "7"}), Request("q-2", "pause", "ana", 2000, {})
    for request in (cancel, pause):
        laptop.request(request)
    becomes(lambda: list(holder.requests()), [cancel, pause])
    assert holder.skipped_requests() == {}
    form.write_request("q-1", data)
    form.write_request("q-3", data)
    becomes(lambda: list(holder.requests()), [pause])
    skipped = holder.skipped_requests()
    assert list(skipped) == ["q-1", "q-3"]
    assert all(why.startswith("The journal") for why in skipped.values())
    with pytest.raises(Refused, match="q-1"):
        holder.answer("q-1", "?")
    laptop.request(cancel)
    becomes(lambda: [list(holder.requests()), list(holder.skipped_requests())], [[cancel, pause], ["q-3"]])


def test_the_holder_alone_removes_it_with_everything_in_it(form: JournalForm) -> None:
    """Records, requests and the lock are gone for every later reader; the next holder begins a new one."""
    holder, laptop = form.open(), form.open()
    holder.acquire(form.holder("daemon", lease_s=60))
    holder.append([Record("a", {"n": 1})])
    laptop.request(Request("q-1", "pause", "ana", 1000, {}))
    with pytest.raises(Fenced):
        laptop.remove()
    reads(form.open(), {"a": {"n": 1}})
    holder.remove()
    after = form.open()

    def found() -> object:
        try:
            return [list(after.read()), list(after.requests()), after.holder()]
        except Unavailable as failure:
            return failure  # The broker that was asked had not heard of it yet, and there was nothing to read.

    becomes(found, [[], [], None], within_s=2 * PATIENCE_S)
    after.acquire(form.holder("next"))
    after.append([Record("b", {"n": 2})])
    reads(form.open(), {"b": {"n": 2}})


def test_a_value_that_is_not_json_changes_nothing(form: JournalForm) -> None:
    """All or none: the good record beside the bad one is not written, and the handle goes on."""
    journal = form.open()
    journal.acquire(form.holder("writer", lease_s=60))
    with pytest.raises(TypeError):
        journal.append([Record("good", {"n": 1}), Record("bad", {"n": object()})])
    assert list(journal.read()) == []
    journal.append([Record("good", {"n": 2})])
    reads(form.open(), {"good": {"n": 2}})
