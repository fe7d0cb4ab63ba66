"""How faults begin and end while a person waits for a cluster that is hurt."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any, cast

from tests.chaos.faults import Faults
from tests.chaos.health import Health
from tests.chaos.schedule import Step

WAITS_S = 30
ROTATED = Step(at_s=0, kind="credentials-rotated", target="credentials", lasts_s=8, draw=1)


@dataclass
class Word:
    """A password and its file, without a cluster."""

    done: list[str] = field(default_factory=list)

    def rotate(self) -> None:
        """The cluster has another."""
        self.done.append("rotate")

    def hand_over(self) -> None:
        """The file has it."""
        self.done.append("hand over")


def test_the_end_of_a_rotation_waits_for_no_person() -> None:
    """A person may insist on a frozen broker, which goes on only after what is due before: the password follows by itself, in order."""
    word, unused = Word(), cast("Any", None)
    faults = Faults(unused, unused, unused, Health((1,)), cast("Any", word), print)
    frozen = threading.Event()
    faults.deeds.submit(frozen.wait, WAITS_S)
    heal = faults.credentials_rotated(ROTATED)
    ended = threading.Thread(target=heal)
    ended.start()
    ended.join(WAITS_S / 10)
    in_time = not ended.is_alive()
    frozen.set()
    ended.join()
    faults.deeds.shutdown(wait=True)
    assert in_time
    assert word.done == ["rotate", "hand over"]
    assert faults.gave_up == []
