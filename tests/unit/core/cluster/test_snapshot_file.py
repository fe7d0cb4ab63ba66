"""Snapshot files: what is read is what was written, nothing secret or named gets in, and damage is named."""

from __future__ import annotations

import json
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from tests.unit.core.planner.clusters import cluster, clusters

from ballast.core.cluster import Broker, ClusterState, ConfigValue, LogDir, PartitionRow, Partitions, Topic, build
from ballast.core.cluster.anonymise import anonymise_snapshot
from ballast.core.cluster.fingerprint import fingerprint
from ballast.core.cluster.snapshot_file import Snapshot, dumps, loads
from ballast.core.planner import Balance, Loads, plan
from ballast.core.planner.growth import measure_growth
from ballast.errors import UsageError

HIDDEN = "hunter2-and-more"
NAMES = ("payroll-2026", "merger-talks", "dc-oslo-row-4", "kafka7.internal.example", "/mnt/nvme-acme", "acme-prod")


def named_cluster() -> ClusterState:
    """Everything that has a name, a move in flight, a failed log dir, throttles and a config that is a secret."""
    brokers = tuple(
        Broker(
            i,
            rack="dc-oslo-row-4" if i < 3 else "dc-oslo-row-5",
            host="kafka7.internal.example",
            port=9092,
            log_dirs=(LogDir("/mnt/nvme-acme/a", 1000, 400), LogDir("/mnt/nvme-acme/b", 1000, 300, error="acme-prod broke")),
            log_dirs_known=True,
        )
        for i in (1, 2, 3, 4)
    )  # fmt: skip
    secret = {"sasl.jaas.config": ConfigValue(HIDDEN, "DYNAMIC_BROKER_CONFIG")}
    rate = {"leader.replication.throttled.rate": ConfigValue("5000", "DYNAMIC_BROKER_CONFIG")}
    topics = (
        Topic(
            "merger-talks",
            topic_id="acme-prod-id",
            min_isr=2,
            configs={
                "min.insync.replicas": ConfigValue("2", "DYNAMIC_TOPIC_CONFIG"),
                "confluent.placement": ConfigValue(HIDDEN, "DYNAMIC_TOPIC_CONFIG"),
            },
        ),
        Topic("payroll-2026"),
        Topic("__consumer_offsets", internal=True),
    )
    rows = [
        PartitionRow("payroll-2026", 0, 1, (1, 3), (1, 3), sizes=(70, 70), log_dirs=(1, 0)),
        PartitionRow("payroll-2026", 1, -1, (2, 4), (4,), sizes=(50, -1)),
        PartitionRow("merger-talks", 0, 3, (3, 1, 2), (3, 2), adding=(1,), removing=(2,), sizes=(500, 20, 500)),
        PartitionRow("__consumer_offsets", 0, -2, (4,), (4,), sizes=(9,)),
    ]
    state = build(
        "acme-prod", brokers, topics, rows, broker_configs={1: secret | rate}, api=frozenset({"reassign"})
    )  # fmt: skip
    offline = np.array([b == 2 for b in state.partitions.replica.tolist()])
    return replace(state, partitions=replace(state.partitions, offline=offline))


def same(
    first: ClusterState, second: ClusterState, *, but: tuple[str, ...] = ("lag", "future_size_bytes", "future_log_dir")
) -> None:
    """Every column of both is the same."""
    for f in fields(Partitions):
        if f.name not in but:
            a, b = getattr(first.partitions, f.name), getattr(second.partitions, f.name)
            assert a.tolist() == b.tolist(), f.name


@pytest.mark.slow
@settings(max_examples=40)
@given(clusters())
def test_what_is_read_is_what_was_written(state: ClusterState) -> None:
    """Columns, brokers and fingerprint survive, and the same plan comes of both."""
    text = dumps(Snapshot(state, Loads.from_state(state)))
    back = loads(text)
    same(state, back.state)
    assert fingerprint(back.state) == fingerprint(state)
    assert back.state.brokers == state.brokers
    assert dumps(back) == text
    assert plan(back.state, Balance(), loads=back.loads).moves == plan(state, Balance()).moves


def test_everything_that_planning_needs_survives() -> None:
    """A move in flight, offline replicas, log dirs, throttles and rates."""
    state = named_cluster()
    rates = np.arange(len(state.partitions)) * 100
    known = replace(
        Loads.from_state(state),
        bytes_in_per_s=rates,
        bytes_out_per_s=rates * 2,
        cpu_leader=rates + 1,
        cpu_follower=rates + 2,
        known=frozenset({"disk", "bytes-in", "bytes-out", "cpu"}),
    )
    back = loads(dumps(Snapshot(state, known)))
    same(state, back.state)
    assert [b.log_dirs for b in back.state.brokers] == [b.log_dirs for b in state.brokers]
    assert back.state.broker_configs[1]["leader.replication.throttled.rate"].value == "5000"
    assert back.loads.known == known.known
    assert back.loads.bytes_out_per_s.tolist() == known.bytes_out_per_s.tolist()
    assert back.loads.cpu_follower.tolist() == known.cpu_follower.tolist()


def test_no_host_and_no_secret_is_written() -> None:
    """Of configs only the named few; of brokers no address."""
    state = named_cluster()
    text = dumps(Snapshot(state, Loads.from_state(state)))
    assert HIDDEN not in text
    assert "kafka7" not in text


def test_no_name_survives_anonymising() -> None:
    """Topics, racks, folders, cluster id, topic ids and error texts are gone; sizes and lists are the same."""
    state = named_cluster()
    made = anonymise_snapshot(Snapshot(state, Loads.from_state(state)))
    text = dumps(made)
    assert not [name for name in (*NAMES, HIDDEN, "oslo", "acme", "merger", "payroll", "consumer") if name in text]
    assert json.loads(text)["anonymised"] is True
    rows = {
        tuple(zip(s.replicas(r), s.partitions.size_bytes[s.partitions.start[r] : s.partitions.start[r + 1]], strict=True))
        for s in (state, made.state)
        for r in range(len(s.partitions))
    }  # fmt: skip
    assert len(rows) == len(state.partitions)
    largest = made.state.topics[int(made.state.partitions.topic[np.argmax(made.loads.size_bytes)])]
    assert (largest.name, largest.min_isr) == ("topic-1", 2)
    assert [t.name for t in made.state.topics if t.internal] == ["__topic-3"]
    offline = made.state.partitions.replica[made.state.partitions.offline]
    assert set(offline.tolist()) == {2}


@pytest.mark.slow
@settings(max_examples=30)
@given(clusters())
def test_an_anonymised_cluster_is_as_hard_to_balance(state: ClusterState) -> None:
    """The same loads by broker before, so the same resources are outside their bands."""
    made = anonymise_snapshot(Snapshot(state, Loads.from_state(state)))
    before = [plan(s, Balance()).summary["brokers"] for s in (state, loads(dumps(made)).state)]
    assert [b["before"] for b in before[0]] == [b["before"] for b in before[1]]


def test_growth_is_measured_at_the_leaders() -> None:
    """What the leader's log grew by; retention reads as zero, a partition that cannot be told as the median."""
    first = cluster((1, 2), (2, 1), (1, 2), (2, 1), brokers=2, sizes=(100, 100, 100, 100))
    second = cluster((1, 2), (2, 1), (1, 2), (2, 1), (1, 2), brokers=2, sizes=(300, 500, 50, 500, 7))
    found = measure_growth(first, second, seconds=10.0)
    assert found.bytes_in_per_s.tolist() == [20, 40, 0, 40, 30]
    assert "bytes-in" in found.known
    assert any("1 partitions could not be measured" in s for s in found.assumptions)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda d: d.update(format="else"), "is not a Ballast snapshot"),
        (lambda d: d.update(version=9), "version 9"),
        (lambda d: d["brokers"][0].update(id="one"), r"case.json: brokers\[0\].id: Input should be a valid integer"),
        (lambda d: d["brokers"].append(d["brokers"][0]), "case.json: brokers: should be a list without repeats"),
        (
            lambda d: d["partitions"].append(d["partitions"][0]),
            "case.json: partitions: should be a list without repeats",
        ),
        (lambda d: d["partitions"][0].update(topic="other"), r"partitions\[0\].topic: 'other' is not among 'topics'"),
        (lambda d: d["partitions"][0].update(isr=[77]), r"partitions\[0\].isr: should be some of its replicas"),
        (lambda d: d["partitions"][0].update(sizes=[1, 2]), r"partitions\[0\].sizes: should be one whole number"),
        (lambda d: d["partitions"][0].update(replicas=[1, 1]), r"partitions\[0\].replicas: .*different broker ids"),
        (
            lambda d: d["partitions"][2].update(log_dirs=[5, 0]),
            r"partitions\[2\].log_dirs: broker 1 has no log dir number 5",
        ),
        (lambda d: d["partitions"][0].update(cpu=[5]), r"partitions\[0\].cpu: List should have at least 2 items"),
        (lambda d: d["partitions"][0].update(isr=[3, 3]), r"partitions\[0\].isr: .*different broker ids"),
        (lambda d: d["partitions"][1].update(offline=[9]), r"partitions\[1\].offline: should be some of its replicas"),
        (lambda d: d["partitions"][0].update(log_dirs=[]), r"partitions\[0\].log_dirs: should be one whole number"),
        (lambda d: d["partitions"][0].update(log_dirs=[0, 0]), r"partitions\[0\].log_dirs: should be one whole number"),
        (
            lambda d: d["partitions"][0].update(sizes=[True]),
            r"partitions\[0\].sizes\[0\]: Input should be a valid integer",
        ),
        (lambda d: d["partitions"][0].update(leader=1.0), r"partitions\[0\].leader: Input should be a valid integer"),
        (lambda d: d["partitions"][1].update(leader=-3), r"partitions\[1\].leader: .* greater than or equal to -2"),
        (lambda d: d["partitions"][3].update({"in": -1}), r"partitions\[3\].in: .* greater than or equal to 0"),
        (lambda d: d["partitions"][0].update(lag=[1]), r"partitions\[0\].lag: Extra inputs are not permitted"),
        (lambda d: d["partitions"][0].pop("leader"), r"partitions\[0\].leader: Field required"),
        (lambda d: d["brokers"][1]["log_dirs"][0].update(size=1), r"brokers\[1\].log_dirs\[0\].size: Extra inputs"),
        (lambda d: d.update(brokres=[]), "brokres: Extra inputs are not permitted"),
        (lambda d: d.update(partitions={}), "partitions: Input should be a valid"),
        (lambda d: d["topics"][0].update(configs={"a": 1}), r"topics\[0\].configs.a: Input should be a valid string"),
    ],
)
def test_a_damaged_file_is_refused_with_the_place(change: object, sentence: str) -> None:
    """One sentence: where, and what belongs there."""
    state = named_cluster()
    document = json.loads(dumps(Snapshot(state, Loads.from_state(state))))
    change(document)  # type: ignore[operator]
    with pytest.raises(UsageError, match=sentence):
        loads(json.dumps(document), source="case.json")


TOO_DEEP = "[" * 5000 + "]" * 5000


@pytest.mark.parametrize(
    ("written", "instead", "sentence"),
    [
        ('"leader":3', '"leader":3,"leader":3', r"partitions\[1\].leader: this key is there twice"),
        ('"leader":3', '"leader":3,"l\\u0065ader":1', r"partitions\[1\].leader: this key is there twice"),
        ('"cordoned":false', '"cordoned":false,"cordoned":false', r"brokers\[0\].log_dirs\[0\].cordoned: this key is"),
        ('"taken_at_ms"', '"topics": [], "taken_at_ms"', "case.json: topics: this key is there twice"),
        ('"min.insync.replicas":"2"', '"b":"\\u003a","a":"","a":""', r"topics\[1\].configs.a: this key is there twice"),
        ('"leader":3', f'"leader":{2**31}', r"partitions\[1\].leader: .* less than or equal to 2147483647"),
        ('"leader":3', f'"leader":{10**400}', r"partitions\[1\].leader: "),
        ('"leader":3', f'"leader":{"9" * 5000}', "case.json"),
        ('"leader":3', '"leader":1e3', r"partitions\[1\].leader: Input should be a valid integer"),
        ('"sizes":[500', f'"sizes":[{2**63}', r"partitions\[1\].sizes\[0\]: .* less than or equal to"),
        ('"leader":3', '"leader":NaN', "case.json is not JSON|leader: Input should be a valid integer"),
        ('"leader":3', f'"leader":{TOO_DEEP}', "case.json is not JSON: recursion limit exceeded"),
        ('"acme-prod"', '"acme\\ud800prod"', "case.json is not JSON: .*hex escape"),
        ("acme-prod", "acme\xffprod", "case.json is not JSON: invalid unicode"),
        ("}\n", "", "case.json is not JSON: EOF"),
    ],
)
def test_a_text_that_readers_could_take_for_different_things_is_refused(
    written: str, instead: str, sentence: str
) -> None:
    """Repeated keys, numbers that fit no column, nesting without end, texts that are none."""
    state = named_cluster()
    text = dumps(Snapshot(state, Loads.from_state(state)))
    assert written in text
    head, _, tail = text.rpartition(written) if not instead else text.partition(written)
    with pytest.raises(UsageError, match=sentence):
        loads((head + instead + tail).encode("latin-1"), source="case.json")


def test_a_colon_in_a_name_is_no_key() -> None:
    """Whether a key is there twice is told by the text's colons first; names and notes may have some of their own."""
    state = build("a:b", (Broker(0, rack="r:1"),), (Topic("t:1"),), [PartitionRow("t:1", 0, 0, (0,), (0,), sizes=(5,))])
    text = dumps(Snapshot(state, Loads.from_state(state)))
    for form in (text, text.encode(), text.replace("a:b", "a\\u003ab")):
        assert dumps(loads(form)) == text
    with pytest.raises(UsageError, match="api: this key is there twice"):
        loads(text.replace('"api": []', '"api": [], "api": []'))
