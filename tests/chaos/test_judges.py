"""Each judge finds what it is there for: from observations as they are recorded, without a cluster."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import patch

import confluent_kafka as ck
import pytest
from tests.chaos import planted
from tests.chaos.daemons import Daemons
from tests.chaos.evidence import Evidence, keep
from tests.chaos.health import Health
from tests.chaos.person import Person
from tests.chaos.schedule import Step
from tests.chaos.settling import Settling
from tests.chaos.unasked import READ_LATER_S, Requested, Unasked
from tests.chaos.verdicts import Judge, Violated, Violation
from tests.chaos.watches import STANDS_S, UNDER_S, JournalWatch, Partitions, Runs, Watch
from tests.real.execution_scene import LISTS, RATES

from ballast.core.cluster import ConfigValue, TopicPartition
from ballast.errors import Unavailable
from ballast.ports.cluster import ConfigResource, Reassignment
from ballast.ports.journal import Holder
from ballast.ports.journal_codec import LEASE_KEY, encode_lease

BROKER, TOPIC = ConfigResource("broker", "1"), ConfigResource("topic", "t")
P0 = TopicPartition("t", 0)


@pytest.fixture
def now_s(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The monotonic clock, which only the test moves."""
    now = [1000.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    return now


class Seen:
    """What metadata and configs show."""

    def __init__(self) -> None:
        self.replicas, self.isr = [1, 2, 3], [1, 2, 3]
        self.entries: dict[ConfigResource, dict[str, ConfigValue]] = {BROKER: {}, TOPIC: {}}

    def list_topics(self, **_: object) -> Any:
        """One topic of one partition."""
        row = SimpleNamespace(id=0, replicas=self.replicas, isrs=self.isr, leader=self.replicas[0])
        return SimpleNamespace(topics={"t": SimpleNamespace(topic="t", partitions={0: row})})

    def configs(self, resources: list[ConfigResource]) -> Any:
        """Those that stand."""
        return {r: self.entries[r] for r in resources}


@pytest.fixture
def seen() -> Seen:
    """A cluster as its person left it."""
    return Seen()


@pytest.fixture
def person(seen: Seen) -> Person:
    """A person with one topic and one setting of their own."""
    found = Person(cast("Any", seen), cast("Any", seen), "", (1,))
    found.factors["t"], found.counts["t"] = 3, 1
    found.settings[TOPIC] = {"segment.ms": "1"}
    seen.entries[TOPIC]["segment.ms"] = ConfigValue("1", "DYNAMIC_TOPIC_CONFIG")
    return found


def judges(found: list[Violation]) -> list[Judge]:
    """Who says so."""
    return [violation.judge for violation in found]


def test_a_cluster_as_its_person_left_it_is_right(person: Person, seen: Seen) -> None:
    """Defaults and empty lists count as set by no user."""
    seen.entries[BROKER]["num.io.threads"] = ConfigValue("8", "DEFAULT_CONFIG")
    seen.entries[TOPIC][LISTS[0]] = ConfigValue("", "DYNAMIC_TOPIC_CONFIG")
    assert person.contradictions() == []


def test_what_is_not_as_its_person_left_it_is_found(person: Person, seen: Seen) -> None:
    """A setting changed, added or taken away, a throttle stale or lost, a replica too few."""
    seen.entries[TOPIC] = {"segment.ms": ConfigValue("2", "DYNAMIC_TOPIC_CONFIG")}
    assert judges(person.contradictions()) == [Judge.SETTINGS]
    seen.entries[TOPIC] = {}
    assert judges(person.contradictions()) == [Judge.SETTINGS]
    seen.entries[BROKER] = {RATES[0]: ConfigValue("9", "DYNAMIC_BROKER_CONFIG")}
    assert sorted(judges(person.contradictions())) == [Judge.SETTINGS, Judge.THROTTLES]
    person.settings[BROKER] = {RATES[1]: "5"}
    assert judges(person.contradictions()).count(Judge.THROTTLES) == 2
    seen.replicas = [1, 2]
    assert Judge.REPLICAS in judges(person.contradictions())


def partitions(person: Person, seen: Seen) -> Partitions:
    """A watch that looks at brokers that have long been well."""
    return Partitions(cast("Any", seen), person, Health((1, 2, 3), since_s=-1e9), {"t": 2}, [])


def test_a_replica_too_few_is_found_at_once(person: Person, seen: Seen) -> None:
    """And told once."""
    watch = partitions(person, seen)
    watch.look()
    assert watch.found == []
    seen.replicas = [1, 2]
    watch.look()
    watch.look()
    assert judges(watch.found) == [Judge.REPLICAS]


def test_a_partition_that_stays_under_its_min_isr_is_found(person: Person, seen: Seen, now_s: list[float]) -> None:
    """Where enough of its brokers are well; for a moment it may be, and while they are hurt."""
    watch = partitions(person, seen)
    seen.isr = [1]
    watch.look()
    now_s[0] += UNDER_S + 1
    watch.health.fails(2)
    watch.health.fails(3)
    watch.look()
    assert watch.found == []
    watch = partitions(person, seen)
    watch.look()
    now_s[0] += UNDER_S + 1
    watch.look()
    assert judges(watch.found) == [Judge.MIN_ISR]


def daemons_with(**run: Any) -> Any:
    """One daemon that shows this run."""
    shown = {
        "id": "r1",
        "phase": "moving",
        "movesVerified": 0,
        "movesEndedOtherwise": 0,
        "electionsCompleted": 0,
        "bytesLeft": 9,
    }
    daemon = SimpleNamespace(name="ballast-a-1", status={"run": {**shown, **run}})
    return SimpleNamespace(live={"a": daemon})


@pytest.mark.parametrize(("sentence", "found"), [("Looking", 1), (None, 1), ("Waiting for broker 3.", 0)])
def test_a_run_that_stands_still_has_to_say_why(now_s: list[float], sentence: str | None, found: int) -> None:
    """For a while it may be silent."""
    watch = Runs(daemons_with(detail=sentence), [])
    watch.look()
    now_s[0] += STANDS_S / 2
    watch.look()
    assert watch.found == []
    now_s[0] += STANDS_S
    watch.look()
    assert judges(watch.found) == [Judge.RUNS] * found
    assert watch.seen == {"r1"}


def moving(*target: int) -> dict[TopicPartition, Reassignment]:
    """One partition that goes from brokers 1 and 2 to these."""
    union = tuple(dict.fromkeys((*target, 1, 2)))
    gone = tuple(b for b in (1, 2) if b not in target)
    return {P0: Reassignment(union, tuple(b for b in target if b not in {1, 2}), gone)}


def test_a_move_that_no_person_and_no_record_wanted_is_found() -> None:
    """When the journal has been read beyond it; one that a person or the journal wanted is not, nor its way back."""
    requested = Requested()
    unasked = Unasked(requested)
    unasked.see(moving(3, 4), 100)
    assert unasked.convict(100 + READ_LATER_S - 1) == []
    assert len(unasked.convict(101 + READ_LATER_S)) == 1
    assert unasked.convict(200) == []
    requested.read("record/move/r1/t-0", {"topic": "t", "partition": 0, "old": [1, 2], "new": [1, 3]})
    requested.want(P0, (2, 5))
    for target in ((3, 1), (1, 2), (5, 2)):
        unasked.see(moving(*target), 300)
    assert unasked.convict(400) == []
    assert unasked.judged == 4


def message(value: bytes, offset: int, at_s: float) -> Any:
    """A record of the lease."""
    answers = {"key": LEASE_KEY.encode(), "value": value, "offset": offset, "timestamp": (1, int(at_s * 1000))}
    return SimpleNamespace(**{name: lambda answer=answer: answer for name, answer in answers.items()})


def test_a_lease_that_is_taken_too_early_is_found() -> None:
    """From the records of the journal as they stand there."""
    watch = JournalWatch("", [], Unasked(Requested()), threading.Event())
    a, b = (Holder(name, name, lease_s=6.0) for name in "ab")
    watch._take(message(encode_lease(a, 1), 0, 10))
    watch._take(message(encode_lease(b, 1), 1, 17))
    assert watch.found == []
    watch._take(message(encode_lease(a, 1), 2, 18))
    assert judges(watch.found) == [Judge.ONE_WRITER]
    assert watch.read_until_s == 18
    assert watch.has_lease.is_set()


def test_a_watch_that_fails_says_so() -> None:
    """One that ended in silence would watch nothing."""
    found: list[Violation] = []
    watch = Watch("broken", lambda: cast("None", 1 // 0), found, every_s=0)
    watch.start()
    watch._thread.join(30)  # type: ignore[union-attr]
    assert judges(found) == [Judge.ITSELF]


def life(folder: Path, *messages: str, code: int | None) -> Any:
    """A process of Ballast and what it logged."""
    log = folder / "ballast-a-1.log"
    log.write_text("".join(json.dumps({"message": m}) + "\n" for m in messages))
    process = SimpleNamespace(poll=lambda: code, returncode=code)
    return SimpleNamespace(name="ballast-a-1", log=log, messages=lambda: list(messages), process=process)


def test_a_bug_that_a_daemon_logs_is_found_once(tmp_path: Path) -> None:
    """However often it says so."""
    daemons = Daemons(cast("Any", None), None)
    daemons.lives = [life(tmp_path, "A bug in Ballast: KeyError.", "well", "A bug in Ballast: KeyError.", code=None)]
    assert judges(daemons.bugs()) == [Judge.BUGS]
    assert daemons.ended_by_themselves() == []


def test_a_daemon_that_ends_by_itself_is_found(tmp_path: Path) -> None:
    """Unless the test ended it."""
    daemons = Daemons(cast("Any", None), None)
    daemons.lives = [life(tmp_path, "well", code=-6)]
    assert judges(daemons.ended_by_themselves()) == [Judge.LIFE]
    daemons.expected["ballast-a-1"] = "killed"
    assert daemons.ended_by_themselves() == []


def settling(**parts: Any) -> Settling:
    """The end of a run with these parts."""
    empty = dict.fromkeys(("sandbox", "daemons", "person", "faults", "admin"))
    return Settling(**{**empty, **parts}, tell=lambda _: None, still_checks=1, balanced_within_s=600)


def test_what_does_not_come_about_is_named_with_its_reason(now_s: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    """In bounded time, also where no broker answers."""
    monkeypatch.setattr("time.sleep", lambda s: now_s.__setitem__(0, now_s[0] + s))
    quiet = SimpleNamespace(ended_by_themselves=list)
    sandbox = SimpleNamespace(spec=SimpleNamespace(controller_ids=()), broker_ids=())
    late = settling(daemons=quiet, sandbox=sandbox)

    def away() -> str:
        raise Unavailable("it is away")

    with pytest.raises(Violated) as told:
        late._until(Judge.BALANCED, "balanced", away, 30)
    assert told.value.violation.judge == Judge.BALANCED
    assert "it is away" in told.value.violation.what


def test_a_cluster_that_does_not_stay_still_is_found(now_s: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    """A move, a run, another leader: each by itself."""
    monkeypatch.setattr("time.sleep", lambda s: now_s.__setitem__(0, now_s[0] + s))
    runs: list[dict[str, Any]] = []
    places: list[dict[str, Any]] = []
    moves: list[dict[Any, Any]] = []

    def script(told: list[dict[str, Any]]) -> dict[str, Any]:
        return told.pop(0) if len(told) > 1 else told[0]

    def topics(timeout: float) -> SimpleNamespace:
        assert timeout > 0
        led = script(places).items()
        return SimpleNamespace(topics={n: topic(n, leader, replicas) for n, (leader, replicas) in led})

    def topic(name: str, leader: int, replicas: list[int]) -> SimpleNamespace:
        only = SimpleNamespace(id=0, leader=leader, replicas=replicas)
        return SimpleNamespace(topic=name, partitions={0: only})

    cluster = SimpleNamespace(reassignments=lambda: moves[0])
    person = SimpleNamespace(insist=lambda _what, act: act(), cluster=cluster, contradictions=list)
    quiet = SimpleNamespace(ended_by_themselves=list)
    monkeypatch.setattr("tests.chaos.settling.runs_in_journal", lambda _sandbox: script(runs))
    admin = SimpleNamespace(list_topics=topics)
    fresh = {"r2": SimpleNamespace(id="r2", intent="balance")}
    for told_runs, told_places, told_moves, wrong in (
        ([{}], [{}], {}, False),
        ([{}], [{}], moving(3, 4), True),
        ([{}, fresh], [{}], {}, True),
        ([{}], [{"t": (1, [1])}, {"t": (2, [1])}], {}, True),
    ):
        runs[:], places[:], moves[:] = told_runs, told_places, [told_moves]
        end = settling(person=person, daemons=quiet, admin=admin)
        if not wrong:
            end._still()
            continue
        with pytest.raises(Violated) as told:
            end._still()
        assert told.value.violation.judge == Judge.STILL


def test_evidence_is_kept_where_the_cluster_is_gone(tmp_path: Path) -> None:
    """What was seen so far is whole, and what could not be asked says why."""

    def away() -> Any:
        raise Unavailable("it is away")

    source = tmp_path / "sandbox"
    (source / "logs").mkdir(parents=True)
    (source / "logs" / "node-1.log").write_text("started\n")
    (source / "ballast").mkdir()
    (source / "ballast" / "ballast-a-1.log").write_text("{}\n")
    sandbox = SimpleNamespace(folder=source, daemons_folder=source / "ballast")
    violation = Violation(Judge.SETTINGS, "topic t segment.ms is 2")
    folder = keep(
        Evidence("kraft-seed-7", 7, (Step(1.0, "pile-up", "cluster", 0.0, 3),), [violation], ["began"],
                 [(1, 0, "k", {"a": 1})], cast("Any", sandbox), cast("Any", SimpleNamespace(snapshot=away)),
                 {"topic t": {"segment.ms": "1"}}, {"records acknowledged": 5}),
        tmp_path / "kept",
    )  # fmt: skip
    assert (folder / "violations.txt").read_text() == "settings: topic t segment.ms is 2\n"
    assert json.loads((folder / "cluster.json").read_text()) == {"failure": "it is away"}
    assert json.loads((folder / "journal.jsonl").read_text()) == {
        "journal": 1,
        "offset": 0,
        "key": "k",
        "value": {"a": 1},
    }
    assert len(json.loads((folder / "schedule.json").read_text())["steps"]) == 1
    assert json.loads((folder / "person.json").read_text())["topic t"] == {"segment.ms": "1"}
    assert {log.name for log in (folder / "logs").iterdir()} == {"node-1.log", "ballast-a-1.log"}


def test_a_person_who_gives_up_is_found(person: Person, now_s: list[float]) -> None:
    """The cluster did not take what they wanted for longer than any fault lasts."""

    def refuse() -> None:
        now_s[0] += 300
        raise ck.KafkaException(ck.KafkaError(ck.KafkaError._TIMED_OUT))

    with pytest.raises(Violated) as told:
        person.insist("set it", refuse)
    assert told.value.violation.judge == Judge.WHOLE


@pytest.mark.parametrize("plant", sorted(planted.PLANTS))
def test_what_is_planted_replaces_something_of_the_product(plant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A function that has moved meanwhile: the daemon would die at its start, and the judge would never be tried."""

    def put(where: str, instead: Any) -> None:
        with patch(where, instead):
            replaced.append(where)

    replaced: list[str] = []
    monkeypatch.setattr(planted, "put", put)
    monkeypatch.setattr("signal.signal", lambda *_: None)
    monkeypatch.setattr("threading.Thread", lambda **_: SimpleNamespace(start=lambda: None))
    planted.PLANTS[plant].install()
    assert replaced or plant == "dies"
