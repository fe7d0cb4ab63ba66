"""Which fault happens when, to whom and for how long: drawn from a seed, before anything is started.

What is drawn repeats with its seed; when it happens is the cluster's own time.  No client, no clock, no process.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass
from random import Random
from typing import Final

BALLASTS: Final = ("a", "b")
"""The two daemons that are always there, the one that acts and the one that stands by."""
CLUSTER: Final = "cluster"
"""The target of what a person does: one thing at a time, in their own order."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of fault."""

    weight: int
    """How often it is drawn, beside the others."""
    on: str
    """``broker``, ``controller``, ``ballast``, ``third`` (a daemon more), ``credentials``, or ``cluster`` (a person's deed)."""
    least_s: float = 0.0
    most_s: float = 0.0
    """How long it lasts; nothing where it is over as soon as it is done."""


KINDS: Final[dict[str, Kind]] = {
    "broker-kill": Kind(4, "broker", 2, 60),
    "broker-pause": Kind(3, "broker", 1, 30),
    "broker-restart": Kind(2, "broker", 3, 15),
    "broker-cut-off": Kind(3, "broker", 3, 40),
    "disk-full": Kind(2, "broker", 3, 20),
    "controller-kill": Kind(2, "controller", 1, 20),
    "controller-pause": Kind(1, "controller", 1, 20),
    "ballast-kill": Kind(5, "ballast", 0, 15),
    "ballast-pause": Kind(3, "ballast", 1, 30),
    "ballast-restart": Kind(2, "ballast", 0, 5),
    "ballast-cut-off": Kind(2, "ballast", 3, 30),
    "ballast-doubled": Kind(2, "third", 10, 60),
    "clock-step": Kind(2, "ballast"),
    "topic-config": Kind(3, CLUSTER),
    "broker-config": Kind(2, CLUSTER),
    "throttle-rate": Kind(3, CLUSTER),
    "throttle-list": Kind(3, CLUSTER),
    "foreign-reassignment": Kind(4, CLUSTER),
    "pile-up": Kind(4, CLUSTER),
    "topic-remade": Kind(2, CLUSTER),
    "journal-deleted": Kind(1, CLUSTER),
    "credentials-rotated": Kind(1, "credentials", 2, 15),
}
"""Every fault, and what is known of it beforehand."""
AFTER_JOURNAL_S: Final = 60.0
"""Ballast is left alone for this long when its journal was deleted: no other process remembers what stood in it."""
MOST_BROKERS_AWAY: Final = 2
SECOND_AWAY: Final = 0.25
"""How often a broker is hurt while another one still is."""
GAP_S: Final = (1.0, 10.0)
CALM_S: Final = (20.0, 45.0)
CALM: Final = 0.12
"""How often a fault is followed by a calm in which moves can get on."""


@dataclass(frozen=True, slots=True, order=True)
class Step:
    """One fault."""

    at_s: float
    kind: str
    target: str
    lasts_s: float
    draw: int
    """The seed of whatever the fault itself draws."""

    def __str__(self) -> str:
        lasts = f" for {self.lasts_s:.1f} s" if self.lasts_s else ""
        return f"{self.kind} {self.target}{lasts}"


class Busy:
    """Who is hurt until when."""

    def __init__(self) -> None:
        self._until: dict[str, float] = {}

    def take(self, target: str, until_s: float) -> None:
        """Hold a target until then."""
        self._until[target] = max(until_s, self._until.get(target, 0.0))

    def free(self, targets: Iterable[str], now_s: float) -> list[str]:
        """Those that nothing happens to now."""
        return [t for t in targets if self._until.get(t, 0.0) <= now_s]


def draw_schedule(
    seed: int, *, seconds: float, brokers: Sequence[int], kinds: Collection[str] = tuple(KINDS)
) -> tuple[Step, ...]:
    """The faults of one run; each has ended before its seconds are over."""
    rng = Random(seed)
    busy, steps = Busy(), []
    names = [name for name in KINDS if name in kinds]
    weights = [KINDS[name].weight for name in names]
    now_s = rng.uniform(*GAP_S)
    while now_s < seconds:
        (name,) = rng.choices(names, weights)
        kind = KINDS[name]
        lasts_s = min(round(rng.uniform(kind.least_s, kind.most_s), 1), max(seconds - now_s, 0.0))
        target = _target(kind, rng, busy, brokers, now_s)
        if target is not None:
            steps.append(Step(round(now_s, 1), name, target, round(lasts_s, 1), rng.getrandbits(32)))
            busy.take(target, now_s + lasts_s)
            if name == "journal-deleted":
                for ballast in BALLASTS:
                    busy.take(ballast, now_s + AFTER_JOURNAL_S)
        now_s += rng.uniform(*(CALM_S if rng.random() < CALM else GAP_S))
    return tuple(steps)


def _target(kind: Kind, rng: Random, busy: Busy, brokers: Sequence[int], now_s: float) -> str | None:
    """The target of the fault; None where none is free for it."""
    second = rng.random() < SECOND_AWAY
    if kind.on == CLUSTER:
        return CLUSTER
    if kind.on == "ballast":
        free = busy.free(BALLASTS, now_s)
    elif kind.on == "broker":
        names = [str(b) for b in brokers]
        free = busy.free(names, now_s)
        away = len(names) - len(free)
        if away >= MOST_BROKERS_AWAY or (away and not second):
            return None
    else:
        free = busy.free([kind.on], now_s)
    return rng.choice(free) if free else None


def as_json(seed: int, steps: Iterable[Step]) -> str:
    """The schedule as a file, a line for each fault."""
    lines = ",\n".join("  " + json.dumps(asdict(step)) for step in steps)
    return f'{{"seed": {seed}, "steps": [\n{lines}\n]}}\n'
