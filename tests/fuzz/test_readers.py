"""Everything that a person, another tool or another version may hand over is understood or refused with a sentence.

Any other exception is a bug in a reader, and at three in the morning it would be a traceback instead of an answer.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.fuzz.mangling import spoilt_text, spoilt_tree, understood_or_refused

from ballast.adapters.jaas import parse_jaas
from ballast.adapters.properties import read_properties
from ballast.adapters.security import Security
from ballast.cli.plan_options import partition_of, seconds_of, size_of
from ballast.core.cluster import TopicPartition
from ballast.core.placement import format_manual, parse_manual
from ballast.core.plan import Move, Obstacle, Plan, Reason
from ballast.core.plan_file import dumps, loads
from ballast.core.stock_json import (
    format_reassignment,
    parse_broker_list,
    parse_election,
    parse_reassignment,
    parse_topics_to_move,
)
from ballast.errors import BallastError
from ballast.executor.history import load_summaries
from ballast.executor.policy import ExecutionPolicy
from ballast.executor.records import dump_run, load_runs
from ballast.executor.run import Now, Phase, new_run
from ballast.ports.journal import Holder, Record, Request
from ballast.ports.journal_codec import (
    LEASE_KEY,
    Entry,
    JournalView,
    decode_request,
    encode_lease,
    encode_record,
    encode_request,
)
from ballast.settings.load import load_settings
from ballast.sim.scenario_text import parse

SCENARIOS: Final = sorted((Path(__file__).parents[1] / "sim" / "scenarios").glob("*.txt"))
thorough = settings(max_examples=800, suppress_health_check=list(HealthCheck))

REASSIGNMENT: Final = json.dumps(
    {"version": 1, "partitions": [{"topic": "a", "partition": 0, "replicas": [1, 2], "log_dirs": ["any", "/d"]}]}
)
TOPICS: Final = '{"version": 1, "topics": [{"topic": "a"}, {"topic": "b"}]}'
ELECTION: Final = '{"version": 1, "partitions": [{"topic": "a", "partition": 0}]}'


@pytest.mark.parametrize(
    ("read", "valid"),
    [
        (parse_reassignment, REASSIGNMENT),
        (parse_topics_to_move, TOPICS),
        (parse_election, ELECTION),
        (parse_broker_list, "0,1,2"),
        (parse_manual, "0:1:2,1:2:0"),
        (partition_of, "orders-3"),
        (lambda text: size_of(text, "--max-bytes"), "1.5GiB"),
        (lambda text: seconds_of(text, "--deadline"), "2h"),
    ],
    ids=[
        "reassignment",
        "topics to move",
        "election",
        "broker list",
        "manual placement",
        "partition",
        "size",
        "duration",
    ],
)
def test_stock_files_and_words(read: Callable[[str], Any], valid: str) -> None:
    """The stock tools' files and the words of the command line."""
    assert read(valid)

    @thorough
    @given(spoilt_text([valid]))
    def try_one(text: str) -> None:
        understood_or_refused(lambda: read(text))

    try_one()


@thorough
@given(spoilt_tree(json.loads(REASSIGNMENT)))
def test_a_reassignment_that_is_understood_is_written_as_it_was_read(tree: Any) -> None:
    """What the strict reader accepts loses nothing on the way out."""
    read = understood_or_refused(lambda: parse_reassignment(json.dumps(tree)))
    if read:
        text = format_reassignment({TopicPartition(e.topic, e.partition): e.replicas for e in read})
        again = {(e.topic, e.partition): e.replicas for e in parse_reassignment(text)}
        assert again == {(e.topic, e.partition): e.replicas for e in read}


brokers = st.lists(st.integers(0, 2**31 - 1), min_size=3, max_size=3, unique=True)


@thorough
@given(st.lists(brokers, min_size=1, max_size=8))
def test_a_manual_placement_comes_back(rows: list[list[int]]) -> None:
    """Out and in again, for every list of brokers that Kafka's form can say."""
    placed = {i: tuple(replicas) for i, replicas in enumerate(rows)}
    assert parse_manual(format_manual(placed)) == placed


PLAN: Final = Plan(
    intent="level",
    cluster_id="c",
    fingerprint="sha256:00",
    moves=(
        Move("a", 0, (1, 2), (3, 2), 10, Reason("disk", "over")),
        Move("a", 1, (1, 2), (2, 1), log_dirs=("any", "/d")),
    ),
    elections=(TopicPartition("a", 1),),
    status="partial",
    obstacles=(Obstacle("too-big", "a-0", "larger than the band", "split it"),),
    summary={"before": {"1": 3}},
)


@thorough
@given(spoilt_tree(json.loads(dumps(PLAN))))
def test_plan_files(tree: Any) -> None:
    """A plan that was edited by hand is a plan, exactly, or refused."""
    plan = understood_or_refused(lambda: loads(json.dumps(tree)))
    if plan is not None:
        assert loads(dumps(plan)) == plan


@thorough
@given(spoilt_text([dumps(PLAN)]))
def test_torn_plan_files(text: str) -> None:
    """A file that was cut or pasted badly."""
    understood_or_refused(lambda: loads(text))


RUN: Final = new_run("r1", PLAN, ExecutionPolicy(throttle=5), Now(ms=1, s=1.0))


ENDED: Final = replace(RUN, id="r0", phase=Phase.ENDED)


@thorough
@given(spoilt_tree([{"key": r.key, "value": r.value} for r in (*dump_run(RUN), *dump_run(ENDED))]))
def test_records_of_runs(tree: Any) -> None:
    """A journal that another version, or something else, wrote into."""
    try:
        records = [Record(str(row["key"]), row["value"]) for row in tree if isinstance(row["value"], dict)]
    except (TypeError, KeyError):
        return  # This was no list of records any more.
    understood_or_refused(lambda: load_runs(records, Now(ms=2, s=2.0)))
    understood_or_refused(lambda: load_summaries(records, Now(ms=2, s=2.0)))


def entries() -> list[Entry]:
    """A journal's log: a lease, a short record and one in pieces."""
    holder = Holder(id="pod-0", description="pod-0", since_ms=1, doing="levels")
    long = Record("move/r1/a-0", {"version": 1, "detail": "x" * 40})
    return [
        (LEASE_KEY, encode_lease(holder, 1)),
        *encode_record(Record("k", {"v": 1})),
        *encode_record(long, piece_bytes=16),
    ]


@thorough
@given(st.data())
def test_entries_of_the_journal(data: st.DataObject) -> None:
    """A log with bytes that are not Ballast's is refused, never guessed."""
    log = entries()
    place = data.draw(st.integers(0, len(log) - 1))
    key, value = log[place]
    assert value is not None
    text = data.draw(spoilt_text([value.decode()]))
    log[place] = (key, text.encode("utf-8", "surrogatepass"))
    view = JournalView(log)
    understood_or_refused(view.records)
    understood_or_refused(view.lease)


@thorough
@given(st.data())
def test_requests_of_others(data: st.DataObject) -> None:
    """Anybody with the right to write may send a request; a spoilt one must not stop the holder."""
    request = Request(id="1", kind="cancel", by="page", at_ms=1, body={"run": "r1"})
    tree = data.draw(spoilt_tree(json.loads(encode_request(request))))
    text = data.draw(st.sampled_from([json.dumps(tree)]) | spoilt_text([encode_request(request).decode()]))
    understood_or_refused(lambda: decode_request("1", text.encode("utf-8", "surrogatepass")))


PROPERTIES: Final = """\
# a client's file
bootstrap.servers=localhost:9092
security.protocol = SASL_PLAINTEXT
sasl.mechanism: SCRAM-SHA-256
sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \\
  username="ann" password="s3cret-of-the-test";
ssl.endpoint.identification.algorithm=
"""


@settings(thorough, max_examples=400)
@given(text=spoilt_text([PROPERTIES]))
def test_client_properties(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    """A properties file in Kafka's form; neither what is read nor what is wrong with it shows the password."""
    path = tmp_path_factory.getbasetemp() / "client.properties"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    try:
        shown = repr(Security.from_properties(read_properties(path)))
    except BallastError as refusal:
        shown = str(refusal)
    assert "s3cret-of-the-test" not in shown


@thorough
@given(spoilt_text(['org.apache.kafka.common.security.plain.PlainLoginModule required username="a" password="b\\"c";']))
def test_login_lines(text: str) -> None:
    """Java's login configuration."""
    understood_or_refused(lambda: parse_jaas(text))


SETTINGS: Final = {
    "cluster": {"name": "shop", "bootstrap_server": "localhost:9092"},
    "leader.imbalance.per.broker.percentage": 10,
    "auto.leader.rebalance.enable": True,
    "intervals": {"observe_s": 10},
    "actions": {
        "moves": {"mode": "auto", "windows": [{"cron": "0 1 * * *", "hours": 4, "time_zone": "Europe/Berlin"}]}
    },
    "web": {"port": 8080},
}


def settings_from(tmp: Path, text: str) -> Any:
    """Read them as the daemon does."""
    path = tmp / "ballast.yaml"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    return load_settings(path, {})


@settings(thorough, max_examples=400)
@given(tree=spoilt_tree(SETTINGS))
def test_settings(tmp_path_factory: pytest.TempPathFactory, tree: Any) -> None:
    """A settings file with a slip in it names the slip."""
    try:
        text = yaml.safe_dump(tree, allow_unicode=True)
    except yaml.YAMLError:
        return  # Not even YAML's own writer takes it.
    understood_or_refused(lambda: settings_from(tmp_path_factory.getbasetemp(), text))


@settings(thorough, max_examples=400)
@given(text=spoilt_text([yaml.safe_dump(SETTINGS)]))
def test_torn_settings(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    """A settings file that was edited badly."""
    understood_or_refused(lambda: settings_from(tmp_path_factory.getbasetemp(), text))


@settings(thorough, max_examples=400)
@given(
    name=st.sampled_from(["WEB__PORT", "ACTIONS__MOVES__MODE", "INTERVALS", "CLUSTER__NAME", "X"]),
    text=spoilt_text(["8080"]),
)
def test_variables(name: str, text: str) -> None:
    """The environment."""
    understood_or_refused(lambda: load_settings(None, {f"BALLAST__{name}": text}))


@settings(thorough, max_examples=400)
@given(spoilt_text([path.read_text() for path in SCENARIOS]))
def test_scenarios(text: str) -> None:
    """A scenario is read whole before anything runs."""
    understood_or_refused(lambda: parse(text))
