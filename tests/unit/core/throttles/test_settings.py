"""Throttle arithmetic: the worked case, blending with what stands, and restoring exactly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ballast.core.plan import Move
from ballast.core.throttles import (
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_REPLICAS,
    LedgerEntry,
    Op,
    Setting,
    brokers_involved,
    entries,
    follow,
    parse_list,
    settle,
    shortfall,
)

LIST = Setting("topic", "t", FOLLOWER_REPLICAS)
RATE = Setting("broker", "1", FOLLOWER_RATE)
MB = 1_000_000


def applied(ops: Sequence[Op], current: str | None) -> str | None:
    """The value after these changes, as a broker keeps it: a list that lost its last entry is empty and still there."""
    for operation, value in ops:
        standing = parse_list(current)
        match operation:
            case "append":
                current = ",".join([*standing, *(e for e in parse_list(value) if e not in standing)])
            case "subtract":
                current = ",".join(e for e in standing if e not in parse_list(value))
            case _:
                current = value
    return current


def settled(
    aim: Mapping[Setting, frozenset[str]], ledger: dict[Setting, LedgerEntry], current: str | None
) -> tuple[str | None, dict[Setting, LedgerEntry]]:
    """The list and the ledger once nothing is left to settle."""
    while True:
        out = settle(aim, ledger, {LIST: current})
        current = applied(out.changes.get(LIST, ()), current)
        ledger = {s: h for s, h in {**ledger, **out.intent, **out.after}.items() if h is not None}
        if not out.unsettled:
            return current, ledger


entry = st.builds(lambda p, b: f"{p}:{b}", st.integers(0, 5), st.integers(0, 5))
entry_sets = st.frozensets(entry, max_size=6)
priors = st.one_of(st.none(), st.just("*"), st.lists(entry, unique=True, max_size=5).map(",".join))


def test_worked_case() -> None:
    """Partition 1 [1,2]→[2,0], 0 [0,1]→[0,2], 2 a replica list change: who is throttled on which side."""
    moves = [Move("t", 1, (1, 2), (2, 0)), Move("t", 0, (0, 1), (0, 2)), Move("t", 2, (2, 0), (0, 2))]
    found = entries(moves)
    assert found[Setting("topic", "t", LEADER_REPLICAS)] == {"1:1", "1:2", "0:0", "0:1"}
    assert found[Setting("topic", "t", FOLLOWER_REPLICAS)] == {"1:0", "0:2"}
    assert brokers_involved(moves) == {0, 1, 2}


@given(prior=priors, wanted=st.lists(entry_sets, min_size=1, max_size=4))
def test_list_comes_back_exactly(prior: str | None, wanted: list[frozenset[str]]) -> None:
    """Through any series of wants, entries of ours come and go, and in the end the text is what it was."""
    current = prior
    ledger: dict[Setting, LedgerEntry] = {}
    for want in [*wanted, frozenset[str]()]:
        current, ledger = settled({LIST: want} if want else {}, ledger, current)
        if prior != "*":
            assert want <= set(parse_list(current))
        again = settle({LIST: want} if want else {}, ledger, {LIST: current})
        assert not again.changes, "settling twice changes nothing"
    assert current == prior
    assert ledger == {}


@given(
    prior=priors.filter(lambda p: p != "*"),
    first=entry_sets.filter(bool),
    theirs=entry_sets,
    second=entry_sets,
)
def test_what_others_add_meanwhile_stays(
    prior: str | None, first: frozenset[str], theirs: frozenset[str], second: frozenset[str]
) -> None:
    """Entries that another user adds while ours stand are theirs and survive the restoring."""
    current, ledger = settled({LIST: first}, {}, prior)
    added = theirs - set(parse_list(current))
    current = ",".join([*parse_list(current), *sorted(added)]) or None
    current, ledger = settled({LIST: second}, ledger, current)
    current, _ = settled({}, ledger, current)
    assert set(parse_list(current)) == set(parse_list(prior)) | added


@given(prior=priors, theirs=entry_sets)
def test_a_list_of_everything_comes_and_goes(prior: str | None, theirs: frozenset[str]) -> None:
    """``*`` set by hand and taken away again leaves what was there before, and what another user appended meanwhile."""
    everything = {LIST: frozenset({"*"})}
    current, ledger = settled(everything, {}, prior)
    assert parse_list(current) == ["*"]
    assert settled(everything, ledger, current) == (current, ledger)
    current = applied([Op("append", ",".join(sorted(theirs)))], current) if theirs else current
    current, ledger = settled({}, ledger, current)
    assert ledger == {}
    assert set(parse_list(current)) == set(parse_list(prior)) | theirs
    if not theirs:
        assert current == prior


def test_an_entry_that_comes_between_reading_and_writing_stays() -> None:
    """What is sent names our entries alone, so that what stands by then does not matter; empty lists are seen before they go."""
    ours = LedgerEntry(None, frozenset({"0:3", "0:4"}))
    out = settle({LIST: frozenset({"0:4", "0:5"})}, {LIST: ours}, {LIST: "0:3,0:4"})
    assert out.changes == {LIST: [Op("append", "0:5"), Op("subtract", "0:3")]}
    gone = settle({}, {LIST: ours}, {LIST: "0:3,0:4"})
    assert gone.changes == {LIST: [Op("subtract", "0:3,0:4")]}
    assert gone.unsettled == {LIST}, "it stays in the ledger until it has been read again"
    assert LIST not in gone.after
    assert settle({}, {LIST: ours}, {LIST: ""}).changes == {LIST: [Op("delete", None)]}
    joined = settle({}, {LIST: ours}, {LIST: "7:7"})
    assert (joined.changes, joined.after) == ({}, {LIST: None})


def test_crash_between_journal_and_change_is_harmless() -> None:
    """With the intent written and nothing sent, settling again neither forgets the prior value nor doubles an entry."""
    out = settle({LIST: frozenset({"0:3"}), RATE: frozenset({"5"})}, {}, {LIST: "1:1", RATE: "9"})
    ledger = dict(out.intent)
    back = settle({}, ledger, {LIST: "1:1", RATE: "9"})
    assert back.changes == {}
    assert back.after == {LIST: None, RATE: None}
    on = settle({LIST: frozenset({"0:3"}), RATE: frozenset({"5"})}, ledger, {LIST: "1:1", RATE: "9"})
    assert on.changes == {LIST: [Op("append", "0:3")], RATE: [Op("set", "5")]}
    assert on.intent[RATE].prior == "9"


def test_rate_of_a_cluster_default_comes_back_by_deleting_ours() -> None:
    """A broker that only inherits a rate gets its own for the run and loses it afterwards."""
    out = settle({RATE: frozenset({"5"})}, {}, {RATE: None})
    assert out.changes == {RATE: [Op("set", "5")]}
    assert settle({}, {RATE: LedgerEntry(None, frozenset({"5"}))}, {RATE: "5"}).changes == {RATE: [Op("delete", None)]}


def test_rate_that_another_user_changed_is_left() -> None:
    """A value that is neither ours nor the one before belongs to the user who set it."""
    out = settle({}, {RATE: LedgerEntry("9", frozenset({"5"}))}, {RATE: "7"})
    assert out.changes == {}
    assert out.taken_over == {RATE: "7"}
    assert out.after == {RATE: None}


def test_rate_that_another_user_took_over_is_theirs_for_the_rest_of_the_run() -> None:
    """The next occasion does not set it over, whatever they change it to; it ends with the run, or when they take it away."""
    wanted = {RATE: frozenset({"5"})}
    first = settle(wanted, {RATE: LedgerEntry("9", frozenset({"5"}))}, {RATE: "7"})
    assert (first.changes, first.taken_over) == ({}, {RATE: "7"})
    left = first.after[RATE]
    assert left == LedgerEntry("7", frozenset())
    for theirs in ("7", "6"):
        again = settle(wanted, {RATE: left}, {RATE: theirs})
        assert (again.changes, again.taken_over) == ({}, {})
    ended = settle({}, {RATE: left}, {RATE: "7"})
    assert (ended.changes, ended.after) == ({}, {RATE: None})
    gone = settle(wanted, {RATE: left}, {RATE: None})
    assert (gone.changes, gone.intent) == ({RATE: [Op("set", "5")]}, {RATE: LedgerEntry(None, frozenset({"5"}))})
    assert settle({}, {RATE: left}, {RATE: None}).changes == {}


def test_existing_rates_can_be_kept() -> None:
    """With ``keep_existing_rates`` a broker that has a rate keeps it, and one that has none gets ours."""
    other = Setting("broker", "2", FOLLOWER_RATE)
    aim = {RATE: frozenset({"5"}), other: frozenset({"5"})}
    assert settle(aim, {}, {RATE: "9", other: None}, keep_existing_rates=True).changes == {other: [Op("set", "5")]}


def test_a_rate_that_stands_as_wanted_is_not_ours() -> None:
    """A person's own rate, which the run would take away otherwise."""
    found = settle({RATE: frozenset({"5"})}, {}, {RATE: "5"})
    assert (found.changes, found.intent, found.after) == ({}, {}, {})


def test_shortfall_shows_the_arithmetic() -> None:
    """The leader side sends to every new replica; the sentence holds the figures."""
    move = Move("t", 0, (1,), (2, 3))
    assert shortfall(move, 1, 4 * MB, {1: 10 * MB, 2: 10 * MB, 3: 10 * MB}) is None
    lack = shortfall(move, 1, 4 * MB, {1: 5 * MB, 2: 10 * MB, 3: 10 * MB})
    assert lack is not None
    assert (lack.name, lack.broker, lack.side, lack.inbound_bytes_per_s) == (move.name, 1, "leader", 8 * MB)
    assert lack.needed_bytes_per_s == 10 * MB + 1
    assert "7.6 MiB/s" in str(lack)
    assert "4.8 MiB/s" in str(lack)
    assert "at least 9.5 MiB/s" in str(lack)
    assert "must send for this move" in str(lack)
    assert "behind by 2.9 MiB" in str(lack)


@pytest.mark.parametrize("rate", [4 * MB, 4 * MB + 1])
def test_a_copy_that_only_just_keeps_up_does_not_fall_behind(rate: int) -> None:
    """It would never end, and no figure says so."""
    lack = shortfall(Move("t", 0, (1,), (2, 3)), -1, 4 * MB, {2: rate})
    assert lack is not None
    assert (lack.broker, lack.side) == (2, "follower")
    assert "must fetch for this move" in str(lack)
    assert "behind by" not in str(lack)


@pytest.mark.parametrize(
    ("rate", "used", "suffer", "expected"),
    [
        (8, 8, False, 10),
        (8, 1, False, 8),
        (8, 8, True, 4),
        (2, 2, True, 2),
        (15, 15, False, 16),
        (10, 7, False, 12),
        (3, 3, False, 4),
    ],
)
def test_follow(rate: int, used: float, *, suffer: bool, expected: int) -> None:
    """Grow by a quarter while used, halve when others suffer, stay within the bounds."""
    assert follow(rate, used_bytes_per_s=used, bystanders_suffer=suffer, minimum=2, maximum=16) == expected


def test_a_move_that_copies_nothing_involves_no_broker() -> None:
    """Its brokers get neither entries nor rates."""
    free = Move("t", 0, (1, 2), (2, 1)), Move("t", 1, (3, 4), (3,))
    assert brokers_involved(free) == frozenset()
    assert entries(free) == {}
    assert entries([*free, Move("t", 2, (5, 6), (5, 7))])[LIST] == {"2:7"}
    assert brokers_involved([*free, Move("t", 2, (5, 6), (5, 7))]) == {5, 6, 7}


def test_nothing_is_added_to_a_list_that_throttles_everything() -> None:
    """``*`` throttles every replica, ours too, and a list takes nothing beside it: there is nothing to add or to restore."""
    found = settle({LIST: frozenset({"0:1"})}, {}, {LIST: "*"})
    assert (found.changes, found.intent, found.after) == ({}, {}, {})


def test_a_line_covers_what_stands_and_what_will() -> None:
    """Before the change both, so that a death in between loses neither; afterwards what stands then; the second time nothing."""
    found = settle({LIST: frozenset({"0:2"})}, {LIST: LedgerEntry("7:7", frozenset({"0:1"}))}, {LIST: "7:7,0:1"})
    assert found.intent == {LIST: LedgerEntry("7:7", frozenset({"0:1", "0:2"}))}
    assert found.changes == {LIST: [Op("append", "0:2"), Op("subtract", "0:1")]}
    assert found.after == {LIST: LedgerEntry("7:7", frozenset({"0:2"}))}
    standing = {LIST: LedgerEntry("7:7", frozenset({"0:2"}))}
    again = settle({LIST: frozenset({"0:2"})}, standing, {LIST: "7:7,0:2"})
    assert (again.intent, again.changes, again.after, again.unsettled) == ({}, {}, {}, set())


def test_entries_are_sent_in_the_order_of_partitions_and_brokers() -> None:
    """By their numbers: a person reads them in logs."""
    found = settle({LIST: frozenset({"10:3", "2:10", "2:3"})}, {}, {LIST: None})
    assert found.changes == {LIST: [Op("append", "2:3,2:10,10:3")]}


@pytest.mark.parametrize(
    ("now", "ops", "unsettled"),
    [
        pytest.param("0:1,7:7", [Op("subtract", "0:1")], False, id="others-are-in-it"),
        pytest.param("0:1", [Op("subtract", "0:1")], True, id="alone"),
        pytest.param("", [Op("delete", None)], False, id="seen-empty"),
        pytest.param("7:7", [], False, id="ours-are-gone"),
        pytest.param(None, [], False, id="no-list"),
    ],
)
def test_a_list_is_deleted_only_when_it_is_seen_empty(now: str | None, ops: list[Op], *, unsettled: bool) -> None:
    """And a line is written beforehand only where something is sent."""
    held = LedgerEntry(None, frozenset({"0:1"}))
    found = settle({}, {LIST: held}, {LIST: now})
    assert found.changes == ({LIST: ops} if ops else {})
    assert found.intent == ({LIST: held} if ops else {})
    assert found.unsettled == ({LIST} if unsettled else set())
    assert found.after == ({} if unsettled else {LIST: None})


def test_a_list_whose_other_entries_are_gone_is_deleted_when_it_is_seen_empty() -> None:
    """There were entries before us, which a user removed since: only a list that was empty before us stays empty."""
    assert settle({}, {LIST: LedgerEntry("7:7", frozenset({"0:1"}))}, {LIST: "0:1"}).unsettled == {LIST}
    assert settle({}, {LIST: LedgerEntry("", frozenset({"0:1"}))}, {LIST: "0:1"}).after == {LIST: None}


def test_a_list_of_everything_that_stands_is_not_ours() -> None:
    """A person's ``*`` would be taken away with the run."""
    found = settle({LIST: frozenset({"*"})}, {}, {LIST: "*"})
    assert (found.changes, found.intent, found.after) == ({}, {}, {})


def test_a_list_of_everything_remembers_what_was_there_before_us() -> None:
    """Not our own entries, which stand there by now; where no list stands nothing is overwritten."""
    found = settle({LIST: frozenset({"*"})}, {LIST: LedgerEntry("7:7", frozenset({"0:1"}))}, {LIST: "7:7,0:1"})
    assert found.intent == {LIST: LedgerEntry("7:7", frozenset({"*"}))}
    assert found.changes == {LIST: [Op("set", "*")]}
    assert settle({LIST: frozenset({"*"})}, {}, {LIST: None}).changes == {LIST: [Op("append", "*")]}


def test_what_a_list_of_everything_replaced_comes_back_beside_what_others_added() -> None:
    """Each entry once; only a list that nothing comes back to is looked at again, to be deleted when it is empty."""
    ours = frozenset({"*"})
    back = settle({}, {LIST: LedgerEntry("7:7,8:8", ours)}, {LIST: "*,8:8"})
    assert back.changes == {LIST: [Op("subtract", "*"), Op("append", "7:7")]}
    assert (back.unsettled, back.after) == (set(), {LIST: None})
    whole = settle({}, {LIST: LedgerEntry("7:7", ours)}, {LIST: "*"})
    assert (whole.unsettled, whole.after) == (set(), {LIST: None})
    others = settle({}, {LIST: LedgerEntry(None, ours)}, {LIST: "*,8:8"})
    assert (others.unsettled, others.after) == (set(), {LIST: None})
    nothing = settle({}, {LIST: LedgerEntry(None, ours)}, {LIST: "*"})
    assert nothing.changes == {LIST: [Op("subtract", "*")]}
    assert (nothing.unsettled, nothing.after) == ({LIST}, {})
