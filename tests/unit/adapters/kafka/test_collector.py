"""The garbage collector stands still inside, and afterwards it is as it was."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from ballast.adapters.kafka.collector import pause_collection


@pytest.fixture(autouse=True)
def _running() -> Iterator[None]:
    was = gc.isenabled()
    gc.enable()
    yield
    if not was:
        gc.disable()


def test_the_last_to_leave_lets_it_run_again() -> None:
    """Readings overlap: one that ends leaves the others their pause."""
    with pause_collection():
        with pause_collection():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_a_failed_reading_ends_its_pause() -> None:
    """An exception is a way out like any other."""
    with pytest.raises(OSError, match="gone"), pause_collection():
        raise OSError("gone")
    assert gc.isenabled()


def test_who_runs_without_the_collector_keeps_it_off() -> None:
    """Nothing is switched on that was off before."""
    gc.disable()
    with pause_collection():
        pass
    assert not gc.isenabled()


def test_threads_share_one_pause() -> None:
    """Whatever order they come and go in, it runs again once all are out."""
    everyone = Barrier(8, timeout=60)

    def read(_: int) -> bool:
        with pause_collection():
            everyone.wait()
            return gc.isenabled()

    with ThreadPoolExecutor(8) as pool:
        assert not any(pool.map(read, range(8)))
    assert gc.isenabled()
