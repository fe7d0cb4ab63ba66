"""The forms of a cluster as fixtures: each is opened once for the whole suite."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

import pytest
from tests.contract.cluster_forms import FORMS, NEEDS_KAFKA, ClusterForm, Memory, new_prefix
from tests.contract.sim_form import simulated

OPENERS = {"sim": simulated, **FORMS}


def forms(without: Collection[str] = ()) -> list[object]:
    """The forms as parameters of ``opened_form``."""
    return [
        pytest.param(name, marks=pytest.mark.kafka) if name in NEEDS_KAFKA else name
        for name in OPENERS
        if name not in without
    ]


@pytest.fixture(scope="package", params=forms())
def opened_form(request: pytest.FixtureRequest) -> Iterator[ClusterForm]:
    """A cluster for the whole suite."""
    with OPENERS[request.param]() as form:
        yield form


@pytest.fixture
def form(opened_form: ClusterForm) -> ClusterForm:
    """The cluster as one test sees it: topics get names of their own, and every broker is well when it begins."""
    fresh = replace(opened_form, prefix=new_prefix())

    def whole() -> bool:
        state = fresh.cluster.snapshot()
        return len(state.alive) == len(fresh.brokers) and not state.gaps and bool(state.partitions.in_sync.all())

    fresh.until(whole, "every broker and every replica is well, and nothing is missing")
    return fresh


@pytest.fixture
def broken(form: ClusterForm) -> Iterator[ClusterForm]:
    """The cluster for a test that kills or freezes brokers; they are brought back afterwards."""
    hands = Memory(form.hands)
    yield replace(form, hands=hands)
    hands.restore()
