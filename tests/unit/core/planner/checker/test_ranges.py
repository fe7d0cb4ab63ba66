"""How the checker judges balance: who ends out of range, what was made worse, and each broker's share."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import pytest
from tests.unit.core.planner.checker.test_figures import honest, judged
from tests.unit.core.planner.checker.test_rules import BALANCE
from tests.unit.core.planner.clusters import cluster

from ballast.core.cluster import Broker, ClusterState, PartitionRow, Topic, build
from ballast.core.plan import Move, Obstacle
from ballast.core.planner import Balance, Expand, Intent, Leaders, Loads, PlannerPolicy, Selection, TopicRule
from ballast.core.planner.checker.bands import Lists, Members, fair_shares
from ballast.core.planner.checker.checker import check
from ballast.core.planner.checker.topics import TopicJudge
from ballast.core.planner.goals import resources
from ballast.core.planner.policy import Capacity

POLICY: Final = PlannerPolicy(band=0.1, trigger=0.1, slack_bytes=0, prove=False)
LABELS: Final = ("disk", "replicas", "preferred leaders")


def lone(*counts: int) -> ClusterState:
    """So many partitions of one replica and 100 bytes on each broker."""
    return cluster(*((b,) for b, n in enumerate(counts, 1) for _ in range(n)), brokers=len(counts))


def moved(state: ClusterState, *pairs: tuple[int, int]) -> list[Move]:
    """Partitions, each to another broker."""
    return [Move("t", n, state.target(n), (to,), 100) for n, to in pairs]


def balance(
    state: ClusterState,
    *pairs: tuple[int, int],
    admitted: tuple[str, ...] = (),
    intent: Intent = BALANCE,
    policy: PlannerPolicy = POLICY,
) -> list[tuple[str, str]]:
    """What is found in a plan of these moves that admits these ranges."""
    known: dict[str, Any] = {}
    if admitted:
        known["obstacles"] = tuple(Obstacle("band", label, "a reason") for label in admitted)
        if pairs:
            known["status"] = "misses-some-goals"
    made = honest(*moved(state, *pairs), state=state, **known)
    return judged(made, intent=intent, state=state, policy=policy)


@pytest.mark.parametrize(
    ("counts", "pairs", "out"),
    [
        pytest.param((3, 1), [(0, 2)], None, id="balanced-by-it"),
        pytest.param((2, 2), [], None, id="balanced-before"),
        pytest.param((3, 1), [], 1, id="nothing-done"),
        pytest.param((1, 3), [], 1, id="the-first-is-told"),
        pytest.param((2, 4, 0), [(2, 3)], 2, id="half-done"),
        pytest.param((2, 4, 0), [(2, 3), (3, 3)], None, id="all-done"),
    ],
)
def test_a_range_that_is_missed_is_found_where_the_plan_does_not_admit_it(
    counts: tuple[int, ...], pairs: list[tuple[int, int]], out: int | None
) -> None:
    """For each resource, with the first broker that is out of its range."""
    state = lone(*counts)
    expected = [("band", f"broker {out}")] if out else []
    assert balance(state, *pairs) == expected * len(LABELS)
    if out:
        for label in LABELS:
            others = tuple(other for other in LABELS if other != label)
            assert balance(state, *pairs, admitted=others) == expected
        assert balance(state, *pairs, admitted=LABELS) == []


def test_ranges_are_around_the_shares_that_brokers_have_where_one_takes_nothing() -> None:
    """Nothing can be moved to it; leaders can."""
    policy = replace(POLICY, cordoned=frozenset({3}))
    assert balance(lone(6, 5, 1), policy=policy) == [("band", "broker 1")]
    assert balance(lone(6, 5, 1), policy=policy, admitted=("preferred leaders",)) == []


OTHER: Final = TopicRule(topics="other", not_brokers=frozenset({9}))
"""With rules shares are rounded, whatever the rules say."""


def test_a_broker_at_the_very_end_of_its_range_is_within_it() -> None:
    """A share that is rounded down takes no byte off its range; filled up to there is not overfilled."""
    policy = replace(POLICY, band=0.2, trigger=0.2, topic_rules=(OTHER,))
    assert balance(lone(4, 3, 3), policy=policy) == []
    pairs = [(n, 3) for n in range(4)]
    assert balance(lone(6, 4, 0), *pairs, intent=Expand(brokers=frozenset({3})), policy=policy) == []


@pytest.mark.parametrize("intent", [Balance(), Expand(brokers=frozenset({3}))])
def test_an_empty_broker_off_which_a_rule_keeps_every_topic_is_within_its_range(intent: Intent) -> None:
    """It has a share of nothing, and holds nothing."""
    kept_off = replace(POLICY, topic_rules=(TopicRule(topics="t", not_brokers=frozenset({3})),))
    assert balance(lone(2, 2, 0), intent=intent, policy=kept_off) == []


def test_a_range_that_is_missed_is_told_by_its_ends() -> None:
    """Also where it is of no width, since the broker has a share of nothing."""
    policy = replace(POLICY, topic_rules=(TopicRule(topics="t", not_brokers=frozenset({3})),))
    for state, subject, ends in (
        (lone(5, 5, 1), "broker 3", ("ends with 100 of disk", "its range is from 0 to 0")),
        (lone(6, 4, 0), "broker 1", ("ends with 600 of disk", "its range is from 450 to 550")),
        (lone(4, 6, 0), "broker 1", ("ends with 400 of disk", "its range is from 450 to 550")),
    ):
        made = honest(state=state, obstacles=(Obstacle("band", "replicas", "a reason"),))
        found = check(state, made, BALANCE, loads=Loads.from_state(state), policy=policy)
        told = next(f for f in found if f.code == "band")
        assert told.subject == subject
        assert all(end in told.detail for end in ends)


def test_a_plan_without_moves_is_judged_by_the_trigger_and_one_with_moves_by_the_band() -> None:
    """The trigger is the wider one."""
    wide = replace(POLICY, trigger=0.5)
    state = lone(12, 8)
    assert balance(state, policy=wide) == []
    assert balance(state) == [("band", "broker 1")] * len(LABELS)
    assert balance(state, (0, 2), (1, 2), policy=wide) == []
    assert balance(lone(13, 7), (0, 2), policy=wide) == [("band", "broker 1")] * len(LABELS)


def test_leaders_are_judged_by_what_leaders_alone_cost() -> None:
    """Bytes and replicas that no replica list change touches are no affair of that plan."""
    state = cluster((1, 2), (1, 2), (1, 3), (1, 2), brokers=3)
    asked = Leaders()
    assert balance(state, intent=asked) == [("band", "broker 1")]
    assert balance(state, intent=asked, admitted=("preferred leaders",)) == [("status", "the plan")]


def test_a_broker_that_was_within_its_range_stays_within_it() -> None:
    """Admitted or not; the first one is told."""
    even = lone(2, 2, 2)
    assert balance(even, (2, 3), admitted=LABELS) == [("regression", "broker 2")]
    assert ("regression", "broker 2") in balance(even, (2, 3))


def test_a_broker_at_the_lower_end_of_its_range_was_within_it() -> None:
    """With one less it is not."""
    policy = replace(POLICY, band=0.25)
    assert balance(lone(3, 4, 5), (0, 2), admitted=LABELS, policy=policy) == [("regression", "broker 1")]


@pytest.mark.parametrize(
    ("counts", "pair", "subject"), [((2, 2, 2), (2, 3), "broker 2"), ((15, 5), (15, 1), "the plan")]
)
def test_one_resource_that_gets_worse_is_enough(counts: tuple[int, ...], pair: tuple[int, int], subject: str) -> None:
    """The ranges of counts are so wide that no count is out of them."""
    policy = replace(POLICY, bands={"replicas": 0.9, "preferred-leaders": 0.9})
    assert balance(lone(*counts), pair, admitted=("disk",), policy=policy) == [("regression", subject)]


@pytest.mark.parametrize(
    ("counts", "pair"),
    [
        pytest.param((12, 11, 7), (12, 1), id="over"),
        pytest.param((8, 9, 13), (0, 2), id="under"),
    ],
)
def test_a_broker_gets_no_further_beyond_either_end(counts: tuple[int, ...], pair: tuple[int, int]) -> None:
    """While the other two stay within their ranges or as far out as they were."""
    assert balance(lone(*counts), pair, admitted=LABELS) == [("regression", "the plan")]


@pytest.mark.parametrize(("size", "codes"), [(400, set()), (600, {"regression"})])
def test_a_thousandth_of_a_share_is_no_regression(size: int, codes: set[str]) -> None:
    """Two brokers that are out of range get further from it, each by so many of a million bytes."""
    state = cluster((1,), (2,), (2,), brokers=2, sizes=(1_500_000, 500_000, size))
    obstacles = (Obstacle("band", "disk", "a reason"),)
    made = honest(Move("t", 2, (2,), (1,), size), state=state, obstacles=obstacles, status="misses-some-goals")
    assert {code for code, _ in judged(made, intent=BALANCE, state=state, policy=POLICY)} == codes


def test_brokers_out_of_range_do_not_get_further_from_it() -> None:
    """Together, though none of them was within it."""
    state = lone(5, 1)
    assert balance(state, (5, 1), admitted=LABELS) == [("regression", "the plan")]
    assert balance(state, (0, 2), admitted=LABELS) == []
    assert balance(state, (5, 1)) == [("band", "broker 1")] * len(LABELS)


@pytest.mark.parametrize(
    "policy",
    [
        pytest.param(replace(POLICY, draining=frozenset({4})), id="a-replica-must-go"),
        pytest.param(replace(POLICY, demoted=frozenset({4})), id="a-broker-must-not-lead"),
        pytest.param(
            replace(POLICY, topic_rules=(TopicRule(topics="t", not_brokers=frozenset({4})),)), id="a-rule-is-broken"
        ),
    ],
)
def test_a_repair_may_cost_balance(policy: PlannerPolicy) -> None:
    """What must be repaired goes before ranges; the same move without that is a regression."""
    state = lone(2, 2, 1, 2)
    plain = balance(state, (5, 1), admitted=LABELS)
    assert ("regression", "broker 1") in plain
    assert "regression" not in {code for code, _ in balance(state, (5, 1), (6, 2), admitted=LABELS, policy=policy)}


@pytest.mark.parametrize(("racks", "codes"), [("aabc", set()), ("abcd", {"regression"})])
def test_a_replica_that_shares_a_rack_may_leave_it_whatever_it_costs(racks: str, codes: set[str]) -> None:
    """It goes to a broker that had its share; where no rack is shared, nothing excuses that."""
    brokers = tuple(Broker(b, rack=rack, log_dirs_known=True) for b, rack in enumerate(racks, 1))
    rows = [PartitionRow("t", n, m[0], m, m, sizes=(100, 100)) for n, m in enumerate([(1, 2), (3, 4), (4, 3), (2, 1)])]
    state = build("c", brokers, (Topic("t"),), rows)
    obstacles = tuple(Obstacle("band", label, "a reason") for label in LABELS)
    made = honest(Move("t", 0, (1, 2), (1, 3), 100), state=state, obstacles=obstacles, status="misses-some-goals")
    assert {code for code, _ in judged(made, intent=BALANCE, state=state, policy=POLICY)} == codes


@pytest.mark.parametrize(("number", "over"), [(1, False), (2, False), (3, True)])
def test_new_brokers_are_filled_up_to_their_range_and_no_further(number: int, *, over: bool) -> None:
    """Of each resource; who is no new broker may be out of its range."""
    state = lone(4, 0)
    told = balance(state, *((n, 2) for n in range(number)), intent=Expand(brokers=frozenset({2})))
    assert told == ([("band", "broker 2")] * len(LABELS) if over else [])


def test_a_new_broker_that_is_overfilled_hides_no_wrong_figure() -> None:
    """Both are told."""
    state = lone(4, 0)
    made = replace(honest(*moved(state, (0, 2), (1, 2), (2, 2)), state=state), bound_bytes=301)
    told = judged(made, intent=Expand(brokers=frozenset({2})), state=state, policy=POLICY)
    assert told == [("bound", "the plan"), *[("band", "broker 2")] * len(LABELS)]


def test_a_new_broker_is_filled_with_the_share_of_one_that_takes_nothing() -> None:
    """It may lead all the same: its share of leaders stays its own."""
    pairs = [(n, 2) for n in range(6)]
    asked = Expand(brokers=frozenset({2}))
    state = lone(12, 0, 0)
    assert balance(state, *pairs, intent=asked, policy=replace(POLICY, cordoned=frozenset({3}))) == [
        ("band", "broker 2")
    ]
    assert balance(state, *pairs, intent=asked) == [("band", "broker 2")] * len(LABELS)


def test_a_new_broker_that_holds_too_much_already_may_keep_it() -> None:
    """What it had before is not what the plan filled it with."""
    assert balance(lone(1, 5), intent=Expand(brokers=frozenset({2}))) == []


# Shares.


def shares(
    state: ClusterState,
    *,
    resource: str = "replicas",
    intent: Intent = BALANCE,
    policy: PlannerPolicy = POLICY,
) -> list[float]:
    """Each broker's share of a resource."""
    loads = Loads.from_state(state)
    (r,) = (r for r in resources(state, loads, policy) if r.name == resource)
    topics = TopicJudge(
        state, honest(state=state), intent, policy, emptied=(), is_open=lambda _: True, leaves_no_leader=lambda _: False
    )
    found = fair_shares(state, intent, r, Members.of(state, intent, policy), Lists.before(state), topics)
    return [round(float(share), 6) for share in found]


@pytest.mark.parametrize(
    ("policy", "intent", "expected"),
    [
        pytest.param(POLICY, Balance(), [4, 4, 4], id="alike"),
        pytest.param(replace(POLICY, draining=frozenset({3})), Balance(), [6, 6, 0], id="draining"),
        pytest.param(replace(POLICY, cordoned=frozenset({3})), Balance(), [5.5, 5.5, 1], id="takes-nothing"),
        pytest.param(replace(POLICY, cordoned=frozenset({1})), Balance(), [4, 4, 4], id="takes-nothing-and-has-more"),
        pytest.param(POLICY, Balance(selection=Selection(exclude_brokers="1")), [0, 2, 2], id="left-out"),
        pytest.param(POLICY, Expand(brokers=frozenset({3})), [4, 4, 4], id="expand"),
        pytest.param(replace(POLICY, cordoned=frozenset({3})), Leaders(), [4, 4, 4], id="leaders"),
        pytest.param(
            replace(POLICY, topic_rules=(TopicRule(topics="t", not_brokers=frozenset({3})),)),
            Balance(),
            [6, 6, 0],
            id="kept-off-by-a-rule",
        ),
        pytest.param(
            replace(POLICY, topic_rules=(TopicRule(topics="other", not_brokers=frozenset({3})),)),
            Balance(),
            [4, 4, 4],
            id="a-rule-for-another-topic",
        ),
    ],
)
def test_a_share_is_that_of_the_brokers_that_take_part(
    policy: PlannerPolicy, intent: Intent, expected: list[float]
) -> None:
    """Of 8, 3 and 1 replicas; a broker that takes none keeps what it has at most."""
    assert shares(lone(8, 3, 1), policy=policy, intent=intent) == expected


def racked(
    racks: str, *lists: tuple[int, ...], other: tuple[int, ...] = (), down: tuple[int, ...] = ()
) -> ClusterState:
    """Brokers in these racks, with partitions on these; ``other`` is the only partition of another topic."""
    brokers = tuple(
        Broker(b, rack=rack if rack != "-" else None, alive=b not in down, log_dirs_known=True)
        for b, rack in enumerate(racks, 1)
    )
    rows = [PartitionRow("t", n, m[0], m, m, sizes=(100,) * len(m)) for n, m in enumerate(lists)]
    if other:
        rows.append(PartitionRow("other", 0, other[0], other, other, sizes=(100,) * len(other)))
    return build("c", brokers, tuple(Topic(t) for t in dict.fromkeys(row.topic for row in rows)), rows)


def test_a_share_of_leaders_is_that_of_brokers_that_may_lead() -> None:
    """Cordoned ones may."""
    policy = replace(POLICY, demoted=frozenset({1}), cordoned=frozenset({3}))
    assert shares(lone(8, 3, 1), resource="preferred-leaders", policy=policy) == [0, 6, 6]
    assert shares(lone(8, 3, 1), resource="disk", policy=policy) == [550, 550, 100]


@pytest.mark.parametrize(
    ("racks", "lists", "expected"),
    [
        pytest.param("aab", [(1, 3)] * 4, [2, 2, 4], id="one-of-two-in-each-rack"),
        pytest.param("aabb", [(1, 3)] * 4, [2, 2, 2, 2], id="racks-of-one-size"),
        pytest.param("aaab", [(1, 4)] * 6, [2, 2, 2, 6], id="a-small-rack-holds-one-of-each"),
        pytest.param("abc", [(1, 2)] * 6, [4, 4, 4], id="a-rack-for-each-broker"),
        pytest.param("aaa", [(1, 2)] * 6, [4, 4, 4], id="one-rack"),
        pytest.param("---", [(1, 2)] * 6, [4, 4, 4], id="no-racks"),
        pytest.param("aab", [(1, 2)] * 6, [3, 3, 6], id="in-one-rack-today"),
        pytest.param("aaaab", [(1,)] * 5, [1, 1, 1, 1, 1], id="one-replica-may-be-anywhere"),
    ],
)
def test_racks_bound_what_their_brokers_can_share(
    racks: str, lists: list[tuple[int, ...]], expected: list[float]
) -> None:
    """No rack holds more of a partition than its part."""
    assert shares(racked(racks, *lists)) == expected


def test_a_broker_that_is_down_and_names_no_rack_leaves_the_others_their_racks() -> None:
    """Only a broker that is alive without one makes racks count for nothing."""
    assert shares(racked("aab-", *[(1, 3)] * 4, down=(4,))) == [2, 2, 4, 0]


ANYWHERE: Final[dict[str, Any]] = {"not_brokers": frozenset({9})}


@pytest.mark.parametrize(
    ("rule", "replicas", "expected"),
    [
        pytest.param({"ignore_racks": True}, (1, 3), [2.666667] * 3, id="racks-do-not-matter"),
        pytest.param({"ignore_racks": True}, (1, 2), [2.666667] * 3, id="racks-do-not-matter-and-one-has-all"),
        pytest.param(ANYWHERE, (1, 3), [2, 2, 4], id="racks-matter"),
        pytest.param(ANYWHERE, (1, 2), [2, 2, 4], id="racks-matter-and-one-has-all"),
        pytest.param(ANYWHERE, (1, 2, 3), [4, 4, 4], id="more-replicas-than-racks"),
        pytest.param({"brokers": frozenset({1, 2})}, (1, 3), [4, 4, 0], id="of-one-rack-only"),
    ],
)
def test_racks_bound_shares_by_the_rule_of_each_topic(
    rule: dict[str, Any], replicas: tuple[int, ...], expected: list[float]
) -> None:
    """Four partitions with replicas on these of three brokers, of which two share a rack."""
    policy = replace(POLICY, topic_rules=(TopicRule(topics="t", **rule),))
    assert shares(racked("aab", *[replicas] * 4), policy=policy) == pytest.approx(expected)


def kept_off(*brokers: int, **known: Any) -> PlannerPolicy:
    """Brokers that may not hold the topic."""
    return replace(POLICY, topic_rules=(TopicRule(topics="t", not_brokers=frozenset(brokers)),), **known)


HUGE: Final = {b: Capacity(disk_bytes=size) for b, size in enumerate((10_000, 10_000, 1000, 1000, 1000), 1)}
TWO_LEFT_OUT: Final = Balance(selection=Selection(exclude_brokers="4|5"))


@pytest.mark.parametrize(
    ("racks", "replicas", "policy", "intent", "expected"),
    [
        pytest.param("aabbc", (1, 2, 3, 5), POLICY, BALANCE, [3, 3, 3, 3, 4], id="on-three-racks"),
        pytest.param("aabbc", (1, 2, 3, 4), POLICY, BALANCE, [3.2] * 5, id="on-two-racks"),
        pytest.param(
            "aabbcc",
            (1, 2, 3, 5),
            replace(POLICY, draining=frozenset({5})),
            BALANCE,
            [3, 3, 3, 3, 0, 4],
            id="another-broker-of-the-rack-remains",
        ),
        pytest.param(
            "aabbc",
            (1, 2, 3, 5),
            replace(POLICY, draining=frozenset({5})),
            BALANCE,
            [4, 4, 4, 4, 0],
            id="no-broker-of-the-rack-remains",
        ),
        pytest.param("aabbc", (1, 2, 3, 5), kept_off(5), BALANCE, [4, 4, 4, 4, 0], id="a-rule-takes-it-off-the-rack"),
        pytest.param(
            "aabbcc", (1, 2, 3, 5), kept_off(5), BALANCE, [3, 3, 3, 3, 0, 4], id="a-rule-leaves-the-rack-another-broker"
        ),
        pytest.param(
            "aabbc",
            (1, 2, 3, 5),
            kept_off(5),
            Expand(brokers=frozenset({4})),
            [3, 3, 3, 3, 0],
            id="a-rule-that-the-intent-does-not-repair",
        ),
        pytest.param(
            "aabcd",
            (1, 2, 3, 4, 5),
            replace(POLICY, capacities=HUGE),
            TWO_LEFT_OUT,
            [4, 4, 4, 0, 0],
            id="two-racks-are-left-out",
        ),
        pytest.param(
            "aabcd",
            (1, 2, 3, 4, 5),
            kept_off(4, 5, capacities=HUGE),
            TWO_LEFT_OUT,
            [4, 4, 4, 0, 0],
            id="two-racks-are-left-out-off-which-a-rule-keeps-it",
        ),
    ],
)
def test_racks_share_so_that_no_partition_goes_to_fewer_racks(
    racks: str, replicas: tuple[int, ...], policy: PlannerPolicy, intent: Intent, expected: list[float]
) -> None:
    """Four partitions with more replicas than racks: two racks that are full leave one of each for a third that holds it."""
    assert shares(racked(racks, *[replicas] * 4), policy=policy, intent=intent) == pytest.approx(expected)


def test_each_topic_stays_on_its_racks_by_its_own_rules() -> None:
    """One that may ignore racks lets no other do so."""
    rules = (TopicRule(topics="other", ignore_racks=True), TopicRule(topics="t", **ANYWHERE))
    state = racked("aabbc", *[(1, 2, 3, 5)] * 4, other=(1,))
    assert shares(state, policy=replace(POLICY, topic_rules=rules)) == [3.25, 3.25, 3.25, 3.25, 4]


def test_a_broker_off_which_a_rule_keeps_every_topic_has_no_part_in_its_racks_share() -> None:
    """What the rack can hold is for the broker beside it, however large it is; who has a small share keeps its part."""
    rule = TopicRule(topics="t", brokers=frozenset({1, 3}))
    policy = replace(disks(2000, 1000, 1000), topic_rules=(rule,))
    assert shares(racked("aab", *[(1, 3)] * 4), resource="disk", policy=policy) == [400, 0, 400]
    small = replace(disks(8000, 1000, 1000), topic_rules=(OTHER,))
    assert shares(racked("aab", (1, 3)), policy=small) == [0.888889, 0.111111, 1]


def disks(*sizes: int) -> PlannerPolicy:
    """Brokers with disks of these sizes."""
    return replace(POLICY, capacities={b: Capacity(disk_bytes=size) for b, size in enumerate(sizes, 1)})


@pytest.mark.parametrize("rule", [ANYWHERE, {"ignore_racks": True}])
@pytest.mark.parametrize("topics", ["other", "t"])
@pytest.mark.parametrize("size", [100, 10**12])
def test_no_broker_has_a_share_of_more_than_one_replica_of_a_partition(
    size: int, topics: str, rule: dict[str, Any]
) -> None:
    """However large its disk is, where there are no racks, and whatever rules the topic has."""
    policy = replace(disks(10 * size, size, size), topic_rules=(TopicRule(topics=topics, **rule),))
    assert shares(racked("---", *[(1, 2)] * 6), resource="disk", policy=policy) == [600, 300, 300]


def test_a_rack_that_is_full_leaves_the_others_what_the_brokers_that_take_part_hold() -> None:
    """Of six partitions one replica each is on a broker that is left out: nothing of it is theirs."""
    intent = Balance(selection=Selection(exclude_brokers="4"))
    state = racked("abcd", *[(1, 2, 4)] * 6)
    assert shares(state, resource="disk", intent=intent, policy=disks(400, 100, 100, 100)) == [600, 300, 300, 0]


def held(count: int, **topics: tuple[int, ...]) -> ClusterState:
    """So many brokers, and topics whose partitions have one replica of 100 bytes, each on the broker that is named."""
    brokers = tuple(Broker(b, log_dirs_known=True) for b in range(1, count + 1))
    rows = [PartitionRow(t, n, b, (b,), (b,), sizes=(100,)) for t, on in topics.items() for n, b in enumerate(on)]
    return build("c", brokers, tuple(Topic(t) for t in topics), rows)


def only(*rules: tuple[str, set[int]], **known: Any) -> PlannerPolicy:
    """Topics, and the brokers that may hold them."""
    said = tuple(TopicRule(topics=topics, brokers=frozenset(brokers)) for topics, brokers in rules)
    return replace(POLICY, topic_rules=said, **known)


OF_THREE: Final = disks(2000, 1000, 1000).capacities
TERABYTES: Final = disks(2 * 10**12, 10**12, 10**12).capacities
LED_BY_1: Final = replace(POLICY, topic_rules=(TopicRule(topics="a", leader_brokers=frozenset({1})),))


@pytest.mark.parametrize(
    ("state", "policy", "resource", "expected"),
    [
        pytest.param(
            held(3, a=(1,) * 6, b=(2, 2, 3)),
            only(("a", {1}), ("b", {2, 3})),
            "replicas",
            [6, 1.5, 1.5],
            id="each-has-its-own",
        ),
        pytest.param(
            held(3, a=(1,) * 12, b=(1,) * 6, c=(3,), none=()),
            only(("a", {1}), ("b", {1, 2})),
            "replicas",
            [12, 6, 1],
            id="the-fullest-first-then-the-next",
        ),
        pytest.param(
            held(3, a=(1,) * 8, b=(2,) * 4, c=(3,) * 3),
            only(("[ab]", {1, 2})),
            "replicas",
            [6, 6, 3],
            id="one-rule-for-two",
        ),
        pytest.param(
            held(3, a=(3,) * 6, b=(1, 1)),
            only(("a", {3}), ("b", {1}), draining=frozenset({3})),
            "replicas",
            [4, 4, 0],
            id="what-may-be-nowhere-counts-everywhere",
        ),
        pytest.param(
            held(3, a=(1,) * 4, b=(3,) * 2),
            only(("b", {3}), capacities=OF_THREE),
            "disk",
            [266.666667, 133.333333, 200],
            id="by-the-size-of-disks",
        ),
        pytest.param(
            held(3, a=(1,) * 4, b=(3,) * 2),
            only(("b", {3}), capacities=TERABYTES),
            "disk",
            [266.666667, 133.333333, 200],
            id="by-the-size-of-large-disks",
        ),
        pytest.param(
            held(5, a=(1, 1, 1, 2, 2, 3), b=(4,) * 10 + (5,) * 2),
            only(("a", {1, 2, 3}), ("b", {4, 5}), cordoned=frozenset({3, 5})),
            "replicas",
            [2.5, 2.5, 1, 10, 2],
            id="who-takes-nothing-keeps-what-it-has",
        ),
        pytest.param(
            held(3, a=(1,) * 6, b=(2, 2, 3, 3)),
            only(("a", {1}), ("b", {2, 3}), cordoned=frozenset({3})),
            "replicas",
            [6, 2, 2],
            id="who-takes-nothing-and-has-its-share",
        ),
        pytest.param(
            held(3, a=(1,) * 60, b=(2,) * 30 + (3,) * 10),
            only(("a", {1}), ("b", {2, 3}), cordoned=frozenset({3})),
            "replicas",
            [60, 30, 10],
            id="who-takes-nothing-keeps-topics-that-others-have-less-of",
        ),
        pytest.param(
            held(3, a=(3,) * 6, b=(1, 1)),
            only(("a", {3}), ("b", {1, 2}), cordoned=frozenset({3})),
            "replicas",
            [1, 1, 6],
            id="who-takes-nothing-keeps-topics-that-have-just-room-there",
        ),
        pytest.param(
            held(3, a=(1, 2)),
            only(("a", {1}), cordoned=frozenset({1})),
            "replicas",
            [0.666667] * 3,
            id="what-has-no-room-where-it-may-be-counts-on-all-that-take-replicas",
        ),
        pytest.param(
            held(4, a=(1,) * 6, b=(2,) * 7 + (4,) * 5),
            only(("a", {1}), ("b", {2, 3, 4}), cordoned=frozenset({3, 4})),
            "replicas",
            [6, 7, 0, 5],
            id="who-takes-nothing-is-full-once-others-are",
        ),
        pytest.param(
            held(3, a=(1,) * 20, b=(3,) * 45),
            only(("a", {1, 2}), ("b", {1, 3}), cordoned=frozenset({1})),
            "replicas",
            [10, 10, 45],
            id="who-takes-nothing-may-give-away-of-what-it-holds",
        ),
        pytest.param(
            held(3, a=(1,) * 12 + (2,) * 3, b=(3,) * 15),
            only(("a", {1, 2}), ("b", {1, 3}), cordoned=frozenset({1})),
            "replicas",
            [7.5, 7.5, 15],
            id="who-takes-nothing-gets-no-topic-that-it-does-not-hold",
        ),
        pytest.param(
            held(2, a=(1,)),
            only(("a", {1, 2}), cordoned=frozenset({2})),
            "replicas",
            [1, 0],
            id="the-only-replica",
        ),
        pytest.param(held(3, a=(1,) * 6, b=(3,) * 4), LED_BY_1, "preferred-leaders", [6, 2, 2], id="led-by-one"),
        pytest.param(
            held(3, a=(1,) * 6, b=(3,) * 4), LED_BY_1, "replicas", [3.333333] * 3, id="led-by-one-and-held-by-all"
        ),
    ],
)
def test_shares_are_as_even_as_the_topics_rules_allow(
    state: ClusterState, policy: PlannerPolicy, resource: str, expected: list[float]
) -> None:
    """The fullest broker is as little full as can be, then the next one; who takes nothing has no more than it has now."""
    assert shares(state, resource=resource, policy=policy) == expected


def test_what_brokers_hold_that_are_left_out_is_shared_by_none() -> None:
    """Where no other broker holds anything, each has a share of nothing."""
    left_out = Balance(selection=Selection(exclude_brokers="1"))
    assert shares(held(3, a=(1,) * 4), intent=left_out, policy=only(("a", {1, 2, 3}))) == [0, 0, 0]
