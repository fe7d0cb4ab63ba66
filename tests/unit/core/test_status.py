"""What ``status`` tells is counted as Kafka counts, and a figure that is not known is never a zero."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from typing import Any

from rich.console import Console

from ballast.cli.commands.status.view import document as status_document
from ballast.cli.commands.status.view import draw
from ballast.core.cluster import (
    NO_LEADER,
    UNKNOWN,
    Broker,
    ClusterState,
    ConfigValue,
    Gap,
    LogDir,
    PartitionRow,
    Topic,
    TopicPartition,
    build,
)
from ballast.core.cluster.balancers import other_balancers
from ballast.core.leadership.limits import CLUSTER, SETTINGS, Limit
from ballast.core.planner.cross_rack.policy import CrossRackPolicy
from ballast.core.planner.policy import PlannerPolicy
from ballast.core.status import ClusterStatus, cluster_status, unhealthy_partitions
from ballast.core.throttles.stale import find_throttles

GIB = 1 << 30
DIRS = (LogDir("/d", total_bytes=100 * GIB, usable_bytes=40 * GIB),)


def as_json(status: ClusterStatus) -> dict[str, Any]:
    """What a program reads."""
    return status_document(status).model_dump(mode="json")


def broker(number: int, **fields: object) -> Broker:
    """A live broker with a disk of 100 GiB, 60 of them used."""
    given: dict[str, object] = {"rack": f"r{number}", "host": f"b{number}", "port": 9092, "log_dirs": DIRS}
    return Broker(number, log_dirs_known=True, **(given | fields))  # type: ignore[arg-type]


def state(*rows: PartitionRow, **facts: object) -> ClusterState:
    """Three brokers, one topic with min ISR 2."""
    brokers = tuple(broker(i) for i in (1, 2, 3))
    given: dict[str, object] = {"api": frozenset({"kraft"})}
    return build("c", brokers, (Topic("t", min_isr=2),), list(rows), **(given | facts))  # type: ignore[arg-type]


def row(number: int, leader: int, replicas: tuple[int, ...], isr: tuple[int, ...], **more: object) -> PartitionRow:
    """A partition of the topic."""
    return PartitionRow("t", number, leader, replicas, isr, **more)  # type: ignore[arg-type]


def test_problems_are_counted_as_kafkas_metrics_count() -> None:
    """Offline, under min ISR and under-replicated each hold exactly the partitions that Kafka would count."""
    found = unhealthy_partitions(
        state(
            row(0, 1, (1, 2, 3), (1, 2, 3)),
            row(1, 1, (1, 2, 3), (1, 2)),
            row(2, 1, (1, 2, 3), (1,)),
            row(3, NO_LEADER, (1, 2, 3), ()),
        )
    )
    names = [TopicPartition("t", n) for n in range(4)]
    assert found.under_replicated == tuple(names[1:])
    assert found.under_min_isr == tuple(names[2:])
    assert found.offline == (names[3],)


def test_a_replica_being_added_does_not_make_a_partition_unhealthy() -> None:
    """Mid-move, the copy that is not yet in sync is expected (``Partition.isUnderReplicated``)."""
    moving = row(0, 1, (3, 1, 2), (1, 2), adding=(3,), removing=(2,))
    assert not unhealthy_partitions(state(moving)).any


def test_min_isr_is_never_more_than_the_replicas_there_are() -> None:
    """One replica with a min ISR of two is judged by one (KIP-966's effective min ISR)."""
    assert not unhealthy_partitions(state(row(0, 1, (1,), (1,)))).under_min_isr


def test_an_unknown_min_isr_is_not_kept() -> None:
    """Partitions of such a topic that lack a replica are named; where every replica is in sync, none can be under it."""
    brokers = tuple(broker(i) for i in (1, 2, 3))
    rows = [row(0, 1, (1, 2, 3), (1, 2, 3)), row(1, 1, (1, 2, 3), (1, 2)), row(2, 1, (3, 1, 2), (1, 2), adding=(3,))]
    told = [PartitionRow("u", 0, 1, (1, 2, 3), (1, 2))]
    found = unhealthy_partitions(build("c", brokers, (Topic("t"), Topic("u", min_isr=2)), [*rows, *told]))
    assert found.min_isr_unknown == (TopicPartition("t", 1),)
    assert found.under_min_isr == ()
    assert found.under_replicated == (TopicPartition("t", 1), TopicPartition("u", 0))


def test_topics_being_deleted_are_not_unhealthy() -> None:
    """A leaderless partition of a dying topic is named as dying, not as offline."""
    dying = build("c", (broker(1),), (Topic("t", deleting=True),), [row(0, NO_LEADER, (1,), ())])
    assert not unhealthy_partitions(dying).any
    assert cluster_status(dying).deleting_topics == ("t",)


def test_brokers_are_counted_with_their_replicas_and_leaders() -> None:
    """Replicas, leaders, preferred leaders, imbalance, bytes and disk per broker."""
    status = cluster_status(
        state(
            row(0, 2, (1, 2), (1, 2), sizes=(GIB, GIB)),
            row(1, 2, (1, 2), (1, 2), sizes=(GIB, GIB)),
            row(2, 2, (2, 3), (2, 3), sizes=(5, 6)),
        )
    )
    one, two, three = status.brokers
    assert (one.replicas, one.leaders, one.preferred_leaders, one.not_led) == (2, 0, 2, 2)
    assert (two.replicas, two.leaders, two.preferred_leaders, two.not_led) == (3, 3, 1, 0)
    assert (one.imbalance_ratio, two.imbalance_ratio, three.imbalance_ratio) == (1.0, 0.0, 0.0)
    assert status.over_threshold == (1,)
    assert one.replica_bytes == 2 * GIB
    assert one.disk_used_bytes == 60 * GIB
    assert three.replica_bytes == 6


def test_the_broker_with_the_lowest_id_and_empty_replicas_count_as_all_others() -> None:
    """A size of nothing is known; replicas that are out of sync or offline are counted on their own broker."""
    brokers = tuple(broker(i) for i in (0, 1, 2))
    rows = [
        row(0, 0, (0, 1, 2), (0, 2), sizes=(0, UNKNOWN, 7)),
        row(1, 0, (0, 1), (0,), sizes=(5, 3), offline=(1,)),
        row(2, 2, (2,), (2,), sizes=(UNKNOWN,)),
    ]
    status = cluster_status(build("c", brokers, (Topic("t"),), rows))
    assert [b.leaders for b in status.brokers] == [2, 0, 1]
    assert [b.replicas for b in status.brokers] == [2, 2, 2]
    assert [b.replica_bytes for b in status.brokers] == [5, 3, 7]
    assert [b.unknown_sizes for b in status.brokers] == [0, 1, 1]
    assert [b.out_of_sync for b in status.brokers] == [0, 2, 0]
    assert [b.offline_replicas for b in status.brokers] == [0, 1, 0]


def test_a_broker_that_told_no_sizes_is_not_judged_by_bytes() -> None:
    """It is by everything that is counted."""
    brokers = (broker(1), broker(2), Broker(3, host="b3", port=9092))
    rows = [row(n, 1, (1, 2, 3), (1, 2, 3), sizes=(GIB, GIB, UNKNOWN)) for n in range(6)]
    judged = {r.resource: set(r.shares) for r in cluster_status(build("c", brokers, (Topic("t"),), rows)).ranges}
    assert judged["replicas"] == judged["preferred-leaders"] == {1, 2, 3}
    assert judged["disk"] == {1, 2}


def test_the_threshold_is_the_one_that_is_given_or_the_clusters_own() -> None:
    """Broker 1 leads none of its two partitions; half of broker 2's are led by others."""
    rows = [row(n, leader, replicas, (1, 2)) for n, (leader, replicas) in enumerate([(2, (1, 2))] * 2 + [(1, (2, 1))])]
    rows.append(row(3, 2, (2, 1), (1, 2)))
    own = {"leader.imbalance.per.broker.percentage": ConfigValue("60", "STATIC_BROKER_CONFIG")}
    picture = state(*rows, api=frozenset({"zookeeper"}), broker_configs={1: own})
    status = cluster_status(picture)
    assert (status.threshold, status.over_threshold) == (Limit(60, CLUSTER), (1,))
    assert cluster_status(picture, Limit(40, SETTINGS)).over_threshold == (1, 2)
    assert cluster_status(picture, Limit(100, SETTINGS)).over_threshold == ()


def test_version_and_mode_are_told() -> None:
    """A cluster whose controllers speak no KRaft has ZooKeeper."""
    kraft = cluster_status(state(kafka_version="4.3"))
    assert (kraft.kafka_version, kraft.mode) == ("4.3", "kraft")
    assert cluster_status(state(api=frozenset({"zookeeper"}))).mode == "zookeeper"


def test_why_traffic_between_racks_is_unknown_is_told_where_settings_ask_for_it() -> None:
    """Without a word of it in the settings nothing is missed."""
    asked = PlannerPolicy(cross_rack=CrossRackPolicy(price_per_gib=0.02))
    picture, rackless = state(), replace(state(), brokers=(Broker(1),))
    for cluster in (picture, rackless):
        assert cluster_status(cluster).cross_rack_unknown is None
    assert cluster_status(picture, policy=asked).cross_rack_unknown == "what producers write is not known"
    assert cluster_status(rackless, policy=asked).cross_rack_unknown == "broker 1 names no rack"


def test_each_move_in_flight_is_told_with_its_own_copies() -> None:
    """What is copied is what the new replicas hold, and the whole is the leader's size for each; neither is guessed."""
    moves = [
        row(0, 1, (1, 2), (1, 2), sizes=(500, 500)),
        row(1, 1, (2, 3, 1), (1,), adding=(2, 3), removing=(1,), sizes=(4, 6, 10)),
        row(2, 1, (2, 3, 1), (1,), adding=(2, 3), removing=(1,), sizes=(4, UNKNOWN, 10)),
        row(3, 1, (2, 1), (1,), adding=(2,), sizes=(0, 0)),
        row(4, 1, (2, 3, 1), (1,), adding=(2, 3), sizes=(1, 2, UNKNOWN)),
        row(5, NO_LEADER, (2, 1), (1,), adding=(2,), sizes=(1, 1)),
        row(6, 1, (1, 2), (1, 2), removing=(2,), sizes=(9, UNKNOWN)),
        row(7, 1, (1, 2), (1, 2), sizes=(500, 500)),
    ]
    told = cluster_status(state(*moves)).moving
    assert [m.name.partition for m in told] == [1, 2, 3, 4, 5, 6]
    assert [m.copied_bytes for m in told] == [10, UNKNOWN, 0, 3, 1, 0]
    assert [m.total_bytes for m in told] == [20, 20, 0, UNKNOWN, UNKNOWN, 0]
    assert (told[0].replicas, told[0].adding, told[0].removing) == ((2, 3, 1), (2, 3), (1,))


def test_a_cluster_without_partitions_is_well() -> None:
    """Nothing to name."""
    assert not unhealthy_partitions(build("c", (broker(1),), (), [])).any


def test_what_a_broker_did_not_tell_is_unknown_everywhere() -> None:
    """An unreachable broker's bytes and disk are null in JSON and a question mark in the table, and the gap is told."""
    rows = [row(0, 1, (1, 2), (1,), sizes=(GIB, UNKNOWN))]
    gap = Gap.of_broker(2, "log dirs", "the broker is down")
    silent = build("c", (broker(1), Broker(2, alive=False)), (Topic("t"),), rows, gaps=(gap,))
    document = as_json(cluster_status(silent))
    entry = document["brokers"][1]
    assert entry["replicaBytes"] is entry["diskUsedBytes"] is entry["diskTotalBytes"] is entry["host"] is None
    assert document["gaps"] == [
        {"subject": "broker 2", "broker": 2, "missing": "log dirs", "detail": "the broker is down"}
    ]
    assert document["needsAttention"] is True
    text = drawn(silent, width=200)
    line = next(line for line in text.splitlines() if line.split()[:2] == ["2", "down"])
    assert "?" in line
    assert "0 B" not in line
    assert "Missing: log dirs of broker 2" in text


def test_a_broker_that_does_not_answer_needs_attention_at_once() -> None:
    """The cluster lists a killed broker as alive until its session ends; that it refused us is enough."""
    gap = Gap.of_broker(2, "log dirs", "Connection refused.")
    brokers = (broker(1), Broker(2, host="b2", port=9092, reachable=False))
    killed = build("c", brokers, (Topic("t"),), [row(0, 1, (1, 2), (1, 2))], gaps=(gap,))
    status = cluster_status(killed)
    assert (status.down_brokers, status.unreachable_brokers) == ((), (2,))
    assert status.needs_attention
    assert [b["reachable"] for b in as_json(status)["brokers"]] == [True, False]
    assert as_json(status)["leavesIsrAfterMs"] is None
    lag_time = {"replica.lag.time.max.ms": ConfigValue("4000", "STATIC_BROKER_CONFIG")}
    assert cluster_status(replace(killed, broker_configs={1: lag_time})).leaves_isr_after_s == 6.0
    text = drawn(killed, width=200)
    assert "unreachable" in text
    assert "No offline or under-replicated partitions." not in text


def test_a_log_dir_with_an_error_needs_attention_and_only_a_failed_disk_is_called_one() -> None:
    """It is named in the closing lines with the broker's own code; UNKNOWN_SERVER_ERROR says nothing about the disk."""
    failed, other = LogDir("/d1", error="KAFKA_STORAGE_ERROR"), LogDir("/d2", error="UNKNOWN_SERVER_ERROR")
    brokers = (broker(1, log_dirs=(failed,)), broker(2, log_dirs=(other,)), broker(3))
    unhealthy = build("c", brokers, (Topic("t"),), [row(0, 1, (1, 2), (1, 2))])
    status = cluster_status(unhealthy)
    assert status.bad_log_dirs == ((1, failed), (2, other))
    assert (failed.failed, other.failed) == (True, False)
    assert status.needs_attention
    text = drawn(unhealthy, width=200)
    closing = text[text.index("Leader imbalance") - 400 :]
    assert "/d1 has failed (KAFKA_STORAGE_ERROR)" in closing
    assert "/d2 reports an error" in closing
    assert "UNKNOWN_SERVER_ERROR" in closing
    assert next(line for line in text.splitlines() if line.split()[:1] == ["2"]).count("failed") == 0
    assert "No offline or under-replicated partitions." not in text


def test_a_broker_that_was_emptied_and_stopped_needs_no_attention() -> None:
    """KRaft goes on naming it until it is unregistered: it is mentioned, and not counted as a loss."""
    rows = [row(0, 1, (1, 2), (1, 2))]
    picture = build("c", (broker(1), broker(2), broker(4, alive=False)), (Topic("t"),), rows)
    status = cluster_status(picture)
    assert (status.down_brokers, status.departed_brokers) == ((), (4,))
    assert not status.needs_attention
    assert picture.missing == frozenset()
    text = drawn(picture, width=200)
    assert (
        "Broker 4 down and hosts no replicas: unregister what is gone permanently (kafka-cluster.sh unregister" in text
    )
    assert "ballast plan evacuate" not in text
    assert "No offline or under-replicated partitions." in text
    lost = cluster_status(build("c", (broker(1), broker(2, alive=False)), (Topic("t"),), rows))
    assert (lost.down_brokers, lost.departed_brokers) == ((2,), ())
    assert lost.needs_attention


def test_an_empty_broker_beside_balanced_leaders_is_named() -> None:
    """Nothing is unhealthy and every preferred leader leads, and broker 3 has nothing of it all."""
    rows = [row(n, 1 + n % 2, (1 + n % 2, 2 - n % 2), (1, 2)) for n in range(40)]
    status = cluster_status(build("c", (broker(1), broker(2), broker(3)), (Topic("t"),), rows))
    assert not status.unhealthy.any
    assert status.over_threshold == ()
    skewed = {r.resource: r.outside for r in status.skew}
    assert {"replicas", "preferred-leaders"} <= set(skewed)
    assert all(3 in outside for outside in skewed.values())
    assert status.needs_attention
    assert as_json(status)["skew"] == [{"resource": r, "brokersOutOfRange": list(b)} for r, b in skewed.items()]


def test_balanced_is_said_where_it_is_known() -> None:
    """In one line, as long as nothing is out of range or broken and every broker has told what it holds."""
    rows = [row(n, 1 + n % 3, (1 + n % 3, 1 + (n + 1) % 3), (1, 2, 3), sizes=(GIB, GIB)) for n in range(30)]
    even = build("c", (broker(1), broker(2), broker(3)), (Topic("t"),), rows)
    assert "Balanced: every broker is within its range of disk, replicas, preferred leaders." in drawn(even, width=200)
    away = build("c", (broker(1), broker(2), broker(3, reachable=False)), (Topic("t"),), rows)
    assert "Balanced" not in drawn(away, width=200)
    failed = LogDir("/d1", error="KAFKA_STORAGE_ERROR")
    broken = build("c", (broker(1), broker(2), broker(3, log_dirs=(*DIRS, failed))), (Topic("t"),), rows)
    assert "Balanced" not in drawn(broken, width=200)
    unsized = build("c", (broker(1), broker(2), broker(3)), (Topic("t"),), [*rows, row(30, 1, (1, 2), (1, 2))])
    assert "Balanced" not in drawn(unsized, width=200)
    uneven = build("c", (broker(1), broker(2), broker(3)), (Topic("t"),), [r for r in rows if r.leader == 1])
    assert "Balanced" not in drawn(uneven, width=200)


def drawn(picture: ClusterState, width: int) -> str:
    """The status as printed on a terminal of this width."""
    screen = Console(width=width, record=True, file=io.StringIO())
    draw(cluster_status(picture), screen, limit=10)
    return screen.export_text()


def test_a_narrow_terminal_gets_the_columns_that_matter() -> None:
    """The lesser columns go, nothing of the rest is cut."""
    picture = state(row(0, 2, (1, 2), (1, 2)))
    wide, narrow = drawn(picture, 200), drawn(picture, 72)
    assert "HOST" in wide
    assert "RACK" in wide
    header = next(line for line in narrow.splitlines() if line.startswith("BROKER"))
    assert "IMBALANCE" in header
    assert "HOST" not in header
    assert "…" not in "".join(line for line in narrow.splitlines() if line.lstrip()[:1].isdigit())


def test_sentences_break_between_words_on_a_terminal_and_stay_whole_in_a_pipe() -> None:
    """The terminal itself would break them in the middle of a word; a program reads lines."""
    found = cluster_status(state(row(0, 2, (1, 2), (1, 2))))
    shown: dict[bool, list[str]] = {}
    for terminal in (True, False):
        out = io.StringIO()
        screen = Console(file=out, width=80, force_terminal=terminal, color_system=None, _environ={"TERM": "xterm"})
        draw(found, screen, limit=10)
        shown[terminal] = out.getvalue().splitlines()
    assert max(map(len, shown[True])) <= 80
    whole = next(line for line in shown[False] if line.startswith("Leader imbalance"))
    assert len(whole) > 80
    assert " ".join(line.strip() for line in shown[True]).count(whole) == 1


def test_a_name_that_is_too_wide_breaks_and_is_not_cut() -> None:
    """On a terminal narrower than what must be shown, lines break and every character is there."""
    picture = build("c", (broker(1),), (topic_throttle("0:1"),), [row(0, 1, (1,), (1,))])
    lines = drawn(picture, 40).splitlines()
    begin = next(i for i, line in enumerate(lines) if line.startswith("THROTTLE"))
    assert not any("…" in line for line in lines)
    settings = "".join(
        line[len("THROTTLE ON") + 2 :].split("  ")[0].strip() for line in lines[begin + 1 :] if line.strip()
    )
    assert "leader.replication.throttled.replicas" in settings


def test_the_json_survives_json() -> None:
    """No NumPy scalar and no tuple key hides in the document."""
    rows = [row(0, 1, (3, 1, 2), (1, 2), adding=(3,), removing=(2,), sizes=(5, 10, 10))]
    document = as_json(cluster_status(state(*rows)))
    again = json.loads(json.dumps(document))
    assert again["kind"] == "Status"
    assert again["apiVersion"] == "ballast/v1"
    assert again["reassigning"] == [
        {
            "topic": "t",
            "partition": 0,
            "replicas": [3, 1, 2],
            "adding": [3],
            "removing": [2],
            "copiedBytes": 5,
            "totalBytes": 10,
        }
    ]


def topic_throttle(value: str) -> Topic:
    """A topic whose leader-side list has this value."""
    return Topic("t", configs={"leader.replication.throttled.replicas": ConfigValue(value, "DYNAMIC_TOPIC_CONFIG")})


def test_a_throttle_without_a_move_looks_stale() -> None:
    """Lists of partitions that stand still and rates that no move uses are named; those in use are not."""
    moving = row(0, 1, (3, 1, 2), (1, 2), adding=(3,), removing=(2,))
    still = row(1, 1, (1, 2), (1, 2))
    rate = {"leader.replication.throttled.rate": ConfigValue("1000", "DYNAMIC_BROKER_CONFIG")}
    brokers = tuple(broker(i) for i in (1, 2, 3, 4))

    def verdicts(topic: Topic, *rows: PartitionRow) -> list[tuple[str, bool]]:
        picture = build("c", brokers, (topic,), list(rows), broker_configs={1: rate, 4: rate})
        return [(t.resource, t.stale) for t in find_throttles(picture)]

    assert verdicts(topic_throttle("0:1,0:2"), moving, still) == [
        ("topic t", False),
        ("broker 1", False),
        ("broker 4", True),
    ]
    assert verdicts(topic_throttle("1:1"), moving, still)[0] == ("topic t", True)
    assert verdicts(topic_throttle("0:1"), row(0, 1, (1, 2), (1, 2))) == [
        ("topic t", True),
        ("broker 1", True),
        ("broker 4", True),
    ]


def test_what_a_person_wrote_down_is_not_stale() -> None:
    """A star over a topic and a rate in the broker's own file are meant."""
    static = {"follower.replication.throttled.rate": ConfigValue("1000", "STATIC_BROKER_CONFIG")}
    picture = build("c", (broker(1),), (topic_throttle("*"),), [row(0, 1, (1,), (1,))], broker_configs={1: static})
    assert [t.stale for t in find_throttles(picture)] == [False, False]


def test_others_that_balance_are_told_from_their_marks() -> None:
    """The controller unless switched off, Cruise Control by its topics, Confluent by its setting, MSK by its addresses."""
    off = {"auto.leader.rebalance.enable": ConfigValue("false", "STATIC_BROKER_CONFIG")}

    def found(picture: ClusterState) -> set[str]:
        return {o.id for o in other_balancers(picture)}

    assert found(state(broker_configs={1: off, 2: off, 3: off})) == set()
    assert found(state(broker_configs={1: off, 2: {}, 3: off})) == {"controller"}
    assert found(state()) == set()
    cruise = build("c", (broker(1),), (Topic("__CruiseControlMetrics"),), [])
    assert found(cruise) == {"cruise-control"}
    confluent = {"confluent.balancer.enable": ConfigValue("true", "STATIC_BROKER_CONFIG")}
    assert found(state(broker_configs={1: off | confluent})) == {"confluent-balancer"}
    msk = build("c", (broker(1, host="b-1.orders.abc.c2.kafka.eu-west-1.amazonaws.com"),), (), [])
    assert found(msk) == {"msk"}
