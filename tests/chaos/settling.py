"""After the faults: what must come about, in bounded time, and then stay as it is."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import wait
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import confluent_kafka as ck
from confluent_kafka.admin import AdminClient
from tests.chaos.cluster import ChaosSandbox
from tests.chaos.daemons import SETTINGS, Daemons
from tests.chaos.faults import Faults
from tests.chaos.person import INSISTS_S, Person
from tests.chaos.strays import Strays
from tests.chaos.verdicts import Judge, Violated, violated

from ballast.errors import BallastError
from ballast.executor.journal.records import load_runs
from ballast.executor.machine.run import Now, Run
from ballast.wiring.cluster import open_cluster
from ballast.wiring.journal import journal_of

WHOLE_WITHIN_S: Final = 300.0
RESTORED_WITHIN_S: Final = 120.0
CHECK_S: Final = float(SETTINGS["intervals"]["balance_s"])
"""Between two checks of the load, each of which could begin a run."""
LASTING_S: Final = 2.5 * CHECK_S
"""A verdict may be older than the last change; two checks of the load later it is not."""


@dataclass
class Settling:
    """The way back to rest."""

    sandbox: ChaosSandbox
    daemons: Daemons
    person: Person
    faults: Faults
    admin: AdminClient
    tell: Callable[[str], None]
    still_checks: int
    """Checks of the load in which nothing may happen."""
    balanced_within_s: float
    figures: dict[str, Any] = field(default_factory=dict)
    strays: Strays = field(init=False)

    def __post_init__(self) -> None:
        self.strays = Strays(self.sandbox, self.tell)

    def settle(self) -> None:
        """Each in turn; ``Violated`` says what did not come about."""
        self._deeds()
        for who in ("a", "b"):
            if who not in self.daemons.live:
                self.daemons.begin(who)
        self._until(Judge.WHOLE, "every replica in sync and nothing moving", self._is_whole, WHOLE_WITHIN_S)
        self._until(
            Judge.BALANCED,
            "balanced, at rest, no throttles to restore",
            self._is_balanced,
            self.balanced_within_s,
            lasting_s=LASTING_S,
        )
        for judge in (Judge.REPLICAS, Judge.SETTINGS, Judge.THROTTLES):
            self._until(judge, f"{judge} as a person had them", partial(self._contradicts, judge), RESTORED_WITHIN_S)
        self._still()

    def _deeds(self) -> None:
        """A person finishes what they began: the cluster is well, so it takes it."""
        last, ends_s = self.faults.deeds.submit(lambda: None), time.monotonic() + 2 * INSISTS_S
        while not last.done():
            if time.monotonic() >= ends_s:
                violated(Judge.WHOLE, "a person waits for the cluster in vain")
            self._revive()
            wait([last], timeout=1)
        self._revive()

    def _revive(self) -> None:
        """Start what has ended: a broker that returns before ZooKeeper has forgotten its last session ends again."""
        self.strays.clear()
        for node in (*self.sandbox.spec.controller_ids, *self.sandbox.broker_ids):
            self.sandbox.start_broker(node, wait=False)

    def _until(
        self, judge: Judge, what: str, why_not: Callable[[], str], within_s: float, *, lasting_s: float = 0.0
    ) -> None:
        """Poll until nothing has been in the way for so long."""
        began_s = free_s = time.monotonic()
        while True:
            reason = self._patient(why_not)
            now_s = time.monotonic()
            if not reason and now_s - free_s >= lasting_s:
                break
            if reason:
                if now_s - began_s >= within_s:
                    violated(judge, f"after {within_s:.0f} s without faults, not {what}: {reason}")
                free_s = now_s
            self._alive()
            self._revive()
            time.sleep(1)
        self.figures[f"{what} after"] = f"{free_s - began_s:.0f} s"
        self.tell(f"{what}: after {free_s - began_s:.0f} s")

    @staticmethod
    def _patient(why_not: Callable[[], str]) -> str:
        try:
            return why_not()
        except (BallastError, ck.KafkaException) as failure:
            return f"no answer: {failure}"

    def _alive(self) -> None:
        for ended in self.daemons.ended_by_themselves():
            raise Violated(ended)

    def _is_whole(self) -> str:
        """What is not in sync yet; a throttled follower of a move that goes on may be."""
        out = [
            f"{topic.topic}-{p.id} leader {p.leader} replicas {p.replicas} in sync {p.isrs}"
            for topic in self.admin.list_topics(timeout=15).topics.values()
            for p in topic.partitions.values()
            if p.leader < 0 or len(p.isrs) < len(p.replicas)
        ]
        if out and not self.person.cluster.reassignments():
            return f"{len(out)} partitions are not whole: {out[0]}"
        return ""

    def _is_balanced(self) -> str:
        return self._daemon_works() or self._cluster_is_uneven()

    def _daemon_works(self) -> str:
        """What the one that acts has still to do, in its own words."""
        leaders = self.daemons.leaders()
        if len(leaders) != 1:
            return f"{len(leaders)} daemons act: {[(d.name, d.role) for d in self.daemons.live.values()]}"
        status = leaders[0].status
        if run := status.get("run"):
            return f"run {run['id']} ({run['intent']}) goes on: {run['detail']}"
        if status.get("throttlesToRestore") != 0:
            return f"{status.get('throttlesToRestore')} throttles are owed"
        if not self.faults.journal_watched.is_set():
            return "the journal has not been made again"
        balance = status.get("balance") or {}
        if balance.get("verdict") != "balanced":
            permissions = {s["action"]: s["code"] for s in status.get("permissions", [])}
            return f"the load is {balance.get('verdict')}: {balance.get('detail')}; {permissions}"
        return ""

    def _cluster_is_uneven(self) -> str:
        """What the cluster and the journal say, whatever the daemon does."""
        if moving := self.person.cluster.reassignments():
            return f"{sorted(map(str, moving))} move"
        if still_open := [r.id for r in runs_in_journal(self.sandbox).values() if not r.ended]:
            return f"runs {still_open} are open"
        state = self.person.cluster.snapshot(log_dirs=False, configs=False)
        led = [(state.replicas(row)[0], int(state.partitions.leader[row])) for row in range(len(state.partitions))]
        for broker in self.sandbox.broker_ids:
            preferred = [leader == broker for first, leader in led if first == broker]
            # As Kafka counts: up to a tenth may be led elsewhere.
            if 10 * preferred.count(False) > len(preferred):
                return f"of {len(preferred)} partitions that prefer broker {broker}, {preferred.count(False)} are led elsewhere"
        return self._is_whole()

    def _contradicts(self, judge: Judge) -> str:
        return "; ".join(wrong.what for wrong in self.person.contradictions() if wrong.judge == judge)

    def _still(self) -> None:
        """It stays as it is: no new run, no move, no other setting, for so many checks."""
        still_s = self.still_checks * CHECK_S + 5
        insist = self.person.insist
        read_runs = partial(runs_in_journal, self.sandbox)
        before, places = set(insist("read runs", read_runs)), insist("read places", self._places)
        ends_s = time.monotonic() + still_s
        while time.monotonic() < ends_s:
            moving = insist("list reassignments", self.person.cluster.reassignments)
            if moving:
                violated(Judge.STILL, f"it was balanced, and then something moved: {sorted(map(str, moving))}")
            time.sleep(2)
        fresh = [f"{r.id} ({r.intent})" for r in insist("read runs", read_runs).values() if r.id not in before]
        if fresh:
            violated(Judge.STILL, f"it was balanced, and within {still_s:.0f} s new runs began: {fresh}")
        if insist("read places", self._places) != places:
            violated(Judge.STILL, "it was balanced, and leaders or replicas changed")
        for wrong in insist("compare", self.person.contradictions):
            raise Violated(wrong)
        self._alive()
        self.figures["still for"] = f"{still_s:.0f} s"
        self.tell(f"still for {still_s:.0f} s")

    def _places(self) -> dict[str, tuple[int, list[int]]]:
        topics = self.admin.list_topics(timeout=15).topics.values()
        return {f"{t.topic}-{p.id}": (p.leader, list(p.replicas)) for t in topics for p in t.partitions.values()}


def runs_in_journal(sandbox: ChaosSandbox) -> dict[str, Run]:
    """Every run in the journal of its cluster."""
    with open_cluster(bootstrap_server=sandbox.inner_server) as opened:
        journal = journal_of(opened)
        try:
            return load_runs(journal.read(), Now(0, 0.0))
        finally:
            journal.close()
