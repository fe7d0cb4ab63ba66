"""Snapshot files: what is read is what was written, nothing secret or named gets in, and damage is named."""

from __future__ import annotations

import json
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from tests.unit.core.planner.clusters import clusters

from ballast.core.cluster import (
    UNKNOWN,
    Broker,
    ClusterState,
    ConfigValue,
    LogDir,
    PartitionRow,
    Partitions,
    Topic,
    build,
)
from ballast.core.plan.fingerprint import fingerprint
from ballast.core.planner import Balance, Loads, plan
from ballast.core.snapshot.anonymise import anonymise_snapshot
from ballast.core.snapshot.file import HINT, Snapshot, dumps, loads
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
            assert a.dtype == b.dtype, f.name


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


def measured(state: ClusterState) -> Loads:
    """Every figure of every partition another one; what consumers read of the last partition is not known."""
    rates = (np.arange(len(state.partitions)) + 1) * 100
    return replace(
        Loads.from_state(state),
        bytes_in_per_s=rates,
        bytes_out_per_s=rates * 2,
        bytes_read_per_s=np.append(rates[:-1] * 3, UNKNOWN),
        bytes_written_per_s=rates * 4,
        cpu_leader=rates + 1,
        cpu_follower=rates + 2,
        known=frozenset({"disk", "bytes-in", "bytes-out", "cpu"}),
        assumptions=("CPU is a share of bytes.",),
    )


def described_cluster() -> ClusterState:
    """The named cluster with all that a file can hold, and nothing that it leaves out."""
    state = named_cluster()
    rate = "leader.replication.throttled.rate"
    brokers = [replace(b, host="", port=0, controller=b.id == 3, alive=b.id != 4) for b in state.brokers]
    topics = [
        replace(
            t, topic_id=None, deleting=t.internal, configs={k: v for k, v in t.configs.items() if v.value != HIDDEN}
        )
        for t in state.topics
    ]
    return replace(
        state,
        taken_at_ms=1_700_000_000_000,
        kafka_version="4.1",
        brokers=(*brokers, Broker(7, alive=False)),
        topics=tuple(topics),
        broker_configs={
            1: {rate: ConfigValue("5000", "DYNAMIC_BROKER_CONFIG")},
            2: {"replica.selector.class": ConfigValue("RackAware", "STATIC_BROKER_CONFIG")},
        },
        cluster_configs={rate: ConfigValue("9000", "DYNAMIC_DEFAULT_BROKER_CONFIG")},
    )


def same_loads(first: Loads, second: Loads, order: list[int] | None = None) -> None:
    """Every figure of both is the same, where the second has the partitions in this order."""
    for f in fields(Loads):
        a, b = getattr(first, f.name), getattr(second, f.name)
        if isinstance(a, np.ndarray):
            assert (a if order is None else a[order]).tolist() == b.tolist(), f.name
            assert a.dtype == b.dtype, f.name


def test_everything_that_planning_needs_survives() -> None:
    """A move in flight, offline replicas, log dirs, throttles, the replica selector and rates."""
    state = described_cluster()
    known = measured(state)
    back = loads(dumps(Snapshot(state, known)))
    assert not back.anonymised
    assert loads(dumps(Snapshot(state, known, anonymised=True))).anonymised
    same(state, back.state)
    for f in fields(ClusterState):
        if f.name not in ("partitions", "broker_configs", "gaps"):
            assert getattr(back.state, f.name) == getattr(state, f.name), f.name
    assert {b: found for b, found in back.state.broker_configs.items() if found} == state.broker_configs
    same_loads(known, back.loads)
    assert (back.loads.known, back.loads.assumptions) == (known.known, known.assumptions)


def test_a_broker_that_only_a_replica_list_names_is_down() -> None:
    """Its metadata was missing when the snapshot was taken."""
    state = named_cluster()
    document = json.loads(dumps(Snapshot(state, Loads.from_state(state))))
    document["brokers"] = [b for b in document["brokers"] if b["id"] != 4]
    assert loads(json.dumps(document)).state.brokers[-1] == Broker(4, alive=False)


def test_the_order_of_a_file_does_not_matter() -> None:
    """Brokers, topics and partitions are read by name; a refusal names the place in the file."""
    state = described_cluster()
    document = json.loads(dumps(Snapshot(state, measured(state))))
    for key in ("brokers", "topics", "partitions"):
        document[key].reverse()
    back = loads(json.dumps(document))
    same(state, back.state)
    same_loads(measured(state), back.loads)
    document["partitions"][0]["isr"] = [77]
    with pytest.raises(UsageError, match=r"partitions\[0\]\.isr"):
        loads(json.dumps(document))


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


def test_all_but_the_names_survives_anonymising() -> None:
    """Each partition keeps its replicas, sizes, log dirs and rates; each broker its rack's members, its disks and throttles."""
    state = described_cluster()
    largest = np.repeat(state.partitions.topic == 2, np.diff(state.partitions.start)) & (
        state.partitions.size_bytes > 0
    )
    state = replace(
        state,
        brokers=tuple(replace(b, host="kafka7.internal.example", port=9092) for b in state.brokers),
        topics=tuple(replace(t, topic_id="acme-prod-id") for t in state.topics),
        partitions=replace(state.partitions, size_bytes=state.partitions.size_bytes * np.where(largest, 100, 1)),
    )
    known = measured(state)
    made = anonymise_snapshot(Snapshot(state, known))
    sizes = known.size_bytes.tolist()
    order = [sizes.index(size) for size in made.loads.size_bytes.tolist()]
    same_loads(known, made.loads, order)
    assert order == [0, 2, 3, 1]
    assert made.loads.known == known.known
    assert made.loads.assumptions == ("The names in this snapshot are made up.",)
    assert (made.state.cluster_id, made.anonymised) == ("anonymous", True)
    p, q = state.partitions, made.state.partitions
    slots = [slot for row in order for slot in range(p.start[row], p.start[row + 1])]
    for name in ("replica", "in_sync", "adding", "removing", "offline", "size_bytes", "log_dir"):
        assert getattr(p, name)[slots].tolist() == getattr(q, name).tolist(), name
    assert p.leader[order].tolist() == q.leader.tolist()
    for name in ("taken_at_ms", "kafka_version", "api", "broker_configs", "cluster_configs"):
        assert getattr(made.state, name) == getattr(state, name), name
    racks = {"dc-oslo-row-4": "rack-1", "dc-oslo-row-5": "rack-2", None: None}
    for old, new in zip(state.brokers, made.state.brokers, strict=True):
        dirs = [
            replace(d, path=f"/data/{i}", error=None if d.error is None else "failed")
            for i, d in enumerate(old.log_dirs)
        ]
        assert new == replace(old, rack=racks[old.rack], host="", port=0, log_dirs=tuple(dirs))
    topics = {"payroll-2026": "topic-1", "merger-talks": "topic-2", "__consumer_offsets": "__topic-3"}
    renamed = sorted((replace(t, name=topics[t.name], topic_id=None) for t in state.topics), key=lambda t: t.name)
    assert list(made.state.topics) == renamed


def test_rates_that_were_not_measured_stay_unknown() -> None:
    """Neither the file nor new names make them known."""
    state = named_cluster()
    for made in (
        Snapshot(state, Loads.from_state(state)),
        anonymise_snapshot(Snapshot(state, Loads.from_state(state))),
    ):
        back = loads(dumps(made)).loads
        assert (len(back.bytes_read_per_s), len(back.bytes_written_per_s)) == (0, 0)
        assert back.known == made.loads.known


@pytest.mark.parametrize("resource", ["bytes-in", "bytes-out", "cpu"])
def test_one_rate_may_be_known_without_the_others(resource: str) -> None:
    """What is not known weighs nothing, as without a measurement."""
    state, plain = described_cluster(), Loads.from_state(described_cluster())
    some = replace(measured(state), known=frozenset({"disk", resource}), bytes_read_per_s=plain.bytes_read_per_s)
    back = loads(dumps(Snapshot(state, some))).loads
    assert back.known == some.known
    for name, of in (("bytes_in_per_s", "bytes-in"), ("bytes_out_per_s", "bytes-out"), ("cpu_leader", "cpu")):
        expected = some if of == resource else plain
        assert getattr(back, name).tolist() == getattr(expected, name).tolist(), name


def test_a_broker_of_one_log_dir_keeps_its_replicas_there() -> None:
    """The first log dir is number 0, which is not the same as none."""
    broker = Broker(0, log_dirs=(LogDir("/a"),), log_dirs_known=True)
    state = build("c", (broker,), (Topic("t"),), [PartitionRow("t", 0, 0, (0,), (0,), sizes=(1,), log_dirs=(0,))])
    assert loads(dumps(Snapshot(state, Loads.from_state(state)))).state.partitions.log_dir.tolist() == [0]


def test_of_two_topics_of_one_size_the_one_with_more_partitions_is_first() -> None:
    """New names follow size, then count, so that no old order survives."""
    rows = [PartitionRow("a", 0, 0, (0,), (0,), sizes=(6,))]
    rows += [PartitionRow("b", n, 0, (0,), (0,), sizes=(3,)) for n in (0, 1)]
    state = build("c", (Broker(0),), (Topic("a"), Topic("b"), Topic("none")), rows)
    made = anonymise_snapshot(Snapshot(state, Loads.from_state(state))).state
    assert [(t.name, int((made.partitions.topic == n).sum())) for n, t in enumerate(made.topics)] == [
        ("topic-1", 2), ("topic-2", 1), ("topic-3", 0)
    ]  # fmt: skip


@pytest.mark.slow
@settings(max_examples=30)
@given(clusters())
def test_an_anonymised_cluster_is_as_hard_to_balance(state: ClusterState) -> None:
    """The same loads by broker before, so the same resources are outside their bands."""
    made = anonymise_snapshot(Snapshot(state, Loads.from_state(state)))
    before = [plan(s, Balance()).summary["brokers"] for s in (state, loads(dumps(made)).state)]
    assert [b["before"] for b in before[0]] == [b["before"] for b in before[1]]


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
        (lambda d: d["partitions"][3].update(sizes=[1]), r"partitions\[3\].sizes: should be one whole number"),
        (lambda d: d["partitions"][0].update(sizes=[1, 2]), r"partitions\[0\].sizes: should be one whole number"),
        (lambda d: d["topics"].append(d["topics"][0]), "case.json: topics: should be a list without repeats"),
        (lambda d: d["partitions"][0].update(replicas=[1, 1]), r"partitions\[0\].replicas: .*different broker ids"),
        (
            lambda d: d["brokers"][0].pop("log_dirs") and d["partitions"][2].update(log_dirs=[0, 0]),
            r"partitions\[2\].log_dirs: broker 1 has no log dir number 0",
        ),
        (
            lambda d: d["partitions"][2].update(log_dirs=[2, 0]),
            r"partitions\[2\].log_dirs: broker 1 has no log dir number 2",
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
    with pytest.raises(UsageError, match=sentence) as refused:
        loads(json.dumps(document), source="case.json")
    assert refused.value.hint == ("Make it again with this version." if "version" in sentence else HINT)


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
    with pytest.raises(UsageError, match=sentence) as refused:
        loads((head + instead + tail).encode("latin-1"), source="case.json")
    assert refused.value.hint == HINT


def test_a_colon_in_a_name_is_no_key() -> None:
    """Whether a key is there twice is told by the text's colons first; names and notes may have some of their own."""
    state = build("a:b", (Broker(0, rack="r:1"),), (Topic("t:1"),), [PartitionRow("t:1", 0, 0, (0,), (0,), sizes=(5,))])
    text = dumps(Snapshot(state, Loads.from_state(state)))
    for form in (text, text.encode(), text.replace("a:b", "a\\u003ab")):
        assert dumps(loads(form)) == text
    with pytest.raises(UsageError, match="api: this key is there twice"):
        loads(text.replace('"api": []', '"api": [], "api": []'))
