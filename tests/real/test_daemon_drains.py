"""A broker drained on the page of one replica stays empty on real brokers: after a kill, a fail-over and hours of checks."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from tests.real.daemon_process import Daemon, start, until
from tests.real.execution_scene import scene
from tests.waiting import PATIENCE_S, eventually

from ballast.sandbox import Sandbox

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(900)]

TOKEN = "ada-may-act-on-this-cluster"  # noqa: S105 — of this test
PARTITIONS = 12
DRAINED = 4
BALANCE_CHECKS = 10
ATTEMPTS = 10


def fill(sandbox: Sandbox, *, brokers: int = 4) -> None:
    """A topic that is spread evenly over so many brokers."""
    admin = AdminClient({"bootstrap.servers": sandbox.bootstrap_server})
    spread = [[1 + p % brokers, 1 + (p + 1) % brokers] for p in range(PARTITIONS)]
    admin.create_topics([NewTopic("orders", PARTITIONS, replica_assignment=spread)])["orders"].result()
    producer = Producer({"bootstrap.servers": sandbox.bootstrap_server})
    for n in range(PARTITIONS * 20):
        producer.produce("orders", b"x" * 20_000, partition=n % PARTITIONS)
        producer.poll(0)
    assert producer.flush(60) == 0


def post(daemon: Daemon, kind: str, **body: str | int) -> str:
    """What a button of the page sends; the id of the request."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{daemon.port}/api/v1/actions/{kind}",
        data=json.dumps({"by": "Ada", **body}).encode(),
        headers={"Authorization": f"Bearer {TOKEN}"},
    )
    with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:  # noqa: S310
        assert answer.status == 202
        return str(json.load(answer)["request"])


def accepted(leader: Daemon, request: str) -> bool:
    """What the leader answered to this request, as soon as it has."""

    def answer() -> list[dict[str, Any]]:
        return [a for a in leader.status.get("answers", []) if a["request"] == request]

    return bool(until("an answer", answer, [leader])[0]["ok"])


def held(daemon: Daemon) -> float:
    """Replicas on the broker that is drained, as this daemon read it last; -1 before it has."""
    return daemon.metrics.get(f'ballast_broker_replicas{{broker="{DRAINED}"}}', -1)


def shown(daemon: Daemon) -> list[str]:
    """The plans that were asked for and wait, as this page shows them."""
    return [p["id"] for p in daemon.status.get("plans", []) if p["requestedBy"] and p["pendingApproval"]]


def drain_plan(leader: Daemon, standby: Daemon) -> str:
    """Ask on the standby's page until the leader has made the plan; while a run is in progress it refuses."""
    for _ in range(ATTEMPTS):
        until("nothing in flight", lambda: leader.status.get("run", "unknown") is None, [leader])
        if accepted(leader, post(standby, "plan", intent="drain", broker=DRAINED)):
            # A repair that begins meanwhile takes the plan away: it is asked for again.
            eventually(lambda: bool(shown(leader) or leader.status.get("run")), within_s=20)
            if plans := shown(leader):
                return plans[0]
    raise AssertionError(leader.status["answers"])


def balance_checks(daemon: Daemon) -> float:
    """How often it has checked the balance."""
    return daemon.metrics.get('ballast_checks_total{check="balance",result="ok"}', 0)


def test_a_drain_outlasts_a_kill_and_ends_with_a_command(
    own_cluster: Callable[..., Sandbox], daemons: list[Daemon], tmp_path: Path
) -> None:
    """In auto mode; a process that only observes shows it, and what ran before, from the journal that it only reads."""
    sandbox = own_cluster(brokers=4, racks=1)
    fill(sandbox)
    token = tmp_path / "token"
    token.write_text(TOKEN)
    page = {"BALLAST__WEB__TOKEN_FILE": str(token)}
    settings = {"mode": "auto"}
    daemons += [
        start(name, tmp_path, sandbox.bootstrap_server, settings, environment=page) for name in ("pod-0", "pod-1")
    ]
    until("a leader", lambda: sorted(d.role for d in daemons) == ["active", "standby"], daemons)
    leader, standby = sorted(daemons, key=lambda d: d.role)
    until("an even spread", lambda: held(leader) > 0 and balance_checks(leader) > 0, daemons)

    for _ in range(ATTEMPTS):
        # Where the cluster has changed in between, the plan has another name: it is asked for again.
        plan = drain_plan(leader, standby)
        until("the same on the standby's page", lambda: shown(standby) == shown(leader), daemons, 120)
        if accepted(leader, post(standby, "approve", plan=plan)):
            break
    until("the drain on the leader's page", lambda: leader.status.get("drains"), daemons)
    until("an empty broker", lambda: held(leader) == 0, daemons)
    drains = until("the drain on the standby's page", lambda: standby.status.get("drains"), daemons)
    assert [(d["broker"], d["by"]) for d in drains] == [(DRAINED, "Ada")]

    leader.kill()
    until("a fail-over", lambda: standby.role == "active", [standby])
    before = balance_checks(standby)
    until("more checks", lambda: balance_checks(standby) >= before + BALANCE_CHECKS, [standby])
    # What is left of the run of the one before, its elections and throttles, may still be cleaned up.
    until("nothing in flight", lambda: standby.metrics["ballast_run_active"] == 0, [standby])
    assert held(standby) == 0

    watcher = start("watcher", tmp_path, sandbox.bootstrap_server, {"mode": "observe"})
    daemons.append(watcher)
    until("the drain on the observer's page", lambda: watcher.status.get("drains"), daemons)
    assert watcher.role == "observing"
    until("past runs", lambda: json.loads(watcher.get("/api/v1/history")[1])["runs"], daemons)

    with scene(sandbox, tmp_path) as at:
        told = json.loads(at.finish("status", "--output", "json"))
        assert [(d["broker"], d["by"]) for d in told["drains"]] == [(DRAINED, "Ada")]
        assert told["skew"] == []
        for asked in (("balance",), ("expand", str(DRAINED)), ("decommission", "3")):
            # A plan by hand knows of the drain from the journal; where nothing is possible without the broker it says so.
            made = at.ballast("plan", *asked, "--output", "json")
            out, said = made.communicate(timeout=240)
            assert made.returncode in {0, 4}, said
            assert f"drains end {DRAINED}" in said
            assert not [m for m in json.loads(out)["moves"] if DRAINED in m["new"]]
        assert json.loads(at.finish("drains", "--output", "json"))["drains"] == told["drains"]
        at.finish("drains", "end", "3", code=5)
        at.finish("drains", "end", str(DRAINED))
        assert json.loads(at.finish("drains", "--output", "json"))["drains"] == []
        until("its share again", lambda: held(standby) > 0, [standby])
        until("the run's end", lambda: standby.status.get("run", "unknown") is None, [standby])
        assert standby.stop() == 0
        watcher.stop()
    assert not [m for d in daemons for m in d.messages() if m.startswith("A bug")]
