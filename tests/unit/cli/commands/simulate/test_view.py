"""What losing a broker does to the others' disks, as ``ballast simulate`` tells it."""

from __future__ import annotations

import pytest

from ballast.cli.commands.simulate.view import loss_document, show_loss
from ballast.core.cluster import UNKNOWN, Broker, LogDir, PartitionRow, Topic, build
from ballast.core.planner import Evacuate, plan
from ballast.core.status import cluster_status
from ballast.core.what_if.loss import loss_of

GIB = 1 << 30


@pytest.mark.parametrize("free", [21, UNKNOWN])
def test_other_data_on_the_disks_counts(free: int, capsys: pytest.CaptureFixture[str]) -> None:
    """A disk that is 79 % full, nearly all of it other data, is 79 % full in a simulation, too; what is unknown stays unknown.

    Kafka's replicas are told beside it, and are the least that lies on a disk.
    """
    usable = free * GIB if free != UNKNOWN else UNKNOWN
    brokers = tuple(
        Broker(i, host="h", log_dirs=(LogDir("/d", 100 * GIB, usable),), log_dirs_known=True) for i in (1, 2, 3)
    )
    rows = [
        PartitionRow("t", n, 1 + n % 3, (1 + n % 3, 1 + (n + 1) % 3), (1, 2, 3), sizes=(GIB, GIB)) for n in range(6)
    ]
    state = build("c", brokers, (Topic("t", min_isr=1),), rows)
    lost = loss_of(state, frozenset({3}))
    repair = plan(lost.after, Evacuate(brokers=frozenset({3})))
    told = loss_document(lost, repair).brokers
    used = {b.broker.id: b.disk_used_bytes for b in cluster_status(state).brokers}
    gained = {1: 2 * GIB, 2: 2 * GIB, 3: -4 * GIB}
    assert {b.id: b.replica_bytes_before for b in told} == dict.fromkeys(used, 4 * GIB)
    assert {b.id: b.replica_bytes_after_repair for b in told} == {i: 4 * GIB + gained[i] for i in used}
    show_loss(lost, repair, rate_bytes_per_s=None)
    shown = capsys.readouterr().out
    if free == UNKNOWN:
        assert {(b.disk_bytes_before, b.disk_bytes_after_repair) for b in told} == {(None, None)}
        assert shown.count("≥ 4.0 GiB") == 3
        assert shown.count("≥ 6.0 GiB") == 2
    else:
        assert {b.id: b.disk_bytes_before for b in told} == used
        assert {b.id: b.disk_bytes_after_repair for b in told} == {i: (used[i] or 0) + gained[i] for i in used}
        assert "≥" not in shown
