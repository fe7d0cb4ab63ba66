"""How the checker judges what a plan tells of itself: sizes, sums and bounds, and the range around each share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pytest
from tests.unit.core.planner.checker.test_checker import told, true_to_itself
from tests.unit.core.planner.checker.test_rules import ADMITTED, POLICY, cluster, move, plan_of

from ballast.core.cluster import Broker, ClusterState, LogDir, PartitionRow, Topic, build
from ballast.core.plan import Move, Plan
from ballast.core.planner import Balance, Decommission, Expand, Intent, Leaders, Loads, PlannerPolicy, Selection
from ballast.core.planner.checker.bands import Members, limits, pour
from ballast.core.planner.checker.checker import check
from ballast.core.planner.goals import Resource

EMPTY_FOUR: Final = Decommission(brokers=frozenset({4}))
MOVES: Final = (move("u-0", 6, 5), move("u-1", 1, 6), move("u-2", 1, 2, 6))
STATE: Final = cluster()
LOADS: Final = Loads.from_state(STATE)


def honest(*moves: Move, state: ClusterState = STATE, **known: Any) -> Plan:
    """A plan that tells its moves as they are."""
    bare = plan_of(*moves, summary={"brokers": [{"broker": b.id} for b in state.brokers]}, **known)
    return true_to_itself(bare, state, Loads.from_state(state))


def judged(
    made: Plan,
    *,
    intent: Intent = EMPTY_FOUR,
    state: ClusterState = STATE,
    loads: Loads | None = None,
    policy: PlannerPolicy = POLICY,
) -> list[tuple[str, str]]:
    """Code and subject of what is found."""
    loads = loads or Loads.from_state(state)
    return [(f.code, f.subject) for f in check(state, made, intent, loads=loads, policy=policy)]


def test_a_plan_that_tells_itself_as_it_is_passes() -> None:
    """Moves that copy beside those that only reorder; and one without moves."""
    assert judged(honest(*MOVES)) == []
    assert judged(honest(), intent=Decommission(brokers=frozenset({6}))) == []


@pytest.mark.parametrize(
    "key", ["replica_moves", "replica_list_changes", "leader_changes", "bytes_moved", "busiest_bytes"]
)
@pytest.mark.parametrize("intent", ["copies", "replica_list_changes"])
def test_a_figure_of_the_plan_that_is_not_so_is_found(key: str, intent: str) -> None:
    """One more than it is, or none at all."""
    moves = MOVES if intent == "copies" else (move("t-0", 2, 1),)
    asked: Intent = EMPTY_FOUR if intent == "copies" else Leaders()
    made = honest(*moves, **ADMITTED)
    clean = [f for f in judged(made, intent=asked) if f[0] == "sum"]
    assert clean == []
    more = told(made, lambda s: s.update({key: s[key] + 1}))
    none = told(made, lambda s: s.pop(key))
    for wrong in (more, none):
        assert [f for f in judged(wrong, intent=asked) if f[0] == "sum"] == [("sum", "the plan")]


def test_the_figures_of_a_plan_are_counted_from_its_moves() -> None:
    """Three copies, no replica list change, one other leader; broker 6 takes in all of it."""
    made = honest(*MOVES)
    counted = {k: made.summary[k] for k in ("replica_moves", "replica_list_changes", "leader_changes", "bytes_moved")}
    assert counted == {"replica_moves": 3, "replica_list_changes": 0, "leader_changes": 1, "bytes_moved": 300}
    assert made.summary["busiest_bytes"] == 300
    out = honest(move("u-1", 1, 6), move("u-2", 1, 2, 3), move("u-0", 6, 5), **ADMITTED)
    assert judged(out) == []
    assert out.summary["busiest_bytes"] == 200


@pytest.mark.parametrize("side", ["before", "after"])
@pytest.mark.parametrize("resource", ["disk", "replicas", "preferred-leaders"])
@pytest.mark.parametrize("broker", [1, 4, 6])
def test_a_figure_of_a_broker_that_is_not_so_is_found(side: str, resource: str, broker: int) -> None:
    """By one more or less, or none at all."""

    def change(by: int | None) -> Callable[[dict[str, Any]], None]:
        def apply(s: dict[str, Any]) -> None:
            figures = next(b for b in s["brokers"] if b["broker"] == broker)[side]
            figures[resource] = None if by is None else figures[resource] + by

        return apply

    made = honest(*MOVES)
    for by in (1, -1, None):
        assert judged(told(made, change(by))) == [("sum", f"broker {broker}")]


def test_every_broker_of_the_cluster_and_no_other_is_told() -> None:
    """One finding for all."""
    made = honest(*MOVES)
    fewer = told(made, lambda s: s["brokers"].pop())
    more = told(made, lambda s: s["brokers"].append({"broker": 7, "before": {}, "after": {}}))
    none = told(made, lambda s: s.pop("brokers"))
    for wrong in (fewer, more, none):
        assert judged(wrong) == [("sum", "the plan")]


@pytest.mark.parametrize(("bound", "codes"), [(None, []), (0, []), (300, []), (301, [("bound", "the plan")])])
def test_no_bound_is_above_what_the_plan_moves(bound: int | None, codes: list[tuple[str, str]]) -> None:
    """A plan at its bound is the best that there is."""
    assert judged(replace(honest(*MOVES), bound_bytes=bound)) == codes


def test_a_size_is_told_as_it_is_known() -> None:
    """Not by a byte otherwise, and not at all where it was assumed; then neither sum is told."""
    one_more = (replace(MOVES[0], size_bytes=101), *MOVES[1:])
    assert judged(honest(*one_more))[0] == ("sum", "u-0")
    assumed = replace(LOADS, assumed=np.arange(len(LOADS)) == STATE.index[MOVES[0].name])
    assert ("sum", "u-0") in judged(honest(*MOVES), loads=assumed)
    unknown = honest(replace(MOVES[0], size_bytes=-1), *MOVES[1:])
    untold = told(unknown, lambda s: s.update(bytes_moved=None, busiest_bytes=None))
    assert judged(untold, loads=assumed) == []
    for key in ("bytes_moved", "busiest_bytes"):
        wrong = replace(untold, summary={**untold.summary, key: 300})
        assert judged(wrong, loads=assumed) == [("sum", "the plan")]
    nothing = replace(LOADS, known=frozenset())
    assert {f for f in judged(honest(*MOVES), loads=nothing) if f[1] != "the plan"} >= {
        ("sum", str(m.name)) for m in MOVES
    }


def test_a_broker_with_id_0_can_be_the_busiest() -> None:
    """It takes in what two others hand out."""
    rows = [PartitionRow("t", n, b, (b,), (b,), sizes=(100,)) for n, b in enumerate((1, 2))]
    state = build("c", tuple(Broker(b, log_dirs_known=True) for b in range(3)), (Topic("t"),), rows)
    made = honest(*(Move("t", n, (b,), (0,), 100) for n, b in enumerate((1, 2))), state=state, **ADMITTED)
    intent = Expand(brokers=frozenset({0}))
    assert made.summary["busiest_bytes"] == 200
    assert [f for f in judged(made, state=state, intent=intent) if f[0] == "sum"] == []


def test_sums_are_exact_however_large_they_are() -> None:
    """To the byte, also where a floating-point number has no room for it."""
    large = 2**53 + 1
    disk = LogDir("/d", 4 * large, 3 * large)
    state = cluster(rows={("u", 0): {"sizes": (large, large)}}, dirs=dict.fromkeys(range(1, 7), (disk,)))
    made = honest(replace(MOVES[0], size_bytes=large), *MOVES[1:], state=state)
    assert judged(made, state=state) == []
    less = told(made, lambda s: s["brokers"][4]["after"].update(disk=large - 1))
    assert judged(less, state=state) == [("sum", "broker 5")]


def test_a_size_that_was_assumed_makes_no_other_unknown() -> None:
    """Not that of the partition beside it."""
    for beside in (-1, 1):
        row = STATE.index[MOVES[1].name] + beside
        assumed = replace(LOADS, assumed=np.arange(len(LOADS)) == row)
        assert judged(honest(MOVES[1], **ADMITTED), loads=assumed) == []


def test_an_empty_partition_is_of_a_known_size() -> None:
    """Its copy adds nothing to the sums, and hides none."""
    state = cluster(rows={("u", 0): {"sizes": (0, 0)}})
    made = honest(replace(MOVES[0], size_bytes=0), *MOVES[1:], state=state)
    assert (made.summary["bytes_moved"], made.summary["busiest_bytes"]) == (200, 200)
    assert judged(made, state=state) == []


def test_a_partition_of_unknown_size_that_is_only_reordered_leaves_the_sums_known() -> None:
    """Nothing of it is copied."""
    list_change = replace(move("t-0", 2, 1), size_bytes=-1)
    assumed = replace(LOADS, assumed=np.arange(len(LOADS)) == STATE.index[list_change.name])
    made = honest(list_change, **ADMITTED)
    assert made.summary["bytes_moved"] == 0
    assert [f for f in judged(made, intent=Leaders(), loads=assumed) if f[0] == "sum"] == []


# Ranges.

EVERY: Final = np.array([True, True, True])
NONE: Final = ~EVERY


def column(*, counted: bool = False, leaders_only: bool = False, name: str = "disk") -> Resource:
    """Something that three brokers carry."""
    one = np.ones(1, np.int64)
    return Resource(
        name=name, label=name, lead=one, follow=one, capacity=np.ones(3), counted=counted, leaders_only=leaders_only
    )


def members(**known: Any) -> Members:
    """Three brokers that take part in everything."""
    everything = {"shares": EVERY, "takes": EVERY, "rises": EVERY, "leads": EVERY, "leaves": NONE}
    return Members(**{**everything, **known})


def range_of(r: Resource, share: float, band: float, of: Members | None = None, slack: int = 0) -> list[Any]:
    """Both ends of the range of each broker."""
    policy = PlannerPolicy(band=0.1, slack_bytes=slack)
    low, high = limits(r, np.full(3, share), band, policy, of or members())
    return list(zip(low.tolist(), high.tolist(), strict=True))


@pytest.mark.parametrize(
    ("counted", "share", "band", "slack", "expected"),
    [
        (False, 100.0, 0.25, 0, (75.0, 125.0)),
        (False, 100.0, 0.1, 40, (60.0, 140.0)),
        (False, 100.0, 0.1, 140, (0.0, 240.0)),
        (False, 100.0, 0.5, 40, (20.0, 180.0)),
        (True, 100.0, 0.25, 0, (75.0, 125.0)),
        (True, 10.0, 0.25, 0, (8.0, 12.0)),
        (True, 2.5, 0.1, 0, (2.0, 3.0)),
        (True, 2.0, 0.1, 0, (2.0, 2.0)),
        (True, 0.5, 0.1, 0, (0.0, 1.0)),
    ],
)
def test_a_range_reaches_as_far_as_the_band_the_slack_or_the_next_whole_number(
    share: float, band: float, slack: int, expected: tuple[float, float], *, counted: bool
) -> None:
    """Bytes by the wider of the first two, counts by the wider of the first and the last."""
    found = range_of(column(counted=counted), share, band, slack=slack)
    assert found == [pytest.approx(expected)] * 3


def test_a_broker_that_takes_nothing_has_no_lower_end_and_one_that_has_no_share_no_end_at_all() -> None:
    """Of leaders, what may lead counts instead."""
    first, second = np.array([False, True, True]), np.array([True, False, True])
    some = members(shares=first, takes=second, leads=EVERY)
    inf = float("inf")
    assert range_of(column(), 100.0, 0.25, some) == [(0.0, inf), (0.0, 125.0), (75.0, 125.0)]
    assert range_of(column(leaders_only=True), 100.0, 0.25, some) == [(0.0, inf), (75.0, 125.0), (75.0, 125.0)]
    barred = members(leads=first, takes=second)
    assert range_of(column(leaders_only=True), 100.0, 0.25, barred) == [(0.0, inf), (75.0, 125.0), (75.0, 125.0)]
    assert range_of(column(), 100.0, 0.25, barred) == [(75.0, 125.0), (0.0, 125.0), (75.0, 125.0)]


@pytest.mark.parametrize(
    ("total", "weight", "most", "expected"),
    [
        (12.0, [1, 1, 1], [9, 9, 9], [4, 4, 4]),
        (12.0, [1, 2, 3], [9, 9, 9], [2, 4, 6]),
        (12.0, [1, 1, 1], [2, 9, 9], [2, 5, 5]),
        (12.0, [1, 1, 1], [9, 2, 4], [6, 2, 4]),
        (12.0, [1, 0, 1], [9, 9, 9], [6, 0, 6]),
        (12.0, [1, 1, 1], [1, 1, 1], [1, 1, 1]),
        (3.0, [1, 1, 1], [1, 1, 1], [1, 1, 1]),
        (9.0, [1, 4, 1], [3, 4, 9], [2.5, 4, 2.5]),
        (9.0, [1, 4, 0], [3, 4, 9], [3, 4, 0]),
        (0.0, [1, 1, 1], [9, 9, 9], [0, 0, 0]),
        (-1.0, [1, 1, 1], [9, 9, 9], [0, 0, 0]),
    ],
)
def test_pouring_is_by_weight_as_far_as_each_vessel_holds(
    total: float, weight: list[float], most: list[float], expected: list[float]
) -> None:
    """What one cannot hold the others share."""
    found = pour(total, np.array(weight, np.float64), np.array(most, np.float64))
    assert found.tolist() == pytest.approx(expected)


STRANGE: Final = cluster(down=(2,))


@pytest.mark.parametrize(
    ("intent", "policy", "state", "expected"),
    [
        pytest.param(Balance(), POLICY, STATE, ("123456", "123456", "123456", "123456", ""), id="all"),
        pytest.param(Balance(), POLICY, STRANGE, ("13456", "13456", "13456", "13456", "2"), id="down"),
        pytest.param(Leaders(), POLICY, STRANGE, ("13456", "", "13456", "13456", ""), id="leaders"),
        pytest.param(
            Expand(brokers=frozenset({2, 6})), POLICY, STRANGE, ("13456", "6", "13456", "13456", ""), id="expand"
        ),
        pytest.param(
            Balance(),
            replace(POLICY, draining=frozenset({3}), cordoned=frozenset({4}), demoted=frozenset({5})),
            STATE,
            ("12456", "1256", "1256", "1246", "3"),
            id="draining-cordoned-demoted",
        ),
        pytest.param(
            Balance(selection=Selection(exclude_brokers="[23]")),
            replace(POLICY, draining=frozenset({3})),
            STRANGE,
            ("1456", "1456", "1456", "1456", ""),
            id="left-out",
        ),
    ],
)
def test_who_takes_part_is_told_by_the_cluster_the_policy_and_the_intent(
    intent: Intent, policy: PlannerPolicy, state: ClusterState, expected: tuple[str, ...]
) -> None:
    """Who has a share, who takes replicas, who could, who may lead, and whose replicas must go."""
    found = Members.of(state, intent, policy)
    flags = (found.shares, found.takes, found.rises, found.leads, found.leaves)
    ids = tuple("".join(str(b.id) for b, yes in zip(state.brokers, flag, strict=True) if yes) for flag in flags)
    assert ids == expected
