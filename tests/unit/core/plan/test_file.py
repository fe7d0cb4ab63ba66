"""The plan file keeps a plan whole and refuses whatever is not one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ballast.core.cluster import TopicPartition
from ballast.core.plan import Move, Obstacle, Plan, Purpose, Reason
from ballast.core.plan.file import dumps, kafka_json, loads
from ballast.core.planner.report.sentences import obstacle
from ballast.errors import UsageError

PLAN = Plan(
    intent="balance",
    cluster_id="c",
    fingerprint="sha256:00",
    moves=(
        Move("a", 0, (1, 2), (3, 2), 10, Reason("disk", "broker 1 is 7 % over")),
        Move("a", 1, (1, 2), (2, 1), reason=Reason("leaders"), log_dirs=("any", "/d1")),
    ),
    elections=(TopicPartition("a", 1),),
    status="misses-some-goals",
    obstacles=(
        obstacle("selection", "a-0", replicas=3, brokers=(2, 3)),
        obstacle("sole-leader", "a-1", "remaining-replica", broker=1),
        Obstacle("too-big", "a-0", "larger than the band", "split it"),
    ),
    assumptions=("CPU follows bytes",),
    seed=7,
    bound_bytes=9,
    bound_method="lp",
    in_order=True,
    purpose=Purpose("evacuate", (3, 4), ("a",)),
    summary={"replica_moves": 1, "replica_list_changes": 1, "bytes_moved": None, "empty_afterwards": [3]},
)

brokers = st.lists(st.integers(0, 99), min_size=1, max_size=5, unique=True).map(tuple)
moves = st.builds(
    Move,
    topic=st.text(min_size=1, max_size=8),
    partition=st.integers(0, 9),
    old=brokers,
    new=brokers,
    size_bytes=st.integers(-1, 2**50),
    reason=st.builds(Reason, st.text(), st.text()),
)


def test_a_file_that_tells_no_figures_of_its_obstacles_is_read() -> None:
    """Files that were written before there were any: their sentences are all that there is."""
    document = json.loads(dumps(PLAN))
    document["obstacles"] = [{k: o[k] for k in ("code", "subject", "detail", "remedy")} for o in document["obstacles"]]
    read = loads(json.dumps(document)).obstacles
    assert [(o.code, o.detail, o.remedy) for o in read] == [(o.code, o.detail, o.remedy) for o in PLAN.obstacles]
    assert {(o.cause, len(o.values)) for o in read} == {("", 0)}


@pytest.mark.slow
@given(st.lists(moves, max_size=6, unique_by=lambda m: m.name))
def test_a_plan_comes_back_as_it_was(some: list[Move]) -> None:
    """Whatever the moves, reading what was written gives the same plan."""
    plan = Plan("balance", "c", "f", tuple(some))
    assert loads(dumps(plan)) == plan


def test_every_field_survives() -> None:
    """Obstacles, elections, log dirs, bound and summary come back."""
    assert loads(dumps(PLAN)) == PLAN


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"kind": "Riddle"}, "not a Ballast plan"),
        ({"apiVersion": "ballast/v99"}, "version 'ballast/v99'"),
        ({"moves": 3}, "p.json: moves: "),
        ({"moves": [{"topic": "a"}]}, "p.json: moves[0].partition: "),
        ({"status": "great"}, "p.json: status: "),
        ({"seed": True}, "p.json: seed: "),
        ({"fingerprint": None}, "p.json: fingerprint: "),
        ({"createdAt": "2026-13-01T00:00:00.000Z"}, "p.json: createdAt: "),
        ({"created_at": None}, "p.json: created_at: "),
        ({"summary": {"riddles": 3}}, "p.json: summary.riddles: "),
    ],
)
def test_what_is_not_a_plan_is_named(change: dict[str, object], sentence: str) -> None:
    """A damaged field is refused with its place."""
    document = json.loads(dumps(PLAN)) | change
    with pytest.raises(UsageError) as refused:
        loads(json.dumps(document), source="p.json")
    assert sentence in str(refused.value)


@pytest.mark.parametrize(
    ("new", "sentence"),
    [([], r"moves\[0\].new: "), ([1, 1], "different broker ids"), ([1, "2"], r"moves\[0\].new\[1\]: ")],
)
def test_replica_lists_are_checked(new: list[object], sentence: str) -> None:
    """A hand-edited list that repeats a broker, or is empty, is refused."""
    document = json.loads(dumps(PLAN))
    document["moves"][0]["new"] = new
    with pytest.raises(UsageError, match=sentence):
        loads(json.dumps(document))


def test_a_partition_is_moved_once() -> None:
    """Two moves of one partition are refused: which of them is meant cannot be told."""
    document = json.loads(dumps(PLAN))
    document["moves"].append(document["moves"][0])
    with pytest.raises(UsageError, match="a-0 is moved twice"):
        loads(json.dumps(document))


@pytest.mark.parametrize(
    ("written", "instead", "sentence"),
    [
        ('"moves": [', '"moves": [], "moves": [', "p.json: moves: this key is there twice."),
        ('"new":[3,2]', '"new":[3,2],"n\\u0065w":[3,1]', "p.json: moves[0].new: this key is there twice."),
        ('"cause": "remaining-replica"', '"code": "selection"', "p.json: obstacles[1].code: this key is there twice."),
    ],
)
def test_a_key_is_there_once(written: str, instead: str, sentence: str) -> None:
    """Readers of JSON take one of the two, even where a key that may be absent is absent as well."""
    text = dumps(PLAN)
    assert written in text
    with pytest.raises(UsageError) as refused:
        loads(text.replace(written, instead, 1), source="p.json")
    assert sentence in str(refused.value)


@pytest.mark.parametrize("number", ["1e400", "Infinity", "NaN"])
def test_a_number_without_end_is_refused(number: str) -> None:
    """Also where anything may be: it would be null when the plan is written again."""
    document = json.loads(dumps(PLAN)) | {"request": {"policy": {"band": "number"}}}
    with pytest.raises(UsageError, match=r"p\.json: request: should hold finite numbers only"):
        loads(json.dumps(document).replace('"number"', number), source="p.json")
    document = json.loads(dumps(PLAN))
    document["obstacles"][0]["parameters"] = {"share": "number"}
    with pytest.raises(UsageError, match=r"p.json: obstacles\[0\].parameters: should hold finite"):
        loads(json.dumps(document).replace('"number"', number), source="p.json")


def test_text_that_is_not_json_is_one_sentence() -> None:
    """A truncated file says so."""
    with pytest.raises(UsageError, match="not JSON"):
        loads(dumps(PLAN)[:-20])


def test_stock_json_has_the_new_lists() -> None:
    """Kafka's own tool takes the result."""
    first, second = json.loads(kafka_json(PLAN))["partitions"]
    assert first == {"topic": "a", "partition": 0, "replicas": [3, 2], "log_dirs": ["any", "any"]}
    assert second["log_dirs"] == ["any", "/d1"]


@pytest.mark.parametrize("parameters", [{"0a": 1}, {"byTopic": {"a_b": 1}}])
def test_a_figure_of_another_style_is_refused(parameters: dict[str, Any]) -> None:
    """It would have another name when the plan is written again."""
    document = json.loads(dumps(PLAN))
    document["obstacles"][0]["parameters"] = parameters
    with pytest.raises(UsageError, match=r"p.json: obstacles\[0\].parameters: should have keys in camelCase"):
        loads(json.dumps(document), source="p.json")
