"""The plan that balances leaders: moves, elections, and what it says of itself."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace

import pytest
from click.testing import CliRunner
from tests.documents import validated

from ballast.cli.cluster_options import ClusterOptions
from ballast.cli.commands.leaders import leaders
from ballast.cli.commands.plan.command import EXIT_PENDING, plan
from ballast.core.cluster import Broker, ClusterState, PartitionRow, Topic, TopicPartition, build
from ballast.core.leadership.plan import balance, leader_plan
from ballast.core.plan import Reason
from ballast.core.plan.file import dumps, loads
from ballast.core.plan.fingerprint import fingerprint
from ballast.core.stock.files import parse_reassignment
from ballast.errors import UsageError

BROKERS = tuple(Broker(b, f"rack-{b}", host="h") for b in (1, 2, 3))


def cluster(rows: list[PartitionRow] | None = None) -> ClusterState:
    """Nine partitions that broker 1 leads and all brokers hold."""
    some = [PartitionRow("t", i, 1, (1, 2, 3), (1, 2, 3), sizes=(i + 1,) * 3) for i in range(9)]
    rows = some if rows is None else rows
    return build("c", BROKERS, tuple(Topic(n) for n in {r.topic for r in rows}), rows)


def test_counts_are_balanced_and_leaders_elected() -> None:
    """Six replica list changes, each followed by an election; the plan survives its file."""
    state = cluster()
    found = balance(state, "counts")
    assert (found.max_before, found.found.maximum) == (9, 3)
    made = leader_plan(state, found, created_at_ms=5)
    assert len(made.moves) == len(made.elections) == 6
    assert {m.name for m in made.moves} == set(made.elections)
    assert (made.status, made.bytes_moved, made.fingerprint) == ("meets-all-goals", 0, fingerprint(state))
    assert all(m.is_list_change for m in made.moves)
    assert loads(dumps(made)) == made


def test_a_plan_says_what_it_does_and_what_for() -> None:
    """No byte is moved, which is the least; every move has its reason, in the measure that was asked for."""
    state = cluster()
    made = leader_plan(state, balance(state, "counts"), created_at_ms=5)
    assert (made.intent, made.cluster_id, made.created_at_ms, made.assumptions) == (
        "leaders --minimize counts",
        "c",
        5,
        (),
    )
    assert (made.bound_bytes, made.bound_method) == (0, "no byte moves")
    assert made.summary == {
        "replica_list_changes": 6,
        "leader_balance": {
            "measure": "counts",
            "max_before": 9,
            "max_after": 3,
            "bound": 3,
            "gap": 0.0,
            "brokers": [
                {"broker": 1, "before": 9, "after": 3},
                {"broker": 2, "before": 0, "after": 3},
                {"broker": 3, "before": 0, "after": 3},
            ],
            "unknown_sizes": 0,
        },
    }
    told = "lowers the most preferred leaders of a broker to 3; no data moves"
    assert {m.reason for m in made.moves} == {Reason("leader-balance", told)}
    told = "lowers the most bytes led of a broker to 15; no data moves"
    assert {m.reason for m in balance(state, "bytes").moves} == {Reason("leader-balance", told)}


def test_counts_take_no_change_that_lowers_nothing() -> None:
    """Five partitions that only brokers 2 and 3 hold leave one of these with three, whatever broker 1 is given."""
    lists = [(2, 3), (3, 2), (3, 2), (3, 2), (2, 3), (2, 1, 3)]
    state = cluster([PartitionRow("t", i, r[0], r, r) for i, r in enumerate(lists)])
    found = balance(state, "counts")
    assert (found.max_before, found.found.maximum, found.moves) == (3, 3, ())


def test_excluded_brokers_and_other_topics() -> None:
    """A broker that is excluded leads nothing afterwards and counts for nothing before; other topics stay as they are."""
    state = cluster()
    found = balance(state, "counts", excluded=(1,))
    assert (found.brokers.tolist(), found.before.tolist()) == ([2, 3], [0, 0])
    assert len(found.moves) == 9
    assert {m.new[0] for m in found.moves} == {2, 3}
    kept = balance(state, "counts", topics=("other",))
    assert (kept.moves, kept.before.tolist()) == ((), [9, 0, 0])


def test_bytes_are_balanced_within_the_gap_that_is_stated() -> None:
    """Sizes 1 to 9 over three brokers make 15 each."""
    found = balance(cluster(), "bytes")
    assert (found.max_before, found.found.maximum, found.found.bound, found.found.gap) == (45, 15, 15, 0)


def test_elections_only_where_they_can_and_must_be_held() -> None:
    """Not where the new first replica leads already, nor where it is out of sync."""
    rows = [
        PartitionRow("t", 0, 2, (1, 2), (1, 2)),
        PartitionRow("t", 1, 1, (1, 3), (1,)),
        PartitionRow("t", 2, 1, (1,), (1,)),
    ]
    found = balance(cluster(rows), "counts")
    assert {m.name: m.new for m in found.moves} == {TopicPartition("t", 0): (2, 1), TopicPartition("t", 1): (3, 1)}
    assert found.elections == ()


def test_balance_is_nothing_to_do() -> None:
    """A balanced cluster gets an empty plan."""
    rows = [PartitionRow("t", i, b, (b, 1 + b % 3), (b, 1 + b % 3)) for i, b in enumerate((1, 2, 3))]
    state = cluster(rows)
    made = leader_plan(state, balance(state, "counts"))
    assert made.is_empty
    assert made.status == "nothing-to-do"


def test_unknown_sizes_are_admitted() -> None:
    """A partition without a size weighs nothing, and the plan says so."""
    state = cluster([PartitionRow("t", 0, 1, (1, 2), (1, 2))])
    found = balance(state, "bytes")
    assert (found.max_before, found.unknown_sizes) == (0, 1)
    assert balance(state, "counts").unknown_sizes == 0
    made = leader_plan(state, found)
    assert made.assumptions == ("1 partitions count as empty, since no broker said their size",)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command reads the cluster above."""
    opened = SimpleNamespace(cluster=SimpleNamespace(snapshot=lambda **_: cluster()), journal_file=None)
    monkeypatch.setattr(ClusterOptions, "open", lambda _: nullcontext(opened))


@pytest.mark.usefixtures("read")
def test_the_commands_report_and_balance() -> None:
    """A table without options; a document, Kafka's JSON and exit code 3 with them."""
    run = CliRunner()
    table = run.invoke(leaders, []).stdout
    assert "VS AVERAGE" in table
    assert "300.0 %" in table
    (document,) = validated(run.invoke(leaders, ["--output", "json"]).stdout)
    assert [b["partitions"] for b in document["brokers"]] == [9, 0, 0]
    assert document["topics"][0]["ideal"] == 3
    (made,) = validated(run.invoke(plan, ["leaders", "--minimize", "counts", "--output", "json"]).stdout)
    found = made["summary"]["leaderBalance"]
    assert (found["maxBefore"], found["maxAfter"], found["bound"], found["gap"]) == (9, 3, 3, 0)
    stock = run.invoke(plan, ["leaders", "--minimize", "bytes", "--format", "kafka"]).stdout
    assert {len(e.replicas) for e in parse_reassignment(stock)} == {3}
    drawn = run.invoke(plan, ["leaders", "--minimize", "counts", "--check"], standalone_mode=False)
    assert drawn.return_value == EXIT_PENDING
    assert "6 replica list changes (no data copied), 6 preferred leader elections" in drawn.stdout
    assert "The least possible maximum" in drawn.stdout
    already_balanced = run.invoke(
        plan, ["leaders", "--minimize", "counts", "--topics", "none", "--check"], standalone_mode=False
    )
    assert already_balanced.return_value == 0
    assert "nothing to do" in already_balanced.stdout
    drained = validated(
        run.invoke(plan, ["leaders", "--minimize", "counts", "--drain", "1", "--output", "json"]).stdout
    )
    assert {b["broker"] for b in drained[0]["summary"]["leaderBalance"]["brokers"]} == {2, 3}


@pytest.mark.usefixtures("read")
def test_the_command_leaves_pinned_topics_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """No plan touches them; they count for the load of who leads them."""
    monkeypatch.setenv("BALLAST__BALANCE__PINNED_TOPICS", ".*")
    drawn = CliRunner().invoke(plan, ["leaders", "--minimize", "counts", "--check"], standalone_mode=False)
    assert drawn.return_value == 0
    assert "nothing to do" in drawn.stdout


@pytest.mark.usefixtures("read")
@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--minimize", "counts", "--band", "0.1", "--exclude-brokers", "1"], "--exclude-brokers, --band"),
        (["--minimize", "counts", "--topics", "("], "not a regular expression"),
        (["--minimize", "counts", "--drain", "9"], "There is no broker 9 "),
        (["--minimize", "counts", "--drain", "9", "--drain", "8"], "There are no brokers 8, 9 "),
    ],
)
def test_the_command_refuses(arguments: list[str], reason: str) -> None:
    """One sentence each."""
    failure = CliRunner().invoke(plan, ["leaders", *arguments]).exception
    assert isinstance(failure, UsageError)
    assert reason in str(failure)
