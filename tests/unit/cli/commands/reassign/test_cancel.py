"""A cancel that comes when the move has just ended."""

from __future__ import annotations

import pytest
from tests.unit.executor.scenes import T, scene

from ballast.cli.commands.reassign.cancel import _CancelReport, _report, find_arrived
from ballast.core.cluster import TopicPartition
from ballast.ports.cluster import Reassignment

T0, T1, GONE = TopicPartition(T, 0), TopicPartition(T, 1), TopicPartition("gone", 0)
ACTIVE = {T0: Reassignment((3, 1, 2), (3,), (1,))}


def test_a_move_that_is_in_flight_no_more_has_ended() -> None:
    """With the replicas that it has now; a deleted topic has none."""
    s = scene({0: (3, 2), 1: (1, 2)}, size_bytes=1e9)
    s.cluster.alter_reassignments({T1: (4, 2)})
    assert find_arrived(s.cluster, {T0, T1, GONE}) == {T0: (3, 2), GONE: ()}
    assert find_arrived(s.cluster, ()) == {}


@pytest.mark.parametrize(
    ("told", "code", "words"),
    [
        (_CancelReport(ended={T0: (3, 2)}), 0, "None of the specified partition reassignments are active."),
        (_CancelReport(cancelled={T0}), 0, "Successfully cancelled partition reassignment for: t-0"),
        (_CancelReport(why={T0: "the broker said so"}), 1, "t-0: the broker said so"),
        (_CancelReport(), 1, "t-0: it is still in progress"),
    ],
)
def test_what_was_not_cancelled_is_an_error_with_its_reason(
    told: _CancelReport, code: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """What had ended is none."""
    assert _report(ACTIVE, (), told) == code
    assert words in capsys.readouterr().out
