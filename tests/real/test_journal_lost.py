"""The journal's topic is deleted, recreated, cut off or not writable while Ballast relies on it."""

from __future__ import annotations

import signal
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaProducer, TopicPartition
from tests.clusters import ClusterFactory
from tests.real.execution_scene import RATES, Scene, events, scene
from tests.waiting import PATIENCE_S, becomes, until

from ballast.adapters.journal.client_errors import HANGING_HINT
from ballast.adapters.journal.log import TopicLog
from ballast.adapters.journal.loss import TopicMark
from ballast.adapters.journal.topic import TopicJournal
from ballast.core.cluster import TopicPartition as ClusterPartition
from ballast.errors import BallastError, Fenced, JournalLost, LockHeld, Unavailable
from ballast.ports.cluster import ConfigChange, ConfigResource
from ballast.ports.journal import JOURNAL_TOPIC, REQUESTS_TOPIC, Record, Request, find_restart, restart_record
from ballast.sandbox import Sandbox
from ballast.wiring.journal import this_process

pytestmark = pytest.mark.kafka
LEASE_S = 6.0
LONG_LEASE_S = 45.0
NEVER_OVER_S = 300.0
"""A lease whose end no test waits for: for as long a process that knows nothing leaves a lost journal to its holder."""
THEIRS = "40000000"
LEAVES_S = 150.0


@pytest.fixture(params=["kraft", "zk23"])
def cluster(request: pytest.FixtureRequest) -> Sandbox:
    """One with topic ids, and one without."""
    sandbox: Sandbox = request.getfixturevalue(request.param)
    return sandbox


@pytest.fixture
def journal(cluster: Sandbox) -> Iterator[TopicJournal]:
    """A journal of the test's own, held, with something in it."""
    name = uuid.uuid4().hex[:8]
    own = handle(cluster, name)
    own.acquire(this_process("the test", lease_s=LEASE_S), wait_s=60)
    own.append([Record("run/1", {"moves": 3}), Record("throttle/broker/1", {"prior": THEIRS})])
    own.append([Record("throttle/broker/2", {"prior": None}), Record("pause", {"by": "Ada"})])
    own.append([Record("pause", None)])
    yield own
    own.release()
    own.close()


def handle(cluster: Sandbox, name: str) -> TopicJournal:
    """A process's handle on the journal of this name."""
    config = {"bootstrap.servers": cluster.bootstrap_server}
    return TopicJournal(config, timeout_s=20, journal_topic=f"journal-{name}", requests_topic=f"requests-{name}")


def written(journal: TopicJournal) -> dict[str, Any]:
    """What it says."""
    return {r.key: r.value for r in journal.read()}


def delete(cluster: Sandbox, topic: str) -> AdminClient:
    """Delete a topic as another user would."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_server})
    admin.delete_topics([topic])[topic].result(30)
    return admin


def gone(cluster: Sandbox, topic: str) -> bool:
    """No broker tells of it any more: one whose metadata is behind would hand the old one to a client that asks it."""
    return not any(tell_of(cluster, topic))


def tell_of(cluster: Sandbox, topic: str) -> list[bool]:
    """By broker: does it tell of the topic?"""
    brokers = [AdminClient({"bootstrap.servers": address}) for address in cluster.bootstrap_server.split(",")]
    return [topic in broker.list_topics(timeout=30).topics for broker in brokers]


def make_again(admin: AdminClient, topic: str, **configs: str) -> None:
    """And makes another one of the same name, as soon as the old one is gone."""

    def made() -> bool:
        with suppress(KafkaException):
            new = NewTopic(topic, num_partitions=1, replication_factor=1, config=configs)
            admin.create_topics([new])[topic].result(30)
            return True
        return False

    until(made, "it is made again")


def lost(journal: TopicJournal) -> JournalLost:
    """How the holder finds out: by going on."""

    def found() -> JournalLost | None:
        try:
            journal.append([Record("beat", {})])
        except JournalLost as loss:
            return loss
        except BallastError:
            return None
        return None

    return until(found, "the holder finds out")


WHOLE = {"run/1": {"moves": 3}, "throttle/broker/1": {"prior": THEIRS}, "throttle/broker/2": {"prior": None}}


def test_a_deleted_journal_is_named_and_made_again(journal: TopicJournal, cluster: Sandbox) -> None:
    """With all that its holder knows, and with the lock still theirs; a reader is told once, and reads on."""
    reader = handle(cluster, journal._log.topic.removeprefix("journal-"))
    until(lambda: written(reader).items() >= WHOLE.items(), "another process reads it")
    delete(cluster, journal._log.topic)

    def read_again() -> None:
        with suppress(Unavailable):  # Its leader has deleted it, and other brokers have not heard of that yet.
            written(reader)

    with pytest.raises(JournalLost) as told:
        until(read_again, "the reader finds out")
    assert told.value.how == "deleted"
    assert lost(journal).how == "deleted"
    make_whole(journal)
    journal.append([Record("run/1", {"moves": 4})])
    until(lambda: written(reader).items() >= (WHOLE | {"run/1": {"moves": 4}}).items(), "another process reads it")
    assert "pause" not in written(reader)
    holder = reader.holder()
    assert holder is not None
    assert holder.lease_s == LEASE_S
    reader.close()


def test_a_standby_leaves_a_lost_journal_to_its_holder_and_makes_it_again_when_the_holder_does_not(
    journal: TopicJournal, cluster: Sandbox
) -> None:
    """Who waits in line is quick to notice, and knows less than the holder: an empty journal of its own would forget what is owed."""
    journal.release()
    # Long enough for a busy machine to see that the standby waits.
    journal.acquire(this_process("the test", lease_s=LONG_LEASE_S), wait_s=60)
    standby = handle(cluster, journal._log.topic.removeprefix("journal-"))
    me = this_process("the standby", lease_s=LEASE_S)
    told: list[JournalLost] = []

    def stands_by() -> bool:
        try:
            standby.acquire(me, wait_s=1)
        except JournalLost as loss:
            told.append(loss)
            return False
        except BallastError:
            return False
        return True

    assert not stands_by()
    delete(cluster, journal._log.topic)
    until(lambda: stands_by() or told, "the standby finds out")
    # The holder is busy with something else for a moment.
    assert told
    assert not stands_by()
    assert not stands_by()
    assert lost(journal).how in {"deleted", "recreated", "truncated"}
    make_whole(journal)
    assert not stands_by()
    until(lambda: written(standby).items() >= WHOLE.items(), "the standby reads it")
    # Now the holder does not do it.
    delete(cluster, journal._log.topic)
    until(stands_by, "the standby takes the lock", within_s=LONG_LEASE_S + PATIENCE_S)
    assert written(standby).items() >= WHOLE.items()
    standby.append([Record("run/1", {"moves": 4})])
    until(lambda: isinstance(ends(journal), Fenced), "the one before hears of it")
    standby.close()


def test_a_process_that_starts_while_it_is_gone_notes_that_in_the_new_one(
    journal: TopicJournal, cluster: Sandbox
) -> None:
    """No process remembers it: the empty one says by itself that it is not the first, until a person has looked."""
    assert find_restart(journal.read()) is None
    journal.release()
    delete(cluster, journal._log.topic)
    until(lambda: gone(cluster, journal._log.topic), "every broker has heard that it is gone")
    name = journal._log.topic.removeprefix("journal-")
    for who in ("the first", "the second"):
        starter = handle(cluster, name)
        starter.acquire(this_process(who, lease_s=LEASE_S), wait_s=60)
        restart = find_restart(starter.read())
        assert restart is not None
        assert "the first" in restart.by
        starter.release()
        starter.close()
    starter = handle(cluster, name)
    starter.acquire(this_process("the third", lease_s=LEASE_S), wait_s=60)
    starter.append([restart_record(None)])
    assert starter.read() == ()
    starter.release()
    starter.close()


def test_a_process_that_starts_while_it_is_gone_leaves_it_to_one_that_remembers(
    journal: TopicJournal, cluster: Sandbox
) -> None:
    """A process that knows nothing gives the holder the time of a lease."""
    starter = handle(cluster, journal._log.topic.removeprefix("journal-"))
    delete(cluster, journal._log.topic)
    with ThreadPoolExecutor(1) as beside:
        started = beside.submit(starter.acquire, this_process("the starter", lease_s=NEVER_OVER_S), wait_s=0)
        assert lost(journal).how in {"deleted", "recreated", "truncated"}
        make_whole(journal)
        with pytest.raises(LockHeld):
            started.result(PATIENCE_S)
    assert find_restart(starter.read()) is None
    assert written(starter).items() >= WHOLE.items()
    starter.close()


def test_a_process_that_starts_while_it_is_being_deleted_leaves_it_to_one_that_remembers(
    journal: TopicJournal, cluster: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At its first look the topic was still there: making it again must not be taking the lock from one that remembers."""
    topic, deleted, ensure = journal._log.topic, threading.Event(), TopicLog.ensure

    def deleted_before(log: TopicLog, configs: Mapping[str, str]) -> bool:
        if log.topic == topic and not deleted.is_set():
            delete(cluster, topic)
            until(lambda: gone(cluster, topic), "every broker has heard that it is gone")
            deleted.set()
        return ensure(log, configs)

    monkeypatch.setattr(TopicLog, "ensure", deleted_before)
    starter = handle(cluster, topic.removeprefix("journal-"))
    with ThreadPoolExecutor(1) as beside:
        started = beside.submit(starter.acquire, this_process("the starter", lease_s=NEVER_OVER_S), wait_s=0)
        assert deleted.wait(PATIENCE_S)
        assert lost(journal).how in {"deleted", "recreated", "truncated"}
        make_whole(journal)
        with pytest.raises(LockHeld):
            started.result(PATIENCE_S)
    assert find_restart(starter.read()) is None
    assert written(starter).items() >= WHOLE.items()
    starter.close()


def test_a_holder_that_was_told_of_the_loss_does_not_acquire_the_lock_again(
    journal: TopicJournal, cluster: Sandbox
) -> None:
    """Another process holds it in the new topic by then, and goes on undisturbed whatever the first one tries."""
    delete(cluster, journal._log.topic)
    other = handle(cluster, journal._log.topic.removeprefix("journal-"))
    other.acquire(this_process("the other", lease_s=LEASE_S), wait_s=60)
    for _ in range(3):
        with pytest.raises(JournalLost):
            journal.append([Record("run/1", {"moves": 5})])
    other.append([Record("run/9", {"moves": 1})])
    with pytest.raises(Fenced):
        journal.remake()
    other.append([Record("run/9", {"moves": 2})])
    assert written(other)["run/9"] == {"moves": 2}
    assert "run/1" not in written(other)
    other.close()


def ends(journal: TopicJournal) -> BallastError | None:
    """What its holder hears when it goes on, making the journal again where it has to."""
    try:
        journal.append([Record("beat", {})])
    except JournalLost:
        with suppress(BallastError):
            journal.remake()
    except BallastError as failure:
        return failure
    return None


@pytest.mark.parametrize("policy", ["compact", "delete"])
def test_a_journal_that_another_user_has_made_again_is_not_taken_for_the_old_one(
    journal: TopicJournal, cluster: Sandbox, policy: str
) -> None:
    """By its id, or by its end; one that no journal can be is replaced."""
    make_again(delete(cluster, journal._log.topic), journal._log.topic, **{"cleanup.policy": policy})
    assert lost(journal).how in {"deleted", "recreated", "truncated"}
    make_whole(journal)
    journal.append([Record("run/1", {"moves": 4})])
    assert written(journal).items() >= (WHOLE | {"run/1": {"moves": 4}}).items()
    fresh = handle(cluster, journal._log.topic.removeprefix("journal-"))
    # A commit is acknowledged a moment before its records become readable.
    becomes(lambda: written(fresh), written(journal))
    fresh.close()


def test_a_journal_that_another_user_has_made_again_is_not_removed(journal: TopicJournal, cluster: Sandbox) -> None:
    """Theirs stays, with what they wrote; the process that wanted to remove the old one is told of the loss."""
    topic = journal._log.topic
    until(lambda: written(journal).items() >= WHOLE.items(), "it is read")
    admin = delete(cluster, topic)
    until(lambda: gone(cluster, topic), "no broker tells of the old one")
    make_again(admin, topic, **{"cleanup.policy": "compact"})
    # A process that a broker has told of no journal beside its requests notes in the new one that it is not the first.
    until(lambda: all(tell_of(cluster, topic)), "every broker tells of the new one")
    other = handle(cluster, topic.removeprefix("journal-"))
    until(lambda: _takes(other), "another process takes the lock in the new one")
    other.append([Record("run/9", {})])
    with pytest.raises(JournalLost):
        journal.remove()
    until(lambda: written(other) == {"run/9": {}}, "theirs is there")
    other.release()
    other.close()


def _takes(journal: TopicJournal) -> bool:
    try:
        journal.acquire(this_process("another process", lease_s=LEASE_S))
    except BallastError:
        return False
    return True


def test_requests_are_heard_again_after_their_topic_was_deleted(journal: TopicJournal, cluster: Sandbox) -> None:
    """Made again with the journal; a person asks again."""
    assert journal.requests() == []
    delete(cluster, journal._requests.topic)

    def heard() -> bool:
        try:
            journal.requests()
        except JournalLost:
            return True
        except BallastError:
            return False
        return False

    until(heard, "the holder finds out")
    make_whole(journal)
    other = handle(cluster, journal._log.topic.removeprefix("journal-"))
    other.request(Request("a", "pause", "Ada", 1, {}))
    until(lambda: [r.id for r in journal.requests()] == ["a"], "it is heard")
    other.close()


def test_the_journal_is_watched_beside_a_down_broker(own_cluster: ClusterFactory) -> None:
    """The one that the client took for the controller when it last heard: it asked that one, and no other, for a minute and more."""
    sandbox = own_cluster(brokers=3)
    admin = AdminClient({"bootstrap.servers": sandbox.bootstrap_server})
    for topic in ("journal-beside", "requests-beside"):
        new = NewTopic(topic, num_partitions=1, replica_assignment=[[1]], config={"cleanup.policy": "compact"})
        admin.create_topics([new])[topic].result(30)
    journal = handle(sandbox, "beside")
    journal.acquire(this_process("the test", lease_s=LEASE_S), wait_s=60)
    asks, mark = journal._log._admin(), TopicMark("journal-beside")
    mark.check_not_lost(asks)
    until(lambda: asks.list_topics(timeout=10).controller_id == 3, "broker 3 is told as the controller")
    sandbox.kill_broker(3)

    def answered() -> bool:
        with suppress(KafkaException):
            mark.check_not_lost(asks, now=True)
            return True
        return False

    assert any(answered() for _ in range(8))
    journal.close()


def test_an_unclean_election_that_loses_records_is_noticed(own_cluster: ClusterFactory) -> None:
    """A replica without the newest records leads: they are written again, and what they had struck out stays so."""
    sandbox = own_cluster(brokers=4)
    admin = AdminClient({"bootstrap.servers": sandbox.bootstrap_server})
    configs = {
        "cleanup.policy": "compact",
        "min.insync.replicas": "1",
        "unclean.leader.election.enable": "true",
    }
    for topic in ("journal-cut", "requests-cut"):
        new = NewTopic(topic, num_partitions=1, replica_assignment=[[1, 2]], config=configs)
        admin.create_topics([new])[topic].result(30)
    journal = handle(sandbox, "cut")
    journal.acquire(this_process("the test", lease_s=LEASE_S), wait_s=60)
    journal.append([Record("run/1", {"moves": 3}), Record("pause", {"by": "Ada"})])
    # A commit is acknowledged before its markers are written; without them on broker 2 it would never end there.
    journal.read()
    sandbox.kill_broker(2)

    def append(*records: Record) -> bool:
        try:
            journal.append(records)
        except JournalLost:
            raise
        except BallastError:
            return False
        return True

    until(lambda: append(Record("throttle/broker/1", {"prior": THEIRS})), "the leader takes it alone")
    until(lambda: append(Record("pause", None)), "and that the pause is over")
    for number in range(20):
        until(lambda: append(Record("run/1", {"moves": number})), "and what comes of the run")  # noqa: B023 — at once
    sandbox.kill_broker(1)
    sandbox.start_broker(2)
    until(lambda: admin.list_topics(timeout=30).topics["journal-cut"].partitions[0].leader == 2, "the other leads")
    with pytest.raises(JournalLost) as told:
        until(lambda: append(Record("run/1", {"moves": 99})) and None, "it is noticed")
    assert told.value.how == "truncated"
    # The brokers' coordinator may keep the abort of the transaction before for the dead leader through two requests of 30 s.
    make_whole(journal, within_s=2 * PATIENCE_S)
    journal.append([Record("run/1", {"moves": 100})])
    fresh = handle(sandbox, "cut")
    left = {"run/1": {"moves": 100}, "throttle/broker/1": {"prior": THEIRS}}
    until(lambda: written(fresh).items() >= left.items(), "another process reads it")
    assert "pause" not in written(fresh)
    fresh.close()
    journal.close()


def make_whole(journal: TopicJournal, *, within_s: float = PATIENCE_S) -> None:
    """The holder makes it again, trying as often as a daemon would; what kept it from that is told."""
    told: list[str] = []

    def remade() -> bool:
        try:
            journal.remake()
        except BallastError as failure:
            told.append(f"{time.monotonic():.1f} {type(failure).__name__}: {failure}")
            return False
        return True

    until(remade, "the holder makes it again", within_s=within_s, story=lambda: "\n".join(told[-5:]))


def another_writer(cluster: Sandbox, topic: str) -> KafkaProducer:
    """One that is ready to begin a transaction."""
    producer = KafkaProducer(
        bootstrap_servers=cluster.bootstrap_server, transactional_id=f"hanging-{topic}", max_block_ms=60_000
    )
    producer.init_transactions()
    return producer


def leave_hanging(producer: KafkaProducer, topic: str) -> None:
    """Write one record of a transaction that nothing ends: its coordinator was never told that the topic belongs to it.

    What the loss of a transaction's markers in an unclean election leaves behind, without waiting for one.
    """
    producer.begin_transaction()
    producer._transaction_manager._partitions_in_transaction.add(TopicPartition(topic, 0))
    producer.send(topic, key=b"record/of-another", value=None, partition=0).get(60)
    producer.close(timeout=0)


@pytest.mark.parametrize("cluster", ["zk23"], indirect=True)
def test_a_transaction_that_does_not_end_is_named_with_what_ends_it(cluster: Sandbox) -> None:
    """The holder says so within its time-out: what stands behind that transaction is not read."""
    name = uuid.uuid4().hex[:8]
    own = handle(cluster, name)
    own.acquire(this_process("the test", lease_s=LEASE_S), wait_s=60)
    own.append([Record("run/1", {"moves": 3})])
    leave_hanging(another_writer(cluster, f"journal-{name}"), f"journal-{name}")
    began_s = time.monotonic()
    with pytest.raises(Unavailable) as told:
        own.read()
    assert time.monotonic() - began_s < PATIENCE_S
    assert told.value.message == f"A transaction in journal-{name} does not end."
    assert told.value.hint == HANGING_HINT
    own.append([Record("run/1", {"moves": 4})])
    own.close()


@pytest.fixture
def sandbox(own_cluster: ClusterFactory) -> Sandbox:
    """Five brokers of the test's own."""
    return own_cluster(brokers=5)


@pytest.fixture
def s(sandbox: Sandbox, tmp_path: Path) -> Iterator[Scene]:
    """A topic of 32 MB on two of them, and rates that a person had set on each broker."""
    with scene(sandbox, tmp_path) as found:
        found.topic("t", {0: (1, 2), 1: (2, 1)}, mib=16)
        for broker in sandbox.broker_ids:
            for rate in RATES:
                found.change(ConfigChange(ConfigResource("broker", str(broker)), rate, "set", THEIRS))
        yield found


def ending(out: str) -> dict[str, Any]:
    """How the run ended, in the words of its last event."""
    return [e for e in events(out) if e["kind"] == "RunEnded"][-1]


APPLY = ("--yes", "--throttle", "2MB", "--moves-at-once", "1", "--output", "json")
"""Sixteen seconds at least: 2 MB/s for two times 16 MiB."""


def own(s: Scene) -> dict[str, str]:
    """What the person had set, and nothing else."""
    return {f"broker {b} {rate}": THEIRS for b in s.sandbox.broker_ids for rate in RATES}


def test_a_run_outlives_its_journal(s: Scene) -> None:
    """Deleted in mid-move: the run ends well, the rates are the person's again, and the new journal holds all of it."""
    process = s.ballast("apply", *APPLY, str(s.plan("t", {0: (3, 2), 1: (4, 1)})))
    until(lambda: bool(s.cluster.reassignments()), "the first move is in flight")
    delete(s.sandbox, JOURNAL_TOPIC)  # type: ignore[arg-type]
    out, story = process.communicate(timeout=240)
    assert process.returncode == 0, (out, story)
    becomes(lambda: s.throttles("t"), own(s))
    run = s.run_of("t")
    assert run is not None, story
    assert run.ended
    assert len(run.moves) == 2
    assert "The journal was deleted: " in out


def test_a_run_whose_journal_gets_a_hanging_transaction_ends_and_restores_what_it_owes(
    own_cluster: ClusterFactory, tmp_path: Path
) -> None:
    """It can still write; that the journal cannot be read is told with what ends it, to it and to each later command.

    Brokers refuse records of a transaction that its coordinator does not know since 3.6, unless they are told not to look.
    """
    sandbox = own_cluster(brokers=4, broker_configs={"transaction.partition.verification.enable": "false"})
    with scene(sandbox, tmp_path) as s:
        s.topic("t", {0: (1, 2), 1: (2, 1)}, mib=16)
        for broker in sandbox.broker_ids:
            for rate in RATES:
                s.change(ConfigChange(ConfigResource("broker", str(broker)), rate, "set", THEIRS))
        # Ready before: a client that only starts then may take longer than the run does.
        writer = another_writer(sandbox, JOURNAL_TOPIC)
        process = s.ballast("apply", *APPLY, str(s.plan("t", {0: (3, 2), 1: (4, 1)})))
        until(lambda: bool(s.cluster.reassignments()), "the first move is in flight")
        leave_hanging(writer, JOURNAL_TOPIC)
        out, story = process.communicate(timeout=240)
        assert process.returncode == 0, (out, story)
        result = ending(out)
        assert (result["status"], result["throttlesToRestore"]) == ("done", [])
        becomes(lambda: s.throttles("t"), own(s))
        (note,) = [e for e in events(out) if e.get("code") == "journal-not-read"]
        assert f"A transaction in {JOURNAL_TOPIC} does not end." in str(note["detail"])
        assert "kafka-transactions.sh abort" in str(note["detail"])
        said = s.told("runs")
        assert f"A transaction in {JOURNAL_TOPIC} has not ended" in said
        assert "kafka-transactions.sh abort" in said


def test_a_user_who_leaves_while_the_journal_takes_nothing_is_told_what_is_owed(s: Scene, sandbox: Sandbox) -> None:
    """Ctrl-C ends the command in bounded time, with every setting and the commands that put the person's rates back."""
    admin = AdminClient({"bootstrap.servers": sandbox.bootstrap_server})
    for topic in (JOURNAL_TOPIC, REQUESTS_TOPIC):
        configs = {"cleanup.policy": "compact", "min.insync.replicas": "2"}
        new = NewTopic(topic, num_partitions=1, replica_assignment=[[3, 4, 5]], config=configs)
        admin.create_topics([new])[topic].result(30)
    process = s.ballast("apply", *APPLY, str(s.plan("t", {0: (3, 2), 1: (3, 1)})))
    until(lambda: bool(s.cluster.reassignments()), "the first move is in flight")
    for broker in (4, 5):
        sandbox.kill_broker(broker)
    until(lambda: not s.cluster.reassignments(), "the first move has ended, and the next may not begin")
    process.send_signal(signal.SIGINT)
    out, story = process.communicate(timeout=LEAVES_S)
    assert process.returncode == 130, (out, story)
    result = ending(out)
    assert result["throttlesToRestore"], out
    assert any(f"--add-config {RATES[0]}={THEIRS}" in command for command in result["restoreCommands"]), out
    for broker in (4, 5):
        sandbox.start_broker(broker)
    # A broker serves before its replicas have caught up, and until then the journal cannot be written.
    for topic in (JOURNAL_TOPIC, REQUESTS_TOPIC):
        becomes(lambda topic=topic: s.in_sync(ClusterPartition(topic, 0)), {3, 4, 5})  # type: ignore[misc]
    s.finish("runs", "resume", "--lock-wait", "60")
    becomes(lambda: s.throttles("t"), own(s))


def test_a_run_is_left_by_hand_where_the_person_said_so(s: Scene) -> None:
    """``--journal-lost leave``: nothing more begins; the printed commands are all that is needed."""
    slowly = ("200kB" if word == "2MB" else word for word in APPLY)  # It leaves before the first move has ended.
    process = s.ballast("apply", *slowly, "--journal-lost", "leave", str(s.plan("t", {0: (3, 2), 1: (4, 1)})))
    until(lambda: bool(s.cluster.reassignments()), "the first move is in flight")
    delete(s.sandbox, JOURNAL_TOPIC)  # type: ignore[arg-type]
    out, story = process.communicate(timeout=240)
    assert process.returncode == 130, (out, story)
    result = ending(out)
    assert result["moves"]["left"] == 2
    assert len(result["restoreCommands"]) == len(result["throttlesToRestore"]) > 0
