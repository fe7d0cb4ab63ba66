"""The stock tools' files: what is read, what is written, and one message for each thing that can be wrong."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ballast.core.cluster import Broker, ClusterState, LogDir, PartitionRow, Topic, TopicPartition, build
from ballast.core.stock.checks import check_against, check_election, check_entries, check_topics, moves
from ballast.core.stock.files import (
    ReassignmentEntry,
    StockFormatError,
    format_reassignment,
    parse_broker_list,
    parse_election,
    parse_reassignment,
    parse_topics_to_move,
)

ENTRY = {"topic": "a", "partition": 0, "replicas": [1, 2]}


def reassignment(*entries: dict[str, object], **more: object) -> str:
    """A reassignment file of these entries."""
    return json.dumps({"partitions": list(entries), **more})


def test_reassignment_with_and_without_log_dirs() -> None:
    """Missing versions and unknown keys are forgiven; ``log_dirs`` is kept apart from its absence."""
    text = reassignment({**ENTRY, "why": "x"}, {**ENTRY, "partition": 1, "log_dirs": ["any", "/d"]}, comment=[1])
    assert parse_reassignment(text) == (
        ReassignmentEntry("a", 0, (1, 2)),
        ReassignmentEntry("a", 1, (1, 2), ("any", "/d")),
    )
    assert parse_reassignment("{}") == ()
    assert parse_reassignment(' {"version": 1, "partitions": []} and more') == ()


@pytest.mark.parametrize(
    ("text", "place", "reason"),
    [
        ("", "", "the file is empty"),
        ("  \n", "", "the file is empty"),
        ("\ufeff{}", "", "begins with a byte order mark"),
        ('{"partitions":\n [}', "line 2 column 3", "not valid JSON"),
        ('{"a":1,\n"b":2,\n ]}\n\n', "line 3 column 2", "not valid JSON"),
        ("[]", "", "expected a JSON object, found []"),
        ('{"version": 2}', "version", "version 2 is not supported"),
        ('{"version": null}', "version", "expected a whole number"),
        ('{"partitions": {}}', "partitions", "expected a JSON array"),
        ('{"partitions": [3]}', "partitions[0]", "expected a JSON object, found 3"),
        (reassignment({"partition": 0, "replicas": []}), "partitions[0]", 'the field "topic" is missing'),
        (reassignment({**ENTRY, "topic": 5}), "partitions[0].topic", "expected a string, found 5"),
        (reassignment({**ENTRY, "partition": "0"}), "partitions[0].partition", 'found "0"'),
        (reassignment({**ENTRY, "partition": 1.0}), "partitions[0].partition", "found 1.0"),
        (reassignment({**ENTRY, "partition": True}), "partitions[0].partition", "found true"),
        (reassignment({**ENTRY, "replicas": [1, 1 << 31]}), "partitions[0].replicas[1]", "found 2147483648"),
        (reassignment(ENTRY, {**ENTRY, "log_dirs": ["any"]}), "partitions[1].log_dirs", "2 replicas and 1 log dirs"),
        (reassignment({**ENTRY, "log_dirs": None}), "partitions[0].log_dirs", "expected a JSON array"),
        ('{"partitions": NaN}', "", "NaN is no JSON number"),
        ("[" * 100_000, "", "nested too deeply"),
        ('{"x": ' + "1" * 1001 + "}", "", "a number of 1001 digits"),
    ],
)
def test_what_kafka_refuses_to_read(text: str, place: str, reason: str) -> None:
    """The message names the file, the place and the reason."""
    with pytest.raises(StockFormatError) as caught:
        parse_reassignment(text, source="moves.json")
    assert caught.value.message.startswith("moves.json: ")
    (problem,) = caught.value.problems
    assert problem.place == place
    assert reason in problem.reason


def test_topics_to_move() -> None:
    """In order, without duplicates."""
    assert parse_topics_to_move('{"topics": [{"topic": "b"}, {"topic": "a", "x": 1}], "version": 1}') == ("b", "a")
    assert parse_topics_to_move("{}") == ()
    with pytest.raises(StockFormatError, match=r"^f: the list of topics contains duplicate entries: a"):
        parse_topics_to_move('{"topics": [{"topic": "a"}, {"topic": "a"}]}', source="f")
    with pytest.raises(StockFormatError, match=r"topics\[1\]: the field \"topic\" is missing"):
        parse_topics_to_move('{"topics": [{"topic": "a"}, {}]}')


def test_election() -> None:
    """``partitions`` is required here, a version is not looked at."""
    assert parse_election('{"version": 9, "partitions": [{"topic": "b", "partition": 1}]}') == (TopicPartition("b", 1),)
    with pytest.raises(StockFormatError, match=r'^f: the field "partitions" is missing'):
        parse_election("{}", source="f")
    with pytest.raises(StockFormatError, match="more than once: a-0"):
        parse_election('{"partitions": [{"topic": "a", "partition": 0}, {"topic": "a", "partition": 0}]}')


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "'' is not a broker id"),
        ("0,x", "'x' is not a broker id"),
        ("0, 1", "' 1' is not a broker id"),
        ("0,,1", "'' is not a broker id"),
        ("0,99999999999", "is not a broker id"),
        ("0,1,0", "duplicate entries: 0"),
        ("0,-1", "not negative: -1"),
    ],
)
def test_broker_lists_that_are_refused(text: str, reason: str) -> None:
    """Each with its reason."""
    with pytest.raises(StockFormatError) as caught:
        parse_broker_list(text, source="f")
    assert reason in caught.value.message
    assert caught.value.message.startswith("f: ")
    assert ": :" not in caught.value.message
    assert {problem.place for problem in caught.value.problems} == {""}
    assert ("without space" in (caught.value.hint or "")) is ("is not a broker id" in reason)


def test_broker_list() -> None:
    """Plain ids, in the order given; trailing commas do not matter."""
    assert parse_broker_list("2,0,+1,,") == (2, 0, 1)
    assert parse_broker_list("2,") == (2,)
    assert parse_broker_list("2147483647") == (2147483647,)


def test_whole_numbers_have_32_bits() -> None:
    """The least and the greatest are read; the checks refuse what is negative."""
    (entry,) = parse_reassignment(reassignment({**ENTRY, "replicas": [-(1 << 31), (1 << 31) - 1]}))
    assert entry.replicas == (-2147483648, 2147483647)


def test_what_helps_is_told_with_the_refusal() -> None:
    """For a byte order mark and for log dirs that do not fit the replicas."""
    with pytest.raises(StockFormatError) as caught:
        parse_reassignment("\ufeff{}")
    assert caught.value.hint == "Save it as UTF-8 without a byte order mark (BOM)."
    with pytest.raises(StockFormatError) as caught:
        parse_reassignment(reassignment({**ENTRY, "log_dirs": ["any"]}))
    assert caught.value.hint == 'Write "any" where the broker may choose, or leave log_dirs out.'


def test_format_is_the_stock_tools_line() -> None:
    """Byte for byte what ``kafka-reassign-partitions`` prints for two partitions."""
    text = format_reassignment({TopicPartition("b", 10): (3, 1), TopicPartition("a", 2): (1,)})
    assert text == (
        '{"version":1,"partitions":[{"topic":"a","partition":2,"replicas":[1],"log_dirs":["any"]},'
        '{"topic":"b","partition":10,"replicas":[3,1],"log_dirs":["any","any"]}]}'
    )


@given(
    st.dictionaries(
        st.builds(TopicPartition, st.text("ab._-", min_size=1, max_size=4), st.integers(0, 99)),
        st.lists(st.integers(0, 9), min_size=1, max_size=4, unique=True).map(tuple),
        max_size=8,
    )
)
def test_reassignments_round_trip(assignment: dict[TopicPartition, tuple[int, ...]]) -> None:
    """What is written reads back the same, and in order."""
    entries = parse_reassignment(format_reassignment(assignment))
    assert {e.name: e.replicas for e in entries} == assignment
    assert [e.name for e in entries] == sorted(assignment)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["topics", "partitions", "topic", "partition", "replicas", "log_dirs", "version", "x"]),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@given(st.text() | json_values.map(json.dumps))
def test_whatever_is_in_a_file_it_is_read_or_refused(text: str) -> None:
    """Nothing but a value or a named refusal comes out, from any text."""
    for parse in (parse_reassignment, parse_topics_to_move, parse_election, parse_broker_list):
        # Any other exception than the refusal fails the test.
        with suppress(StockFormatError):
            assert isinstance(parse(text), tuple)


def test_the_example_in_the_documents() -> None:
    """The message that docs/formats.md shows is the one that the code gives."""
    entries = [ReassignmentEntry("orders", i, {3: (1, 2, 2), 5: ()}.get(i, (1,))) for i in range(6)]
    with pytest.raises(StockFormatError) as caught:
        check_entries(entries, source="moves.json")
    document = Path(__file__).parents[4] / "docs" / "formats.md"
    assert f"\n{caught.value.message}\n" in document.read_text()


def cluster() -> ClusterState:
    """Brokers 1 and 2 live, 3 and 4 are down, ``gone`` is being deleted."""
    dirs = (LogDir("/d1"), LogDir("/d2"))
    brokers = (Broker(1, log_dirs=dirs, log_dirs_known=True), Broker(2), Broker(3, alive=False), Broker(4, alive=False))
    rows = [
        PartitionRow("a", 0, 1, (1, 3), (1,), sizes=(70, 50)),
        PartitionRow("gone", 0, 1, (1,), (1,)),
    ]
    return build("c", brokers, (Topic("a"), Topic("gone", deleting=True)), rows)


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        (ReassignmentEntry("b", 0, (1,)), "topic b does not exist"),
        (ReassignmentEntry("gone", 0, (1,)), "topic gone is being deleted"),
        (ReassignmentEntry("a", 7, (1,)), "topic a has no partition 7"),
        (ReassignmentEntry("a", 0, (1, 9)), "broker 9 is unknown"),
        (ReassignmentEntry("a", 0, (1, 4)), "broker 4 is down and cannot take a new replica"),
        (ReassignmentEntry("a", 0, (1, 2), ("/x", "/y")), "broker 1 has no log dir /x; it has /d1, /d2"),
    ],
)
def test_what_the_cluster_cannot_do(entry: ReassignmentEntry, reason: str) -> None:
    """Each obstacle has its own sentence; the log dirs of a broker that did not say are believed."""
    with pytest.raises(StockFormatError) as caught:
        check_against([entry], cluster(), source="moves.json")
    (problem,) = caught.value.problems
    assert problem.place.startswith("partitions[0]")
    assert reason in problem.reason


def test_a_down_broker_may_keep_what_it_has() -> None:
    """Nothing is copied to a replica that stays, so a down broker in the old list is no obstacle."""
    check_against([ReassignmentEntry("a", 0, (3, 1))], cluster())


@pytest.mark.parametrize(
    ("entries", "place", "reason"),
    [
        ([], "partitions", "the list of partitions is empty"),
        ([ReassignmentEntry("a", 0, (1,))] * 2, "partitions", "a-0 is listed 2 times"),
        ([ReassignmentEntry("a", 0, ())], "partitions[0].replicas", "the replica list of a-0 is empty"),
        ([ReassignmentEntry("a", 0, (1, 2, 1))], "partitions[0].replicas", "a-0 lists broker 1 2 times"),
        ([ReassignmentEntry("a", 0, (1, -2))], "partitions[0].replicas", "a broker id is not negative: -2"),
        ([ReassignmentEntry("a", -1, (1,))], "partitions[0].partition", "a partition number is not negative: -1"),
        (
            [ReassignmentEntry("b", 0, (1, 2), ("any", "/d")), ReassignmentEntry("a", 0, (1,), ("d",))],
            "partitions[1].log_dirs",
            'an absolute path, not "d"',
        ),
    ],
)
def test_what_a_file_may_not_ask(entries: list[ReassignmentEntry], place: str, reason: str) -> None:
    """Refused before any cluster is asked, with the place in the file."""
    with pytest.raises(StockFormatError) as caught:
        check_entries(entries)
    (problem,) = caught.value.problems
    assert problem.place == place
    assert reason in problem.reason


def test_every_problem_is_listed_and_the_message_stays_short() -> None:
    """Five are shown, the rest are counted."""
    with pytest.raises(StockFormatError, match="and 3 more problems") as caught:
        check_entries([ReassignmentEntry("a", i, ()) for i in range(8)])
    assert len(caught.value.problems) == 8
    for count, more in ((5, 0), (6, 1)):
        with pytest.raises(StockFormatError) as caught:
            check_entries([ReassignmentEntry("a", i, ()) for i in range(count)])
        assert caught.value.message.count("is empty") == 5
        assert caught.value.message.endswith("; and 1 more problems" if more else "is empty")


def test_topics_and_elections_are_checked_against_the_cluster() -> None:
    """Unknown and dying topics, unknown partitions."""
    check_topics(["a"], cluster())
    check_election([TopicPartition("a", 0)], cluster())
    with pytest.raises(
        StockFormatError, match=r"^f: topics\[1\]: topic b does not exist; topics\[2\]: topic gone is being"
    ):
        check_topics(["a", "b", "gone"], cluster(), source="f")
    with pytest.raises(StockFormatError, match=r"^f: partitions\[0\]: topic a has no partition 1"):
        check_election([TopicPartition("a", 1)], cluster(), source="f")


def test_moves_leave_out_what_is_already_so() -> None:
    """An entry that changes nothing is no move; a log dir makes it one."""
    entries = [ReassignmentEntry("a", 0, (1, 3), ("any", "any"))]
    assert moves(entries, cluster()) == ()
    (move,) = moves([ReassignmentEntry("a", 0, (2, 1))], cluster())
    assert (move.old, move.new, move.size_bytes, move.log_dirs) == ((1, 3), (2, 1), 70, None)
    (move,) = moves([ReassignmentEntry("a", 0, (1, 3), ("/d2", "any"))], cluster())
    assert move.log_dirs == ("/d2", "any")
