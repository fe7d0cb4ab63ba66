"""The journal topic on clusters that are old, small, unhealthy or read by another process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable
from functools import partial
from typing import Any

import confluent_kafka as ck
import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ConfigResource,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)
from tests.clusters import properties_of
from tests.leash import leashed
from tests.waiting import PATIENCE_S, becomes, until

from ballast.adapters.auth.security import Security
from ballast.adapters.journal import topic as journal_topic
from ballast.adapters.journal.log import TopicLog
from ballast.adapters.journal.producer import start_transactions
from ballast.adapters.journal.topic import TopicJournal
from ballast.errors import AuthorizationFailed, Fenced, LockHeld, Refused, Unavailable
from ballast.ports.journal import JOURNAL_TOPIC, REQUESTS_TOPIC, Holder, Record
from ballast.ports.journal_codec import Entry
from ballast.sandbox import Sandbox
from ballast.wiring.journal import open_journal, this_process

pytestmark = pytest.mark.kafka


def holder(who: str, *, lease_s: float = 3.0) -> Holder:
    """A process start."""
    return Holder(f"{who}-{uuid.uuid4().hex[:8]}", who, lease_s=lease_s)


def client(sandbox: Sandbox) -> dict[str, str]:
    """Librdkafka's configuration for a sandbox without security."""
    return {"bootstrap.servers": sandbox.bootstrap_server}


def test_the_topics_are_made_to_last(kraft: Sandbox) -> None:
    """One partition, three replicas, two of them in sync for a write, and nothing that forgets by age."""
    journal = open_journal(client(kraft))
    journal.acquire(this_process("a test"), wait_s=60)
    journal.release()
    journal.close()
    admin = AdminClient(client(kraft))

    def made(name: str) -> tuple[list[int], str, str] | None:
        """Replicas of each partition, and settings; None where the broker that is asked has not heard of it yet."""
        resource = ConfigResource(ResourceType.TOPIC, name)
        try:
            found = admin.list_topics(timeout=30).topics[name]
            configs = admin.describe_configs([resource])[resource].result()
        except (KeyError, ck.KafkaException):
            return None
        replicas = [len(p.replicas) for p in found.partitions.values()]
        return replicas, configs["cleanup.policy"].value, configs["min.insync.replicas"].value

    for name, policy in ((JOURNAL_TOPIC, "compact"), (REQUESTS_TOPIC, "compact,delete")):
        becomes(partial(made, name), ([3], policy, "2"))


def test_a_cluster_that_cannot_start_transactions_says_so_in_time(own_cluster: Callable[..., Sandbox]) -> None:
    """One broker with Kafka's defaults for three: a bounded wait, the setting's name, and the way out."""
    small = own_cluster(brokers=1, racks=0, broker_configs={"transaction.state.log.replication.factor": "3"})
    journal = TopicJournal(client(small), timeout_s=8)
    began = time.monotonic()
    with pytest.raises(Unavailable, match=r"transaction\.state\.log\.replication\.factor.*--journal file:PATH"):
        journal.acquire(holder("ana"))
    assert time.monotonic() - began < PATIENCE_S
    journal.close()


def test_a_topic_that_would_forget_is_refused(kraft: Sandbox) -> None:
    """A journal topic that another user made with another cleanup policy, or several partitions, is not written to."""
    admin = AdminClient(client(kraft))
    kinds = (("delete", 1, "be forgotten"), ("compact", 2, "must have one"))
    for policy, partitions, sentence in kinds:
        name = f"__ballast_test_{uuid.uuid4().hex[:8]}"
        admin.create_topics([NewTopic(name, partitions, 1, config={"cleanup.policy": policy})])[name].result()
        journal = TopicJournal(client(kraft), journal_topic=name, requests_topic=f"{name}_requests")
        with pytest.raises(Refused, match=sentence):
            journal.acquire(holder("ana"))
        journal.close()


HOLD = """
import sys, uuid
from ballast.adapters.journal.log import TopicLog
from ballast.adapters.journal.topic import TopicJournal
from ballast.ports.journal import Holder, Record
j = TopicJournal({"bootstrap.servers": sys.argv[1]}, journal_topic=sys.argv[2], requests_topic=sys.argv[2] + "_r")
j.acquire(Holder(uuid.uuid4().hex, "the first process", lease_s=4.0), wait_s=30)
j.append([Record("who", {"is": "first"})])
print("held", flush=True)
for line in sys.stdin:
    try:
        j.check()
        j.append([Record("who", {"is": "first, late"})])
        print("wrote", flush=True)
    except Exception as failure:
        print(type(failure).__name__, flush=True)
"""


@pytest.mark.parametrize("harm", [signal.SIGKILL, signal.SIGSTOP])
def test_a_process_that_dies_or_hangs_loses_the_lock(kraft: Sandbox, harm: signal.Signals) -> None:
    """Real processes: the second gets the lock after one lease; the first, when it wakes up, learns it before it acts."""
    topic = f"__ballast_test_{uuid.uuid4().hex[:8]}"
    first = subprocess.Popen(
        leashed(sys.executable, "-c", HOLD, kraft.bootstrap_server, topic),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    second = TopicJournal(client(kraft), journal_topic=topic, requests_topic=f"{topic}_r")
    try:
        assert first.stdin is not None
        assert first.stdout is not None
        assert first.stdout.readline().strip() == "held"
        os.kill(first.pid, harm)
        began = time.monotonic()
        second.acquire(holder("the second process", lease_s=60), wait_s=60)
        assert time.monotonic() - began >= 3.5
        second.append([Record("who", {"is": "second"})])
        if harm == signal.SIGSTOP:
            os.kill(first.pid, signal.SIGCONT)
            first.stdin.write("go on\n")
            first.stdin.flush()
            assert first.stdout.readline().strip() == "Fenced"
        assert [r.value for r in second.read()] == [{"is": "second"}]
    finally:
        first.kill()
        first.wait()
        second.close()


def test_a_fence_without_a_new_lease_is_not_a_lost_lock(kraft: Sandbox) -> None:
    """Brokers fence a slow transaction too, and a candidate may die before its lease: the holder goes on, the other producer does not."""
    topic = f"__ballast_test_{uuid.uuid4().hex[:8]}"
    journal = TopicJournal(client(kraft), journal_topic=topic, requests_topic=f"{topic}_r", timeout_s=60)
    reader = TopicJournal(client(kraft), journal_topic=topic, requests_topic=f"{topic}_r", timeout_s=60)
    try:
        journal.acquire(holder("holder", lease_s=60), wait_s=30)
        journal.append([Record("a", {"n": 1})])
        other = ck.Producer({**client(kraft), "transactional.id": topic})
        other.init_transactions(60)
        journal.append([Record("a", {"n": 2})])
        journal.check()
        other.begin_transaction()
        other.produce(topic, key=b"record/a", value=b"theirs", partition=0)
        with pytest.raises(ck.KafkaException):
            other.commit_transaction(60)
        journal.append([Record("b", {"n": 3})])
        becomes(lambda: {r.key: r.value for r in reader.read()}, {"a": {"n": 2}, "b": {"n": 3}})
    finally:
        journal.close()
        reader.close()


def test_what_a_killed_writer_had_open_is_aborted(kraft: Sandbox) -> None:
    """A transaction that was begun and never committed is aborted by the next writer and read by no reader."""
    topic = f"__ballast_test_{uuid.uuid4().hex[:8]}"
    dying = TopicJournal(client(kraft), journal_topic=topic, requests_topic=f"{topic}_r")
    next_one = TopicJournal(client(kraft), journal_topic=topic, requests_topic=f"{topic}_r")
    try:
        dying.acquire(holder("dying"), wait_s=30)
        dying.append([Record("a", {"n": 1})])
        assert dying._producer is not None
        producer = dying._producer.client
        producer.begin_transaction()
        producer.produce(topic, key=b"record/a", value=b"half", partition=0)
        assert producer.flush(PATIENCE_S) == 0
        # An open transaction hides itself and nothing else.
        becomes(lambda: [r.value for r in next_one.read()], [{"n": 1}])
        next_one.acquire(holder("next"), wait_s=60)
        next_one.append([Record("b", {"n": 2})])
        assert {r.key: r.value for r in next_one.read()} == {"a": {"n": 1}, "b": {"n": 2}}
    finally:
        dying.close()
        next_one.close()


def test_two_candidates_at_once_end_with_one_holder(kraft: Sandbox) -> None:
    """Both have waited for the same dead holder: one gets the lock, and the other says so or takes it only afterwards."""
    topic = f"__ballast_test_{uuid.uuid4().hex[:8]}"
    handles = [TopicJournal(client(kraft), journal_topic=topic, requests_topic=f"{topic}_r") for _ in range(3)]
    dead, *candidates = handles
    try:
        dead.acquire(holder("dead"), wait_s=30)
        ends: dict[str, object] = {}

        def compete(name: str, journal: TopicJournal) -> None:
            try:
                journal.acquire(holder(name, lease_s=4), wait_s=30)
                ends[name] = "held"
            except LockHeld as late:
                ends[name] = late

        threads = [threading.Thread(target=compete, args=pair) for pair in zip(("one", "two"), candidates, strict=True)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
        assert "held" in ends.values(), ends
        writers = []
        for name, journal in zip(("one", "two"), candidates, strict=True):
            try:
                journal.append([Record("writer", {"is": name})])
                writers.append(name)
            except Fenced:
                pass
        assert len(writers) == 1, "exactly one of them can write"
        becomes(lambda: [r.value for r in dead.read()], [{"is": writers[0]}])
    finally:
        for journal in handles:
            journal.close()


def test_a_candidate_that_is_overtaken_hears_by_whom(kraft: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another one fences it between its fence and its lease: the lock is held by that one, and was never ours to lose."""
    topic = f"__ballast_test_{uuid.uuid4().hex[:8]}"
    slow, quick = (TopicJournal(client(kraft), journal_topic=topic, requests_topic=f"{topic}_r") for _ in range(2))
    stop = threading.Event()

    def live() -> None:
        while not stop.wait(0.5):
            quick.renew()

    beats = threading.Thread(target=live)

    def and_then_the_other(*client: Any, **within: Any) -> ck.Producer:
        monkeypatch.undo()
        started = start_transactions(*client, **within)
        quick.acquire(holder("the quick one", lease_s=10), wait_s=60)
        beats.start()
        return started

    try:
        monkeypatch.setattr(journal_topic, "start_transactions", and_then_the_other)
        with pytest.raises(LockHeld) as held:
            slow.acquire(holder("the slow one"))
        assert held.value.holder == "the quick one"
        quick.append([Record("a", {"n": 1})])
        waiting = threading.Thread(target=slow.acquire, args=(holder("the slow one"),), kwargs={"wait_s": 120})
        waiting.start()
        stop.set()
        beats.join()
        quick.release()
        waiting.join(120)
        slow.append([Record("a", {"n": 2})])
        becomes(lambda: [r.value for r in quick.read()], [{"n": 2}])
    finally:
        stop.set()
        slow.close()
        quick.close()


def test_a_candidate_whose_rival_dies_gets_the_lock(kraft: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its rival never wrote a lease: one that does not wait is told to try again, one that waits takes the lock."""
    topic = f"__ballast_test_{uuid.uuid4().hex[:8]}"
    journal = TopicJournal(client(kraft), journal_topic=topic, requests_topic=f"{topic}_r")
    rivals: list[ck.Producer] = []

    def and_then_a_rival(*ours: Any, **within: Any) -> ck.Producer:
        started = start_transactions(*ours, **within)
        if len(rivals) < 2:
            rivals.append(ck.Producer({**client(kraft), "transactional.id": topic}))
            rivals[-1].init_transactions(60)
        return started

    monkeypatch.setattr(journal_topic, "start_transactions", and_then_a_rival)
    try:
        with pytest.raises(LockHeld) as told:
            journal.acquire(holder("patient"))
        assert told.value.holder is None
        journal.acquire(holder("patient", lease_s=60), wait_s=240)
        journal.append([Record("a", {"n": 1})])
        assert len(rivals) == 2
    finally:
        journal.close()


def test_a_secured_cluster_holds_the_journal_for_those_who_may(secured: Callable[[str], Sandbox]) -> None:
    """SASL with an authorizer: the admin writes; a user without rights is told which ones are missing."""
    guarded = secured("acl")
    servers = {"bootstrap.servers": guarded.bootstrap_server}
    admin = Security.from_properties(guarded.client_properties).for_confluent() | servers
    alice = Security.from_properties(properties_of(guarded, "alice")).for_confluent() | servers
    journal, outsider = TopicJournal(admin, timeout_s=60), TopicJournal(alice, timeout_s=20)
    try:
        journal.acquire(holder("admin"), wait_s=30)
        journal.append([Record("a", {"n": 1})])
        assert [r.key for r in journal.read()] == ["a"]
        with pytest.raises(AuthorizationFailed, match="__ballast_"):
            outsider.acquire(holder("alice"))
        journal.release()
    finally:
        journal.close()
        outsider.close()


def test_without_write_on_the_topic_the_missing_right_is_told(secured: Callable[[str], Sandbox]) -> None:
    """The transaction cannot even be aborted then; that is not what the person has to know."""
    guarded = secured("acl")
    servers = {"bootstrap.servers": guarded.bootstrap_server}
    admin = Security.from_properties(guarded.client_properties).for_confluent() | servers
    alice = Security.from_properties(properties_of(guarded, "alice")).for_confluent() | servers
    rights = [
        (ResourceType.TOPIC, "__ballast_", ResourcePatternType.PREFIXED, AclOperation.READ),
        (ResourceType.TOPIC, "__ballast_", ResourcePatternType.PREFIXED, AclOperation.DESCRIBE_CONFIGS),
        (ResourceType.TRANSACTIONAL_ID, "ballast-journal", ResourcePatternType.LITERAL, AclOperation.WRITE),
        (ResourceType.GROUP, "ballast-journal-reader", ResourcePatternType.LITERAL, AclOperation.READ),
    ]
    with AdminClient(admin) as maker:
        wanted = [AclBinding(*r[:3], "User:alice", "*", r[3], AclPermissionType.ALLOW) for r in rights]
        for done in maker.create_acls(wanted).values():
            done.result(timeout=30)
        owner, reader = TopicJournal(admin, timeout_s=60), TopicJournal(alice, timeout_s=20)
        try:
            owner.acquire(holder("admin"), wait_s=30)
            owner.append([Record("a", {"n": 1})])
            owner.release()
            becomes(lambda: [r.key for r in reader.read()], ["a"])
            for _ in range(2):
                with pytest.raises(
                    AuthorizationFailed, match=r"commit to __ballast_journal.*opic authorization failed"
                ):
                    reader.acquire(holder("alice"), wait_s=30)
            owner.acquire(holder("admin again"), wait_s=30)
            owner.append([Record("b", {"n": 2})])
            owner.release()
        finally:
            owner.close()
            reader.close()
            mine = [AclBindingFilter(*r[:3], "User:alice", "*", r[3], AclPermissionType.ALLOW) for r in rights]
            for taken in maker.delete_acls(mine).values():
                taken.result(timeout=30)


def test_a_reader_never_sees_half_an_append(kraft: Sandbox) -> None:
    """While one process writes transactions of forty records, another reads: all forty always tell the same number."""
    topic = f"__ballast_test_{uuid.uuid4().hex[:8]}"
    writer = TopicJournal(client(kraft), journal_topic=topic, requests_topic=f"{topic}_r")
    reader = TopicJournal(client(kraft), journal_topic=topic, requests_topic=f"{topic}_r")
    last, appends = 0, 150
    try:
        writer.acquire(holder("writer", lease_s=60), wait_s=30)

        def write() -> None:
            for n in range(1, appends + 1):
                writer.append([Record(f"move/{i}", {"n": n}) for i in range(40)])

        thread = threading.Thread(target=write)
        thread.start()
        end, reads = time.monotonic() + 3 * PATIENCE_S, 0
        while last < appends:
            assert time.monotonic() < end, f"read {last} of {appends}"
            seen = [r.value["n"] for r in reader.read() if r.value is not None]
            assert len(set(seen)) <= 1, f"half of an append: {sorted(set(seen))}"
            assert len(seen) in {0, 40}
            assert not seen or seen[0] >= last, "what was read once is not unread"
            last, reads = (seen[0] if seen else 0), reads + 1
        thread.join(60)
        assert reads > 3
    finally:
        writer.close()
        reader.close()


def test_elections_neither_skip_nor_repeat_a_record(own_cluster: Callable[..., Sandbox]) -> None:
    """The journal's leader goes and comes back, twice; a reader who was there hears what one who comes afterwards reads."""
    sandbox = own_cluster()
    topic = f"__ballast_test_{uuid.uuid4().hex[:8]}"
    writer = TopicJournal(client(sandbox), journal_topic=topic, requests_topic=f"{topic}_r")
    follower, late = (TopicLog(client(sandbox), topic, timeout_s=60) for _ in range(2))
    heard: list[Entry] = []
    admin = AdminClient(client(sandbox))

    def persist(step: Callable[[], object]) -> None:
        end = time.monotonic() + 120
        while True:
            try:
                step()
            except Unavailable:
                assert time.monotonic() < end
            else:
                return

    def turn(n: int) -> None:
        persist(lambda: writer.append([Record(f"k/{n}/{i}", {"n": n}) for i in range(5)]))
        persist(lambda: heard.extend(follower.new_entries(whole=False)))

    def leader_of() -> int | None:
        """None where the broker that is asked has not heard of the topic, or of its leader, yet."""
        partition = admin.list_topics(topic, timeout=30).topics[topic].partitions.get(0)
        return None if partition is None or partition.leader not in sandbox.broker_ids else partition.leader

    try:
        writer.acquire(holder("writer", lease_s=300), wait_s=60)
        turn(0)
        for n in (1, 3):
            leader = until(leader_of, "a broker that tells the leader")
            sandbox.stop_broker(leader)
            turn(n)
            sandbox.start_broker(leader)
            turn(n + 1)
        # A commit is acknowledged a moment before its records become readable.
        read = list(late.new_entries(whole=True))
        heard.extend(follower.new_entries(whole=True))
        assert heard == read
        assert {key for key, _ in read} >= {f"record/k/{n}/{i}" for n in range(5) for i in range(5)}
    finally:
        for open_one in (writer, follower, late):
            open_one.close()
