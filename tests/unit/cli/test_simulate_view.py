"""What losing a broker does to the others' disks, as ``ballast simulate`` tells it."""

from __future__ import annotations

import pytest

from ballast.cli.commands.simulate.view import loss_document
from ballast.core.cluster import UNKNOWN, Broker, LogDir, PartitionRow, Topic, build
from ballast.core.planner import Evacuate, plan
from ballast.core.status import cluster_status
from ballast.core.what_if.loss import loss_of

GIB = 1 << 30


@pytest.mark.parametrize("free", [21, UNKNOWN])
def test_other_data_on_the_disks_counts(free: int) -> None:
    """A disk that is 79 % full, nearly all of it other data, is 79 % full in a simulation, too; unknown space is not invented."""
    usable = free * GIB if free != UNKNOWN else UNKNOWN
    brokers = tuple(
        Broker(i, host="h", log_dirs=(LogDir("/d", 100 * GIB, usable),), log_dirs_known=True) for i in (1, 2, 3)
    )
    rows = [
        PartitionRow("t", n, 1 + n % 3, (1 + n % 3, 1 + (n + 1) % 3), (1, 2, 3), sizes=(GIB, GIB)) for n in range(6)
    ]
    state = build("c", brokers, (Topic("t", min_isr=1),), rows)
    lost = loss_of(state, frozenset({3}))
    told = loss_document(lost, plan(lost.after, Evacuate(brokers=frozenset({3})))).brokers
    used = {b.broker.id: b.disk_used_bytes for b in cluster_status(state).brokers}
    expected = used if free != UNKNOWN else dict.fromkeys(used, 4 * GIB)
    assert {b.id: b.disk_bytes_before for b in told} == expected
    assert {b.id: (b.disk_bytes_after_repair or 0) - (b.disk_bytes_before or 0) for b in told} == {
        1: 2 * GIB,
        2: 2 * GIB,
        3: -4 * GIB,
    }
