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

from ballast.adapters.auth.properties import read_properties
from ballast.adapters.auth.security import Security, parse_jaas
from ballast.cli.commands.plan.options import partition_of, size_of
from ballast.cli.option_types import seconds_of
from ballast.core.cluster import Broker, LogDir, PartitionRow, Topic, TopicPartition, build
from ballast.core.named_brokers import NamedBrokers
from ballast.core.placement import format_manual, parse_manual
from ballast.core.plan import Move, Obstacle, Plan, Reason
from ballast.core.plan.file import dumps, loads
from ballast.core.planner import Loads
from ballast.core.snapshot.file import Snapshot
from ballast.core.snapshot.file import dumps as dump_snapshot
from ballast.core.snapshot.file import loads as load_snapshot
from ballast.core.stock.files import (
    ReassignmentEntry,
    format_reassignment,
    parse_broker_list,
    parse_election,
    parse_reassignment,
    parse_topics_to_move,
)
from ballast.errors import BallastError, UsageError
from ballast.executor.journal.history import load_summaries
from ballast.executor.journal.records import dump_run, load_runs
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.executor.machine.run import Now, Phase, new_run
from ballast.ports.journal import Holder, Record, Request
from ballast.ports.journal_codec import (
    LEASE_KEY,
    RECORD_PREFIX,
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
    ("read", "valid", "means"),
    [
        (parse_reassignment, REASSIGNMENT, (ReassignmentEntry("a", 0, (1, 2), ("any", "/d")),)),
        (parse_topics_to_move, TOPICS, ("a", "b")),
        (parse_election, ELECTION, (TopicPartition("a", 0),)),
        (parse_broker_list, "0,1,2", (0, 1, 2)),
        (parse_manual, "0:1:2,1:2:0", {0: (0, 1, 2), 1: (1, 2, 0)}),
        (partition_of, "orders-3", TopicPartition("orders", 3)),
        (lambda text: size_of(text, "--max-bytes"), "1.5GiB", 1_610_612_736),
        (lambda text: refusing(seconds_of, text), "2h", 7200.0),
        (lambda text: refusing(NamedBrokers.parse, text), "1,5-7", NamedBrokers(frozenset({1, 5, 6, 7}))),
    ],
    ids=[
        "reassignment",
        "topics to move",
        "election",
        "broker list",
        "manual placement",
        "partition",
        "size",
        "time",
        "brokers",
    ],
)
def test_stock_files_and_words(read: Callable[[str], Any], valid: str, means: object) -> None:
    """The stock tools' files and the words of the command line; what is right is read for what it means."""
    assert read(valid) == means

    @thorough
    @given(spoilt_text([valid]))
    def try_one(text: str) -> None:
        understood_or_refused(lambda: read(text))

    try_one()


def refusing(read: Callable[[str], Any], text: str) -> Any:
    """What a type of the command line refuses is a usage error there."""
    try:
        return read(text)
    except ValueError as wrong:
        raise UsageError(str(wrong)) from None


names = st.text("ab-._0", min_size=1, max_size=6).filter(lambda name: name not in {".", ".."})
counts = st.integers(0, 2**31 - 1)
layouts = st.sampled_from([{}, {"indent": 2}, {"separators": (",", ":")}, {"sort_keys": True}])


@thorough
@given(
    st.dictionaries(
        st.tuples(names, counts), st.lists(counts, min_size=1, max_size=4, unique=True), min_size=1, max_size=4
    ),
    layouts,
)
def test_every_reassignment_is_read_for_what_it_says(wanted: dict[Any, list[int]], layout: Any) -> None:
    """Whatever tool wrote it, with whatever spaces and order of keys."""
    rows = [{"topic": t, "partition": p, "replicas": replicas} for (t, p), replicas in wanted.items()]
    read = parse_reassignment(json.dumps({"version": 1, "partitions": rows}, **layout))
    assert {(e.topic, e.partition): list(e.replicas) for e in read} == wanted
    election = parse_election(
        json.dumps({"version": 1, "partitions": [{"topic": t, "partition": p} for t, p in wanted]}, **layout)
    )
    assert set(election) == {TopicPartition(t, p) for t, p in wanted}
    for topic, number in wanted:
        assert partition_of(f"{topic}-{number}") == TopicPartition(topic, number)


@thorough
@given(
    number=st.integers(0, 9_000),
    prefix=st.sampled_from(["", "k", "K", "M", "G", "T", "P"]),
    binary=st.booleans(),
    unit=st.sampled_from([("s", 1), ("m", 60), ("h", 3600), ("d", 86_400)]),
)
def test_every_size_and_duration_is_read_for_what_it_says(
    *, number: int, prefix: str, binary: bool, unit: tuple[str, int]
) -> None:
    """Powers of 1000, or of 1024 where it says so."""
    base = 1024 if binary and prefix else 1000
    text = f"{number}{prefix}{'i' if binary and prefix else ''}B"
    assert size_of(text, "--max-bytes") == number * base ** " KMGTP".index(prefix.upper() or " ")
    assert seconds_of(f"{number}{unit[0]}") == number * unit[1]


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
    intent="balance",
    cluster_id="c",
    fingerprint="sha256:00",
    moves=(
        Move("a", 0, (1, 2), (3, 2), 10, Reason("disk", "over")),
        Move("a", 1, (1, 2), (2, 1), log_dirs=("any", "/d")),
    ),
    elections=(TopicPartition("a", 1),),
    status="misses-some-goals",
    obstacles=(Obstacle("too-big", "a-0", "larger than the band", "split it"),),
    summary={"replica_moves": 1, "replica_list_changes": 1, "bytes_moved": None, "empty_afterwards": [3]},
)


@thorough
@given(spoilt_tree(json.loads(dumps(PLAN))))
def test_plan_files(tree: Any) -> None:
    """A plan that was edited by hand is a plan, exactly, or refused."""
    assert loads(dumps(PLAN)) == PLAN
    plan = understood_or_refused(lambda: loads(json.dumps(tree)))
    if plan is not None:
        assert loads(dumps(plan)) == plan


@thorough
@given(spoilt_text([dumps(PLAN)]))
def test_torn_plan_files(text: str) -> None:
    """A file that was cut or pasted badly."""
    understood_or_refused(lambda: loads(text))


STATE: Final = build(
    "c",
    (Broker(1, rack="r", log_dirs=(LogDir("/a", 9, 5), LogDir("/b")), log_dirs_known=True), Broker(2)),
    (Topic("a", min_isr=1), Topic("b")),
    [
        PartitionRow("a", 0, 1, (1, 2), (1,), removing=(1,), sizes=(7, -1), log_dirs=(1, -1)),
        PartitionRow("a", 1, -1, (2,), (), sizes=(3,)),
    ],
    taken_at_ms=5,
    kafka_version="4.3",
)
SNAPSHOT: Final = dump_snapshot(
    Snapshot(STATE, replace(Loads.from_state(STATE), known=frozenset({"disk", "bytes-in"})))
)


@thorough
@given(spoilt_tree(json.loads(SNAPSHOT)))
def test_snapshot_files(tree: Any) -> None:
    """A snapshot that was edited by hand is one, exactly, or refused."""
    assert dump_snapshot(load_snapshot(SNAPSHOT)) == SNAPSHOT
    snapshot = understood_or_refused(lambda: load_snapshot(json.dumps(tree)))
    if snapshot is not None:
        text = dump_snapshot(snapshot)
        assert dump_snapshot(load_snapshot(text)) == text


@thorough
@given(spoilt_text([SNAPSHOT]))
def test_torn_snapshot_files(text: str) -> None:
    """A file that was cut or pasted badly, or is in another encoding."""
    understood_or_refused(lambda: load_snapshot(text))
    understood_or_refused(lambda: load_snapshot(text.encode("latin-1", "replace")))


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
    understood_or_refused(lambda: load_summaries(records, Now(ms=2, s=2.0)))
    runs = understood_or_refused(lambda: load_runs(records, Now(ms=2, s=2.0)))
    for run in (runs or {}).values():
        (again,) = load_runs(dump_run(run), Now(ms=2, s=2.0)).values()
        assert dump_run(again) == dump_run(run)


def test_the_records_of_a_run_are_that_run() -> None:
    """Its plan and its policy, move for move, as the next process takes them up."""
    (run,) = load_runs(dump_run(RUN), Now(ms=2, s=2.0)).values()
    assert (run.id, run.intent, run.policy) == ("r1", PLAN.intent, RUN.policy)
    assert [(m.move.name, m.move.old, m.move.new, m.move.log_dirs) for m in run.moves.values()] == [
        (m.name, m.old, m.new, m.log_dirs) for m in PLAN.moves
    ]
    assert list(run.elections) == list(PLAN.elections)


def entries() -> list[Entry]:
    """A journal's log: a lease, a short record and one in pieces."""
    holder = Holder(id="pod-0", description="pod-0", since_ms=1, doing="balances")
    long = Record("move/r1/a-0", {"version": 1, "detail": "x" * 40})
    return [
        (LEASE_KEY, encode_lease(holder, 1)),
        *encode_record(Record("k", {"v": 1})),
        *encode_record(long, piece_bytes=16),
    ]


@thorough
@given(st.data())
def test_entries_of_the_journal(data: st.DataObject) -> None:
    """A log with bytes that are not Ballast's is refused, never guessed; what is not spoilt is read as it was written."""
    log = entries()
    whole = {r.key: r.value for r in JournalView(log).records()}
    assert whole == {"k": {"v": 1}, "move/r1/a-0": {"version": 1, "detail": "x" * 40}}
    place = data.draw(st.integers(0, len(log) - 1))
    key, value = log[place]
    assert value is not None
    text = data.draw(spoilt_text([value.decode()]))
    log[place] = (key, text.encode("utf-8", "surrogatepass"))
    view = JournalView(log)
    read = understood_or_refused(view.records)
    assert read is not None or key != LEASE_KEY
    spoilt = key.removeprefix(RECORD_PREFIX)
    for record in read or ():
        assert record.value == whole[record.key] or record.key == spoilt
    lease = understood_or_refused(view.lease)
    assert lease is not None or key == LEASE_KEY


@thorough
@given(st.data())
def test_requests_of_others(data: st.DataObject) -> None:
    """Anybody with the right to write may send a request; a spoilt one must not stop the holder."""
    request = Request(id="1", kind="cancel", by="page", at_ms=1, body={"run": "r1"})
    tree = data.draw(spoilt_tree(json.loads(encode_request(request))))
    text = data.draw(st.sampled_from([json.dumps(tree)]) | spoilt_text([encode_request(request).decode()]))
    assert decode_request("1", encode_request(request)) == request
    read = understood_or_refused(lambda: decode_request("1", text.encode("utf-8", "surrogatepass")))
    assert read is None or decode_request("1", encode_request(read)) == read


def test_client_properties_are_read_for_what_they_say(tmp_path: Path) -> None:
    """Every separator and a line that goes on in the next."""
    path = tmp_path / "client.properties"
    path.write_text(PROPERTIES)
    read = Security.from_properties(read_properties(path))
    assert (read.protocol, read.mechanism) == ("SASL_PLAINTEXT", "SCRAM-SHA-256")
    assert (read.username, read.password) == ("ann", "s3cret-of-the-test")


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
@given(st.text(st.characters(codec="ascii", min_codepoint=32, max_codepoint=126), max_size=12))
def test_every_password_is_read_as_it_was_written(password: str) -> None:
    """Quoted as Java wants it."""
    quoted = password.replace("\\", "\\\\").replace('"', '\\"')
    entry = parse_jaas(
        f'org.apache.kafka.common.security.plain.PlainLoginModule required username="a" password="{quoted}";'
    )
    assert entry.options == {"username": "a", "password": password}


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
        "moves": {
            "mode": "auto",
            "windows": [{"opens": "0 1 * * *", "lasts_minutes": 240, "timezone": "Europe/Berlin"}],
        }
    },
    "web": {"port": 8080},
}


def settings_from(tmp: Path, text: str) -> Any:
    """Read them as the daemon does."""
    path = tmp / "ballast.yaml"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    return load_settings(path, {})


def test_settings_are_read_for_what_they_say(tmp_path: Path) -> None:
    """The file's words and the environment's."""
    read = settings_from(tmp_path, yaml.safe_dump(SETTINGS))
    assert (read.cluster.name, read.cluster.bootstrap_server) == ("shop", "localhost:9092")
    assert read.leaders.imbalance_percentage == 10
    assert read.actions.moves.mode == "auto"
    assert load_settings(None, {"BALLAST__WEB__PORT": "8081"}).web.port == 8081


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
    """A scenario is read whole before anything runs; those of the suite are read statement by statement."""
    for path in SCENARIOS:
        said = [line.split("#")[0].split() for line in path.read_text().splitlines()]
        assert len(parse(path.read_text())) == len([words for words in said if words])
    understood_or_refused(lambda: parse(text))
