"""Wrong things are planted on real brokers, and the judges find them: records of an unknown process, and a Ballast with a fault of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import uuid
from pathlib import Path

import confluent_kafka as ck
import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from tests.chaos.planted import PLANTS
from tests.chaos.transfers import Transfers
from tests.chaos.verdicts import Judge
from tests.containers.traffic import PAYLOAD, Traffic
from tests.leash import leashed
from tests.waiting import until

from ballast.sandbox import Sandbox

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(1200)]

ENOUGH = 20
PARTITIONS = 2
STRANGE = 10**9
"""No writer comes so far."""
RUN_WITHIN_S = 900


@pytest.fixture
def topic(kraft: Sandbox) -> str:
    """One of the test's own."""
    name = f"planted-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": kraft.bootstrap_server})
    admin.create_topics([NewTopic(name, PARTITIONS, 1)])[name].result(60)
    return name


def intrude(server: str, topic: str, *values: bytes) -> None:
    """Another producer writes these into the first partition."""
    producer = ck.Producer({"bootstrap.servers": server, "acks": "all"})
    for value in values:
        producer.produce(topic, value, partition=0)
    assert producer.flush(60) == 0


def cut(server: str, topic: str, before: int) -> None:
    """Another client removes the first records of the first partition, read or not."""
    admin = AdminClient({"bootstrap.servers": server})
    for removed in admin.delete_records([ck.TopicPartition(topic, 0, before)]).values():
        removed.result(60)


def judge_traffic(server: str, topic: str, harm: str) -> None:
    """Write for a while, do harm on the way, and judge."""
    traffic = Traffic(server, topic, PARTITIONS, records_per_s=100)
    with traffic.running():
        until(lambda: len(traffic.ledgers[0].read) >= ENOUGH, "records have come back")
        match harm:
            case "doubled":
                intrude(server, topic, b"3" + PAYLOAD)
            case "reordered":
                intrude(server, topic, b"%d" % STRANGE + PAYLOAD)
            case "lost":
                cut(server, topic, ENOUGH // 2)
        read = len(traffic.ledgers[0].read)
        until(lambda: len(traffic.ledgers[0].read) >= read + ENOUGH, "more records have come back")


def judge_transfers(server: str, topic: str, harm: str) -> None:
    """The same with transactions."""
    transfers = Transfers(server, topic, PARTITIONS)
    with transfers.running():
        until(lambda: len(transfers.outcomes.committed) > 2, "transactions have committed")
        if harm == "torn":
            transfers.outcomes.unknown.add(STRANGE)
            intrude(server, topic, b"%d" % STRANGE)
        else:
            cut(server, topic, 2)


def test_traffic_without_harm_is_right(kraft: Sandbox, topic: str) -> None:
    """The same without any harm."""
    judge_traffic(kraft.bootstrap_server, topic, "none")


@pytest.mark.parametrize(
    ("harm", "told"),
    [
        ("doubled", "3 is at offsets 3 and"),
        ("reordered", f"{STRANGE} at offset [0-9]+ was never written"),
        ("lost", "the log no longer holds what was read of it"),
    ],
)
def test_a_harmed_log_is_found(kraft: Sandbox, topic: str, harm: str, told: str) -> None:
    """A record twice, one that the producer did not write, records that are gone."""
    with pytest.raises(AssertionError, match=told):
        judge_traffic(kraft.bootstrap_server, topic, harm)


def test_a_torn_transaction_is_found(kraft: Sandbox, topic: str) -> None:
    """A number whose outcome the producer was not told stands in one partition alone."""
    with pytest.raises(AssertionError, match=rf"{STRANGE} is in partitions \[0\] alone"):
        judge_transfers(kraft.bootstrap_server, topic, "torn")


def test_a_lost_transaction_is_found(kraft: Sandbox, topic: str) -> None:
    """What was committed is not there any more."""
    with pytest.raises(AssertionError, match="partition 0: the log no longer holds its first records"):
        judge_transfers(kraft.bootstrap_server, topic, "lost")


def test_a_ballast_that_takes_the_lock_too_early_ends_a_run_of_chaos(tmp_path: Path) -> None:
    """Exit code 1, the judge by name, and everything that is needed to see why in one folder."""
    plant, kept = "lock-taken-early", tmp_path / "kept"
    command = [sys.executable, "-m", "tests.chaos", "--seed", "5", "--minutes", "0.3", "--plant", plant]
    command += ["--keep", str(kept), "--only", "topic-config"]
    done = subprocess.run(
        leashed(*command),
        capture_output=True,
        text=True,
        timeout=RUN_WITHIN_S,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert PLANTS[plant].found_by == Judge.ONE_WRITER
    assert f"VIOLATED: {Judge.ONE_WRITER}: " in done.stdout, done.stdout + done.stderr
    (folder,) = kept.iterdir()
    assert f"evidence: {folder}" in done.stdout
    assert folder.joinpath("violations.txt").read_text().startswith(f"{Judge.ONE_WRITER}: ")
    assert "SEED=5" in folder.joinpath("story.txt").read_text()
    assert json.loads(folder.joinpath("schedule.json").read_text())["seed"] == 5
    assert json.loads(folder.joinpath("figures.json").read_text())["records acknowledged"] > 0
    assert "topic numbered" in json.loads(folder.joinpath("person.json").read_text())
    assert json.loads(folder.joinpath("cluster.json").read_text()).keys() == {"settings", "moving", "snapshot"}
    records = [json.loads(line) for line in folder.joinpath("journal.jsonl").read_text().splitlines()]
    assert len({r["value"]["id"] for r in records if r["key"] == "lease" and r["value"]}) == 2
    logs = {log.name: log.stat().st_size for log in (folder / "logs").iterdir()}
    assert logs.keys() >= {"node-1.log", "node-9001.log"}  # A broker that nothing happens to logs nothing.
    assert logs["ballast-a-1.log"]
    assert logs["ballast-b-2.log"]
