"""What a real ZooKeeper does to us: it ends our session in mid-run, and it takes elections of any size in pieces."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import ConnectionLoss, NoNodeError
from kazoo.security import make_digest_acl
from tests.real.test_zk_run import POLICY, filled_topic, holder
from tests.waiting import PATIENCE_S, until

from ballast.adapters.auth.security import Security
from ballast.adapters.clock import SystemClock
from ballast.adapters.zookeeper.admin import ZooKeeperWrites, body
from ballast.adapters.zookeeper.client import ELECTION, REASSIGN, ZooKeeper
from ballast.adapters.zookeeper.cluster import ZooKeeperCluster
from ballast.adapters.zookeeper.lock import LOCK
from ballast.core.cluster import TopicPartition
from ballast.core.plan import Move, Plan
from ballast.core.plan.fingerprint import fingerprint
from ballast.errors import AuthorizationFailed, Fenced, LockHeld, Unavailable
from ballast.executor.driver.driver import Driver
from ballast.executor.driver.events import MoveChanged, RunEvent
from ballast.executor.machine.stages import Moved, Moving
from ballast.sandbox import Sandbox
from ballast.wiring.cluster import open_cluster
from ballast.wiring.journal import journal_of

pytestmark = pytest.mark.kafka
PARTITIONS = 4000
OWNER = "kafka:a secret word"
LONG_NAME = "a-topic-whose-name-is-as-long-as-kafka-allows-".ljust(249, "x")


def expire(session: KazooClient, hosts: str) -> None:
    """End a session as the server does it: a second client joins it with its id and password, and closes it."""
    before = session.client_id
    assert before is not None
    twin = KazooClient(hosts=hosts, client_id=before)
    twin.start(timeout=PATIENCE_S)
    twin.stop()
    twin.close()
    until(lambda: session.connected and session.client_id[0] != before[0], "a new session is there")


class ExpiresWhenMoving:
    """Ends the session once for each move, when it is seen in flight, or over where a busy machine looks too late for that."""

    def __init__(self, session: KazooClient, hosts: str) -> None:
        self._session, self._hosts = session, hosts
        self.seen: set[TopicPartition] = set()

    def on_event(self, event: RunEvent) -> None:
        """Each time a move begins to move."""
        if not isinstance(event, MoveChanged) or not isinstance(event.after, Moving | Moved):
            return
        if event.name not in self.seen:
            expire(self._session, self._hosts)
            self.seen.add(event.name)


def test_a_run_goes_on_when_its_session_ends(zk23: Sandbox) -> None:
    """Nothing of the run hangs on the session: batches go on in the cluster, the next ones follow, throttles go."""
    assert zk23.zookeeper is not None
    with open_cluster(bootstrap_server=zk23.bootstrap_server, zookeeper=zk23.zookeeper) as opened:
        assert isinstance(opened.cluster, ZooKeeperCluster)
        session = opened.cluster._writes._zookeeper.client()
        names = filled_topic(opened)
        state = opened.cluster.snapshot()
        moves = tuple(Move(n.topic, n.partition, (1, 2), (3, 2)) for n in names)
        plan = Plan("a test", state.cluster_id, fingerprint(state), moves=moves, elections=(names[0],))
        journal = journal_of(opened)
        journal.acquire(holder("expiring"), wait_s=60)
        ends = ExpiresWhenMoving(session, zk23.zookeeper)
        result = Driver(opened.cluster, journal, SystemClock(), ends).execute(plan, POLICY, run_id=uuid.uuid4().hex)
        journal.release()
        journal.close()
        assert (result.status, result.verified, result.elections_completed) == ("done", 4, 1), result.endings
        assert len(ends.seen) >= 2
        assert result.throttles_to_restore == ()
        assert session.exists(LOCK) is None
        assert session.exists(REASSIGN) is None


def test_changes_of_isrs_are_heard_also_by_the_next_session(zk23: Sandbox) -> None:
    """Real brokers tell of replicas that come into sync: a wait ends by it, before and after its session has ended."""
    assert zk23.zookeeper is not None
    clock = SystemClock()
    with open_cluster(bootstrap_server=zk23.bootstrap_server, zookeeper=zk23.zookeeper) as opened:
        cluster = opened.cluster
        assert isinstance(cluster, ZooKeeperCluster)
        name = TopicPartition(f"isr-{uuid.uuid4().hex[:8]}", 0)
        cluster.create_topic(name.topic, {0: (1, 2)})
        until(lambda: name in cluster.partitions([name]), "the topic is there")
        cluster.await_change(clock, 0.0)

        def moves_and_tells(*target: int) -> None:
            assert cluster.alter_reassignments({name: target})[name].ok
            # Brokers of that age write after 5 quiet seconds, and within a minute of turmoil.
            assert cluster.await_change(clock, 2 * PATIENCE_S)
            until(lambda: set(cluster.partitions([name])[name].isr) == set(target), "its ISR has changed")
            until(lambda: name not in cluster.reassignments(), "the move is over")

        moves_and_tells(3, 2)
        while cluster.await_change(clock, 8.0):
            pass  # That one joined and one left may be told apart.
        expire(cluster._writes._zookeeper.client(), zk23.zookeeper)
        moves_and_tells(1, 2)


def test_a_session_that_ends_while_we_wait_in_line_writes_nothing(zk23: Sandbox) -> None:
    """The lock dies with the session: a process that waited for a user's batch does not write when it has ended."""
    assert zk23.zookeeper is not None
    root = f"/waiting-{uuid.uuid4().hex[:8]}"
    with chroot(zk23.zookeeper, root) as (hosts, theirs):
        theirs.create("/brokers/ids/1", b"{}", makepath=True)
        theirs.create("/brokers/ids/2", b"{}")
        theirs.create("/brokers/topics/t", json.dumps({"partitions": {"0": [1]}}).encode(), makepath=True)
        theirs.create(REASSIGN, body([{"topic": "other", "partition": 0, "replicas": [1]}]), makepath=True)
        ours = ZooKeeper(hosts, Security())
        raised: list[BaseException] = []
        outcomes: list[str] = []

        def write() -> None:
            try:
                done = ZooKeeperWrites(ours, wait_s=2 * PATIENCE_S).alter_reassignments({TopicPartition("t", 0): (2,)})
                outcomes.extend(o.code for o in done.values())
            except (Fenced, LockHeld, Unavailable) as failure:
                raised.append(failure)

        thread = threading.Thread(target=write)
        thread.start()
        try:
            until(lambda: theirs.exists(LOCK) is not None, "it holds the lock and waits")
            expire(ours.client(), hosts)
            until(lambda: theirs.exists(LOCK) is None, "its lock is gone with its session")
            theirs.delete(REASSIGN)
            thread.join(2 * PATIENCE_S)
            assert not thread.is_alive()
            assert raised, f"it went on and was told {outcomes}"
            assert theirs.exists(REASSIGN) is None
            again = ZooKeeperWrites(ours, wait_s=5.0).alter_reassignments({TopicPartition("t", 0): (2,)})
            assert again[TopicPartition("t", 0)].ok, "a new session begins where the old one ended"
            assert json.loads(theirs.get(REASSIGN)[0])["partitions"][0]["replicas"] == [2]
        finally:
            thread.join(2 * PATIENCE_S)
            ours.close()


@contextmanager
def chroot(hosts: str, root: str) -> Iterator[tuple[str, KazooClient]]:
    """A part of a real ZooKeeper that no broker looks at, and a session in it; both are gone afterwards."""
    base = KazooClient(hosts=hosts)
    base.start(timeout=PATIENCE_S)
    base.ensure_path(f"{root}/admin")
    inside = KazooClient(hosts=hosts + root)
    inside.start(timeout=PATIENCE_S)
    try:
        yield hosts + root, inside
    finally:
        inside.stop()
        inside.close()
        base.add_auth("digest", OWNER)
        delete_tree(base, root)
        base.stop()
        base.close()


def delete_tree(session: KazooClient, root: str) -> None:
    """Many at a time: each call of its own would cost ZooKeeper a write to its disk."""
    paths = [root]
    for path in paths:
        paths += [f"{path}/{child}" for child in session.get_children(path)]
    paths.reverse()
    for at in range(0, len(paths), 500):
        gone = session.transaction()
        for path in paths[at : at + 500]:
            gone.delete(path)
        assert not [r for r in gone.commit() if isinstance(r, Exception)]


class Controller:
    """Takes elections as Kafka's controller does: sees the znode, gives the first replica the lead, deletes the znode."""

    def __init__(self, session: KazooClient) -> None:
        self._session = session
        self.pieces: list[int] = []
        """Bytes of each election it has taken."""
        self._look()

    def _look(self, _event: object = None) -> None:
        try:
            value, _ = self._session.get(ELECTION)
        except NoNodeError:
            if self._session.exists(ELECTION, watch=self._look) is None:
                return
            value, _ = self._session.get(ELECTION)
        self.pieces.append(len(value))
        for entry in json.loads(value)["partitions"]:
            path = f"/brokers/topics/{entry['topic']}/partitions/{entry['partition']}/state"
            self._session.set_async(path, state(leader=1))
        self._session.sync("/")
        self._session.delete(ELECTION)
        self._look()


def state(*, leader: int) -> bytes:
    """A partition's state znode."""
    return json.dumps(
        {"leader": leader, "isr": [1, 2], "leader_epoch": 0, "controller_epoch": 1, "version": 1}
    ).encode()


def test_an_election_of_the_whole_cluster_goes_in_pieces_that_zookeeper_takes(zk23: Sandbox) -> None:
    """4,000 partitions with the longest names: as one znode it is refused and costs the connection; ours are all held."""
    assert zk23.zookeeper is not None
    names = [TopicPartition(LONG_NAME, p) for p in range(PARTITIONS)]
    with chroot(zk23.zookeeper, f"/large-{uuid.uuid4().hex[:8]}") as (hosts, theirs):
        topic = f"/brokers/topics/{LONG_NAME}"
        theirs.create(topic, json.dumps({"partitions": {p: [1, 2] for p in range(PARTITIONS)}}).encode(), makepath=True)
        theirs.create(f"{topic}/partitions", b"")
        for at in range(0, PARTITIONS, 250):
            made = theirs.transaction()
            for p in range(at, at + 250):
                made.create(f"{topic}/partitions/{p}", b"")
                made.create(f"{topic}/partitions/{p}/state", state(leader=2))
            assert not [r for r in made.commit() if isinstance(r, Exception)]
        whole = body([{"topic": n.topic, "partition": n.partition} for n in names])
        assert len(whole) > 1024 * 1024
        with pytest.raises((ConnectionLoss, OSError)):
            theirs.create(ELECTION, whole)
        until(lambda: bool(theirs.connected), "the session is back")
        assert theirs.exists(ELECTION) is None

        controller = Controller(theirs)
        ours = ZooKeeper(hosts, Security())
        try:
            outcomes = ZooKeeperWrites(ours).elect_leaders(names)
            assert len(outcomes) == PARTITIONS
            assert all(o.ok for o in outcomes.values())
            assert {s.leader for s in ours.partition_states(names).values()} == {1}
        finally:
            ours.close()
        assert len(controller.pieces) == 2
        assert max(controller.pieces) <= 900_000


def test_znodes_that_belong_to_a_digest_user(zk23: Sandbox) -> None:
    """With its name and password they are read and written; without, or with a wrong one, the person is told what to set."""
    assert zk23.zookeeper is not None
    name = TopicPartition("t", 0)
    with chroot(zk23.zookeeper, f"/owned-{uuid.uuid4().hex[:8]}") as (hosts, theirs):
        acl = [make_digest_acl("kafka", "a secret word", all=True)]
        theirs.add_auth("digest", OWNER)
        for path, value in (
            ("/brokers/ids/1", b"{}"),
            ("/brokers/topics/t", b'{"partitions": {"0": [1, 2]}}'),
            ("/brokers/topics/t/partitions/0/state", state(leader=2)),
        ):
            theirs.create(path, value, acl=acl, makepath=True)
        theirs.set_acls("/admin", acl)
        controller = Controller(theirs)
        for properties in ({}, {"zookeeper.digest.username": "kafka", "zookeeper.digest.password": "another"}):
            unauthorized = ZooKeeper(hosts, Security.from_properties(properties))
            try:
                with pytest.raises(AuthorizationFailed) as failure:
                    unauthorized.partition_states([name])
                assert failure.value.hint is not None
                assert "zookeeper.digest.username" in failure.value.hint
                with pytest.raises(AuthorizationFailed):
                    ZooKeeperWrites(unauthorized).elect_leaders([name])
            finally:
                unauthorized.close()
        known = {"zookeeper.digest.username": "kafka", "zookeeper.digest.password": "a secret word"}
        ours = ZooKeeper(hosts, Security.from_properties(known))
        try:
            assert ZooKeeperWrites(ours).elect_leaders([name])[name].ok
            assert ours.partition_states([name])[name].leader == 1
        finally:
            ours.close()
        assert len(controller.pieces) == 1
