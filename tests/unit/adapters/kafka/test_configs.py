"""How changes of settings are sent: what goes together, what goes side by side, and whose failure is whose."""

from __future__ import annotations

from collections.abc import Callable, Collection
from types import SimpleNamespace
from typing import Any, cast

from ballast.adapters.kafka.configs import alter
from ballast.adapters.kafka.kafka_python import Wire
from ballast.errors import BallastError, Unavailable
from ballast.ports.cluster import OK, ConfigChange, ConfigResource

RATE = "leader.replication.throttled.rate"
LIST = "leader.replication.throttled.replicas"


class FakeWire:
    """Keeps what was asked of whom; broker 2 does not answer, and topic ``gone`` does not exist."""

    def __init__(self) -> None:
        self.anywhere: list[list[str]] = []
        self.side_by_side: list[list[int]] = []

    def ask(self, _what: str, make: Callable[[], Any], **_: Any) -> Any:
        """Any broker answers."""
        request = make()
        self.anywhere.append([r.resource_name for r in request.resources])
        return _answer(request)

    def ask_each(
        self, _what: str, brokers: Collection[int], make: Callable[[int], Any], **_: Any
    ) -> dict[int, Any | BallastError]:
        """Each for itself."""
        self.side_by_side.append(sorted(brokers))
        return {b: Unavailable("Broker 2 did not answer in time.") if b == 2 else _answer(make(b)) for b in brokers}


def _answer(request: Any) -> Any:
    return SimpleNamespace(
        responses=[
            SimpleNamespace(
                error_code=3 if r.resource_name == "gone" else 0,
                error_message=None,
                resource_type=r.resource_type,
                resource_name=r.resource_name,
            )
            for r in request.resources
        ]
    )


def test_brokers_are_told_at_once_and_each_fails_for_itself() -> None:
    """A frozen broker holds none of the others up: they are asked together, and only its own outcome is a failure."""
    wire = FakeWire()
    resources = [ConfigResource("topic", "t"), ConfigResource("topic", "gone"), ConfigResource("broker", "")]
    resources += [ConfigResource("broker", str(b)) for b in (1, 2, 3)]
    changes = [ConfigChange(r, LIST if r.kind == "topic" else RATE, "set", "5") for r in resources]
    outcomes = alter(cast("Wire", wire), changes)
    assert wire.anywhere == [["t", "gone"], [""]]
    assert wire.side_by_side == [[1, 2, 3]]
    assert {r.name: o.code for r, o in outcomes.items() if not o.ok} == {
        "gone": "UNKNOWN_TOPIC_OR_PARTITION",
        "2": "NO_ANSWER",
    }
    assert all(outcomes[r] == OK for r in resources if r.name not in {"gone", "2"})
    assert set(outcomes) == set(resources)
