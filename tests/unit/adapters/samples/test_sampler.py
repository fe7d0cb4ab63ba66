"""The daemon's sampler: on a thread of its own, one sample a minute, and nothing that happens there reaches a check."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.spark.series import START_MS, Log, World

from ballast.adapters.samples.sampler import Sampler, SampleReport, take
from ballast.core.cluster import ClusterState
from ballast.core.cluster.external_load import BrokerFigures, ExternalLoad
from ballast.core.samples import MinuteSample
from ballast.errors import Unavailable

WAIT_S = 60


@dataclass
class Store:
    """Keeps samples; what it does meanwhile is the test's."""

    meanwhile: Callable[[], None] = lambda: None
    kept: list[int] = field(default_factory=list)

    def write(self, taken: MinuteSample) -> bool:
        """Keep its minute."""
        self.meanwhile()
        self.kept.append(taken.epoch_minute - START_MS // 60_000)
        return True


class Reader:
    """A cluster without offsets."""

    def offsets(self, names: list[Any]) -> Mapping[Any, Any]:
        """None known."""
        return {}

    def log_ends(self, replicas: Mapping[Any, Any]) -> Mapping[Any, Any]:
        """None known."""
        return {}


@dataclass
class SetClock:
    """A clock that the test sets."""

    minute: int = 0

    def now_ms(self) -> int:
        """Somewhere in that minute."""
        return START_MS + self.minute * 60_000 + 5

    def monotonic_s(self) -> float:
        """Likewise."""
        return self.minute * 60.0


@dataclass
class Bench:
    """A sampler with its surroundings; ``seen`` counts the readings that it has dealt with."""

    clock: SetClock
    store: Store
    sampler: Sampler
    reported: list[SampleReport]
    done: threading.Semaphore
    failures: list[int]

    def reading(self, minute: int) -> None:
        """Hand a reading over in that minute."""
        self.clock.minute = minute
        self.sampler(state())

    def sampled(self) -> bool:
        """Wait for a report."""
        return self.done.acquire(timeout=WAIT_S)


def state() -> ClusterState:
    """One topic."""
    return World({("t", 0): Log()}).state(START_MS)


@pytest.fixture
def bench() -> Iterator[Bench]:
    """A running one."""
    clock, store, done, reported = SetClock(), Store(), threading.Semaphore(0), list[SampleReport]()

    def report(found: SampleReport) -> None:
        reported.append(found)
        done.release()

    failures: list[int] = []
    sampler = Sampler(Reader(), store, clock, on_sample=report, on_failure=lambda: failures.append(clock.minute))  # type: ignore[arg-type]
    yield Bench(clock, store, sampler, reported, done, failures)
    sampler.stop()


def test_a_check_never_waits_for_a_sample_and_the_newest_reading_is_next(bench: Bench) -> None:
    """With the store stuck, readings are handed over at once; of those that came meanwhile one is left."""
    begun, go_on = threading.Event(), threading.Event()

    def stuck() -> None:
        begun.set()
        assert go_on.wait(WAIT_S)

    bench.store.meanwhile = stuck
    bench.reading(0)
    assert begun.wait(WAIT_S)
    for minute in (1, 2, 3):
        # Were it to wait for the store, this would wait for ever: no other thread lets the store go on.
        bench.reading(minute)
    assert bench.store.kept == []
    go_on.set()
    assert bench.sampled()
    assert bench.sampled()
    assert bench.store.kept == [0, 3]


def test_a_minute_is_sampled_once_however_often_it_is_read(bench: Bench) -> None:
    """The first reading of each minute is the one."""
    bench.reading(0)
    assert bench.sampled()
    for minute in (0, 0, 1):
        bench.reading(minute)
    assert bench.sampled()
    assert bench.store.kept == [0, 1]
    assert [r.partitions for r in bench.reported] == [1, 1]


@pytest.mark.parametrize("failure", [Unavailable("The store is away."), ZeroDivisionError()])
def test_what_fails_is_a_gap_and_the_next_minute_is_sampled(
    bench: Bench, failure: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    """A store that is away and a mistake in the program alike; both are said, and told to the counter of failures."""
    failed = threading.Event()

    def fail() -> None:
        bench.store.meanwhile = lambda: None
        failed.set()
        raise failure

    bench.store.meanwhile = fail
    bench.reading(0)
    assert failed.wait(WAIT_S)
    bench.reading(1)
    assert bench.sampled()
    assert bench.store.kept == [1]
    assert len(bench.failures) == 1
    assert "this minute is not sampled" in caplog.text


def test_a_report_has_the_bytes_in_that_brokers_measured() -> None:
    """From each live broker; without metrics of theirs none are known."""
    now = state()
    told = ExternalLoad({b: BrokerFigures(bytes_in=2.5) for b in now.alive}, {})
    reader: Any = Reader()
    clock: Any = SetClock()

    def measured(found: ExternalLoad | None) -> float | None:
        return take(reader, now, Store(), clock, writer="w", external=lambda _: found).bytes_in_per_s

    assert [measured(told), measured(None)] == [2.5 * len(now.alive), None]
