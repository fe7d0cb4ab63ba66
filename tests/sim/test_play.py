"""Playing plans: the simulator's answer against arithmetic, deaths on the way, and what the commands print of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from tests.documents import validated
from tests.unit.cli.test_json_shapes import documented, shape
from tests.unit.core.planner.clusters import cluster

from ballast.cli.main import cli
from ballast.core.cluster import Broker, ClusterState, LogDir, PartitionRow, Topic, build
from ballast.core.plan import Plan
from ballast.core.planner import Expand, Loads, PlannerPolicy, plan
from ballast.core.snapshot.file import Snapshot, dumps
from ballast.errors import Incomplete, UsageError
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.sim.play import BrokerFailure, Playback, play

MB = 1_000_000
QUICK = PlannerPolicy(prove=False)
SLOW = ExecutionPolicy(throttle=10 * MB, measure_s=0.0)


def scene(*, bytes_in: int = 0, min_isr: int = 1) -> tuple[ClusterState, Loads, Plan]:
    """Twelve partitions of 100 MB on three brokers, and a fourth that is to be filled; disks of 4 GB."""
    brokers = tuple(
        Broker(i, rack=f"r{i % 2}", log_dirs=(LogDir(f"/d{i}", 4000 * MB, 3000 * MB),), log_dirs_known=True)
        for i in (1, 2, 3, 4)
    )
    rows = []
    for n in range(12):
        members = ((1, 2), (2, 3), (2, 1), (3, 2))[n % 4]
        rows.append(
            PartitionRow("t", n, members[0], members, members, sizes=(100 * MB,) * 2, log_dirs=(0, 0))
        )  # fmt: skip
    state = build("c", brokers, (Topic("t", min_isr=min_isr),), rows, api=frozenset({"reassign", "reassign-v1"}))
    loads = Loads.from_state(state)
    if bytes_in:
        loads = replace(
            loads, bytes_in_per_s=loads.size_bytes * 0 + bytes_in, known=loads.known | {"bytes-in"}
        )  # fmt: skip
    return state, loads, plan(state, Expand(brokers=frozenset({4})), policy=QUICK)


def played(failure: BrokerFailure | None = None, policy: ExecutionPolicy = SLOW, **kind: int) -> tuple[Playback, Plan]:
    """Play the scene's plan."""
    state, loads, made = scene(**kind)
    return play(state, made, policy, loads=loads, nic_bytes_per_s=100e6, failure=failure), made


def test_time_and_peaks_are_those_of_arithmetic() -> None:
    """The busiest link at the throttle's rate; the new broker holds what was copied, the others less by what they gave."""
    out, made = played()
    assert out.status == "done"
    assert out.moves_ended == len(made.moves)
    assert out.bytes_copied == pytest.approx(made.bytes_moved)
    assert out.min_seconds == pytest.approx(made.bytes_moved / (10 * MB))
    assert out.min_seconds <= out.seconds <= 1.15 * out.min_seconds + 10
    new = next(b for b in out.brokers if b.broker == 4)
    # A gigabyte of each disk is taken by something else, which stays.
    assert new.disk_before == pytest.approx(1000 * MB)
    assert new.disk_peak == pytest.approx(1000 * MB + made.bytes_moved)
    assert new.disk_total == pytest.approx(4000 * MB)
    assert new.in_peak == pytest.approx(10 * MB, rel=0.02)
    assert max(b.out_peak for b in out.brokers) <= 10 * MB * 1.02
    for b in out.brokers:
        given = sum(m.size_bytes for m in made.moves if b.broker in m.removing)
        assert b.broker == 4 or b.disk_after == pytest.approx(b.disk_before - given)


def test_a_cluster_that_tells_topic_ids_is_played_with_them() -> None:
    """A move is bound to its topic's id; with another one the topic counts as deleted and created again, and nothing moves."""
    state, loads, _ = scene()
    told = _with_topic_id(state, "he2c--GnR3CzY6p06qH7ug")
    made = plan(told, Expand(brokers=frozenset({4})), policy=QUICK)
    out = play(told, made, SLOW, loads=loads, nic_bytes_per_s=100e6)
    assert out.status == "done"
    assert out.moves_ended == len(made.moves) > 0


def test_a_plan_of_a_live_cluster_is_played_on_its_snapshot_that_has_no_topic_ids() -> None:
    """``ballast snapshot`` writes no topic ids; the plan's are taken."""
    state, loads, _ = scene()
    made = plan(_with_topic_id(state, "he2c--GnR3CzY6p06qH7ug"), Expand(brokers=frozenset({4})), policy=QUICK)
    out = play(state, made, SLOW, loads=loads, nic_bytes_per_s=100e6)
    assert out.status == "done"
    assert out.moves_ended == len(made.moves) > 0


def test_a_play_names_moves_that_do_not_end_well_and_why() -> None:
    """A topic that was deleted and created again is not moved; the events say so, a few of a kind."""
    state, loads, _ = scene()
    made = plan(_with_topic_id(state, "he2c--GnR3CzY6p06qH7ug"), Expand(brokers=frozenset({4})), policy=QUICK)
    out = play(_with_topic_id(state, "46YmiAJAT1yCTWrZfsTHbA"), made, SLOW, loads=loads, nic_bytes_per_s=100e6)
    assert out.status == "incomplete"
    told = [sentence for _, sentence in out.events if "topic-recreated" in sentence]
    assert 0 < len(told) <= 3
    assert "t-" in told[0]


def _with_topic_id(state: ClusterState, topic_id: str) -> ClusterState:
    return replace(state, topics=tuple(replace(t, topic_id=topic_id) for t in state.topics))


def test_what_producers_write_meanwhile_is_copied_too() -> None:
    """More bytes than the plan says, and it takes longer; the usual traffic stands beside the copies."""
    quiet, _ = played()
    busy, made = played(bytes_in=MB // 2)
    assert busy.status == "done"
    assert busy.bytes_copied > made.bytes_moved
    assert busy.seconds > quiet.seconds
    assert next(b for b in busy.brokers if b.broker == 2).in_usual == pytest.approx(12 * MB / 2)


def test_a_broker_that_fails_and_stays_down_leaves_the_run_waiting() -> None:
    """The play ends all the same, names the time of the failure, and says what hurts."""
    out, made = played(BrokerFailure(brokers=frozenset({4})), replace(SLOW, moves_in_per_broker=1))
    assert out.status == "waiting"
    assert out.failed_at_s is not None
    assert 0.4 * out.min_seconds < out.failed_at_s < 0.7 * out.min_seconds
    assert 0 < out.moves_ended < len(made.moves)
    assert out.worst is not None
    assert out.after is not None
    assert len(out.after.offline) == 0
    assert len(out.after.under_replicated) > 0


def test_a_broker_that_comes_back_lets_the_run_end() -> None:
    """It costs about the time that the broker was away."""
    out, _ = played(BrokerFailure(brokers=frozenset({4}), at_s=10.0, restart_after_s=60.0))
    assert out.status == "done"
    assert out.failed_at_s == pytest.approx(10.0, abs=1.0)
    assert out.seconds > out.min_seconds + 30
    assert out.after is not None
    assert len(out.after.under_replicated) == 0


def test_partitions_that_refuse_writes_are_named() -> None:
    """With a minimum of two, whatever loses one of two replicas refuses ``acks=all``."""
    out, _ = played(BrokerFailure(brokers=frozenset({2}), at_s=5.0), min_isr=2)
    assert len(out.troubled["under_min_isr"]) >= 6
    assert out.troubled["offline"] == []


def test_the_same_play_twice_is_the_same() -> None:
    """To the second and the byte."""
    first, second = played()[0], played()[0]
    assert (first.seconds, first.bytes_copied, first.events) == (second.seconds, second.bytes_copied, second.events)


def written(folder: Path) -> tuple[Path, Path]:
    """The scene's snapshot and plan as files."""
    from ballast.core.plan.file import dumps as plan_text

    state, loads, made = scene()
    snapshot, plan_file = folder / "case.json", folder / "plan.json"
    snapshot.write_text(dumps(Snapshot(state, loads)))
    plan_file.write_text(plan_text(made))
    return snapshot, plan_file


def run(*words: object) -> str:
    """``ballast …``; what it prints on stdout."""
    done = CliRunner().invoke(cli, [str(w) for w in words], catch_exceptions=False, standalone_mode=False)
    return done.stdout


def test_simulate_prints_the_documented_json(tmp_path: Path) -> None:
    """``Simulation`` and ``Loss``, key by key."""
    snapshot, plan_file = written(tmp_path)
    words = [
        "simulate",
        plan_file,
        "--snapshot",
        snapshot,
        "--throttle",
        "10MB",
        "--kill-broker",
        4,
        "--output",
        "json",
    ]
    (played,) = validated(run(*words))
    assert shape(played) == shape(documented("Simulation"))
    (lost,) = validated(run("simulate", "--kill-rack", "r0", "--snapshot", snapshot, "--output", "json"))
    assert lost["brokersLost"] == [2, 4]
    assert len(lost["offline"]) == 0
    assert lost["underReplicated"] == 12
    assert _keys(lost) == _keys(documented("Loss"))


def _keys(document: object) -> object:
    assert isinstance(document, dict)
    return list(document), list(document["brokers"][0]), list(document["repair"])


def test_simulate_tells_a_person(tmp_path: Path) -> None:
    """The time, the peaks and the brokers that are down, in words."""
    snapshot, plan_file = written(tmp_path)
    text = run("simulate", plan_file, "--snapshot", snapshot, "--throttle", "10MB", "--kill-broker", 4, "--at", "10s")
    assert "still be waiting" in text
    assert "Broker 4 fails after" in text
    both = ("--kill-broker", 3, "--kill-broker", 4, "--at", "10s")
    assert "Brokers 3, 4 fail after" in run("simulate", plan_file, "--snapshot", snapshot, "--throttle", "10MB", *both)
    text = run("simulate", "--kill-broker", 2, "--snapshot", snapshot)
    assert text.startswith("Without broker 2: 0 partitions are offline")
    assert "To repair it without them, copy 12 replicas" in text
    settings = tmp_path / "ballast.yaml"
    settings.write_text("balance: {cordoned: [1, 3, 4, 5, 6]}")
    text = run("simulate", "--kill-broker", 2, "--snapshot", snapshot, "--config", settings)
    assert "copy 12 replicas" not in text


@pytest.mark.parametrize(("killed", "code"), [((), 0), (("--kill-broker", 4, "--at", "10s"), Incomplete.exit_code)])
def test_the_exit_code_says_whether_the_whole_plan_is_executed(
    tmp_path: Path, killed: tuple[object, ...], code: int
) -> None:
    """For scripts that play a plan before they apply it."""
    snapshot, plan_file = written(tmp_path)
    words = ["simulate", plan_file, "--snapshot", snapshot, "--throttle", "10MB", *killed]
    done = CliRunner().invoke(cli, [str(w) for w in words], catch_exceptions=False, standalone_mode=False)
    assert done.return_value == code


def test_plan_simulate_plays_the_plan_it_made(tmp_path: Path) -> None:
    """``plan … --simulate`` says what the plan is and how it goes at ``--rate``."""
    snapshot, _ = written(tmp_path)
    text = run("plan", "expand", 4, "--snapshot", snapshot, "--simulate", "--rate", "10MB/s")
    assert "expand 4: " in text
    assert " moves (" in text
    assert "The plan is executed in" in text


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["simulate"], "Nothing to simulate is named"),
        (["simulate", "PLAN", "--snapshot", "SNAP", "--kill-broker", "4", "--at", "soon"], "is not a time"),
        (["simulate", "PLAN", "--snapshot", "SNAP", "--kill-broker", "4", "--at", "150%"], "not a fraction"),
        (["simulate", "PLAN", "--snapshot", "SNAP", "--network", "0"], "carries nothing"),
        (["simulate", "--snapshot", "SNAP", "--kill-broker", "44"], "no broker 44"),
        (["simulate", "--snapshot", "PLAN", "--kill-broker", "4"], "not a Ballast snapshot"),
    ],
)
def test_a_slip_is_refused_in_a_sentence(tmp_path: Path, words: list[str], sentence: str) -> None:
    """Nothing is played."""
    snapshot, plan_file = written(tmp_path)
    names = {"PLAN": str(plan_file), "SNAP": str(snapshot)}
    with pytest.raises((UsageError, click.UsageError), match=sentence):
        run(*(names.get(w, w) for w in words))


def test_a_large_cluster_is_played_by_what_moves() -> None:
    """Ten thousand partitions that stand still cost nothing: only those that move are simulated."""
    from ballast.core.plan import Move

    state = cluster(*[(1 + n % 5, 1 + (n + 1) % 5) for n in range(10_000)], brokers=6, sizes=(MB,) * 10_000)
    state = replace(state, api=frozenset({"reassign"}))
    moves = tuple(Move("t", n, state.target(n), (6, state.target(n)[1]), size_bytes=MB) for n in range(20))
    made = Plan(intent="test", cluster_id="c", fingerprint="", moves=moves)
    out = play(state, made, SLOW, loads=Loads.from_state(state), nic_bytes_per_s=100e6)
    assert out.status == "done"
    assert any("9,980 partitions" in s for s in out.assumptions)
    assert next(b for b in out.brokers if b.broker == 1).disk_before == pytest.approx(4000 * MB)


def test_a_scenario_of_ones_own_is_run_by_the_command(tmp_path: Path) -> None:
    """As ``ballast snapshot --scenario`` writes it; an expectation that fails is an exit code and a sentence."""
    from ballast.cli.commands.snapshot import SCENARIO

    snapshot, _ = written(tmp_path)
    file = tmp_path / "case.txt"
    file.write_text(SCENARIO.format(file=snapshot.name))
    assert "case.txt: done" in run("simulate", "--scenario", file)
    file.write_text(SCENARIO.format(file=snapshot.name) + "expect moves<=0\n")
    with pytest.raises(Incomplete, match=r"line 6: expected moves<=0, and it is"):
        run("simulate", "--scenario", file)


def test_one_network_holds_for_the_simulated_brokers_and_for_auto(tmp_path: Path) -> None:
    """What ``--network`` says bounds the simulated copies, and the rates of ``auto`` as it would in ``ballast apply``."""
    snapshot, plan_file = written(tmp_path)
    words = ("simulate", plan_file, "--snapshot", snapshot, "--output", "json")
    slow, fast = (validated(run(*words, "--network", rate))[0] for rate in ("4MB/s", "400MB/s"))
    assert slow["seconds"] > fast["seconds"]
    assert max(b["copyInPeakBytesPerS"] for b in slow["brokers"]) <= 4 * MB
    fixed = validated(run(*words, "--throttle", "10MB", "--network", "4MB/s"))[0]
    assert max(b["copyInPeakBytesPerS"] for b in fixed["brokers"]) <= 4 * MB
