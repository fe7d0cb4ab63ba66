"""What a scenario can expect: claims about the outcome, judged one by one, and the bound that times are compared with."""

from __future__ import annotations

import operator
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from ballast.core.copying import copying_of
from ballast.core.plan import Plan
from ballast.core.throttles import LISTS, RATES
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.sim.scenario_text import Statement, quantity
from ballast.sim.world import SimWorld

_CLAIM: Final = re.compile(r"([a-z_]+)(?:(<=|>=|=)(.+))?")
_COMPARE: Final[Mapping[str, Callable[[float, float], bool]]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "=": operator.eq,
}


@dataclass(slots=True)
class ClaimOutcome:
    """What came of all intents of a scenario together."""

    status: str = "none"
    """Of the last run: ``done``, ``incomplete``, …, or ``nothing-to-do``."""
    moves: int = 0
    bytes: float = 0.0
    seconds: float = 0.0
    """Simulated, from the first step of each run to its end, deaths and waits for the lock included."""
    bound_s: float = 0.0
    """The least that the throttle or the network cards allow for the same bytes."""
    lives: int = 0
    """Processes that it took."""
    throttles_before: dict[tuple[str, str, str], str] = field(default_factory=dict)
    plan_now_is_empty: bool = False
    """A plan of the last intent, made when it was asked for, has nothing to do (``steady``)."""
    failures: list[str] = field(default_factory=list)
    """Expectations that did not hold, as sentences."""


def judge(claim: str, statement: Statement, outcome: ClaimOutcome, world: SimWorld) -> str | None:
    """None when the claim holds, else what is the case."""
    match = _CLAIM.fullmatch(claim)
    if match is None or match[1] not in CLAIMS:
        raise statement.fail(f"{claim!r} is no claim; there are {', '.join(CLAIMS)}, with <=, >= or =.")
    name, comparison, wanted = match.groups()
    found = CLAIMS[name](outcome, world)
    if isinstance(found, bool):
        holds = found
    elif isinstance(found, str):
        holds = comparison == "=" and found == wanted
    elif wanted is None:
        raise statement.fail(f"{name} is a figure; compare it with <=, >= or =.")
    elif wanted.endswith("bound"):
        limit = float(wanted.removesuffix("bound")) * outcome.bound_s
        holds = _COMPARE[comparison](found, limit)
        return None if holds else f"and it is {found:.4g}, with a bound of {outcome.bound_s:.4g}"
    else:
        holds = _COMPARE[comparison](found, quantity(wanted, statement))
    return None if holds else f"and it is {found}"


def throttles(world: SimWorld) -> dict[tuple[str, str, str], str]:
    """Every throttle setting that stands now."""
    brokers, topics = world.brokers.values(), world.topics.values()
    out = {("broker", str(b.id), k): v for b in brokers for k, v in b.configs.items() if k in RATES}
    return out | {("topic", t.name, k): v for t in topics for k, v in t.configs.items() if k in LISTS}


def bound_s(plan: Plan, world: SimWorld, policy: ExecutionPolicy) -> float:
    """Bytes over the busiest link, divided by its rate: what no execution of this plan can be faster than."""
    copying = copying_of(plan.moves, lambda name: world.partition(name.topic, name.partition).leader)
    rate = policy.throttle if isinstance(policy.throttle, int) else float("inf")
    links = [*copying.received.items(), *copying.sent.items()]
    return max(
        (load / min(rate, world.brokers[b].nic_bytes_per_s) for b, load in links if b in world.brokers), default=0.0
    )


def _fullest(_: ClaimOutcome, world: SimWorld) -> float:
    """The fullest live broker's bytes over the mean."""
    used = [sum(world.used_bytes(b.id, i) for i in range(len(b.dir_bytes))) for b in world.brokers.values() if b.up]
    return max(used) * len(used) / sum(used) if sum(used) else 1.0


def _most_led(_: ClaimOutcome, world: SimWorld) -> float:
    """The most leaders on a live broker over the mean."""
    led = Counter(p.leader for p in world.partitions() if p.led)
    live = [b.id for b in world.brokers.values() if b.up]
    total = sum(led.values())
    return max(led[b] for b in live) * len(live) / total if total else 1.0


CLAIMS: Final[Mapping[str, Callable[[ClaimOutcome, SimWorld], float | str | bool]]] = {
    "status": lambda o, _: o.status,
    "moves": lambda o, _: float(o.moves),
    "bytes": lambda o, _: o.bytes,
    "time": lambda o, _: o.seconds,
    "lives": lambda o, _: float(o.lives),
    "lost": lambda _, w: sum(p.lost_bytes for p in w.partitions()),
    "refused": lambda _, w: sum(p.refused_s for p in w.partitions()),
    "moving": lambda _, w: float(sum(p.reassigning for p in w.partitions())),
    "out_of_sync": lambda _, w: float(sum(set(p.isr) != set(p.replicas) for p in w.partitions())),
    "fullest": _fullest,
    "most_led": _most_led,
    "throttles_unchanged": lambda o, w: throttles(w) == o.throttles_before,
    "steady": lambda o, _: o.plan_now_is_empty,
}
"""``fullest`` and ``most_led`` are the worst live broker over the mean; 1 is balanced."""
