"""What was asked of the planner, as JSON in the plan itself: enough to ask the same again of a cluster that has changed.

Written by field name, and only what differs from the default, so that a plan stays readable; read with the types that the
intents and the policy declare.  Loads are not part of it: they belong to the moment.  Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import Field, fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, Final, TypeVar, get_args, get_origin, get_type_hints

from ballast.core.planner.intents import (
    Balance,
    ChangeReplicationFactor,
    Decommission,
    Demote,
    Evacuate,
    Expand,
    Intent,
    Leaders,
    Place,
    Racks,
    ReplaceBroker,
)
from ballast.core.planner.policy import PlannerPolicy
from ballast.errors import BallastError, UsageError

T = TypeVar("T")

INTENTS: Final[Mapping[str, type[Intent]]] = {
    cls.__name__: cls
    for cls in (
        Balance,
        Leaders,
        Demote,
        Decommission,
        Expand,
        Evacuate,
        ChangeReplicationFactor,
        Place,
        Racks,
        ReplaceBroker,
    )
}
"""Every intent by the name it is written with."""


def dump_request(intent: Intent, policy: PlannerPolicy, seed: int) -> dict[str, Any]:
    """The question that a plan answers."""
    return {"intent": type(intent).__name__, "wanted": _out(intent), "policy": _out(policy), "seed": seed}


def load_request(request: Mapping[str, Any]) -> tuple[Intent, PlannerPolicy, int]:
    """The question again; whatever is not one is refused."""
    try:
        kind = INTENTS[request["intent"]]
        wanted, policy = _in(kind, request["wanted"]), _in(PlannerPolicy, request["policy"])
        return wanted, policy, int(request["seed"])
    except (BallastError, KeyError, TypeError, ValueError, AttributeError) as wrong:
        raise UsageError(
            f"The plan's 'request' cannot be read: {wrong!r}.", hint="Make the plan again; this file was changed."
        ) from None


def _out(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: _out(v) for f in fields(value) if (v := getattr(value, f.name)) != _default(f)}
    if isinstance(value, Mapping):
        return {str(k): _out(v) for k, v in sorted(value.items())}
    if isinstance(value, AbstractSet):
        return sorted(_out(v) for v in value)
    return [_out(v) for v in value] if isinstance(value, tuple | list) else value


def _default(field: Field[Any]) -> Any:
    return field.default_factory() if callable(field.default_factory) else field.default


def _in(kind: type[T], value: Any) -> T:
    """A dataclass from the JSON of its fields."""
    hints = get_type_hints(kind)
    strange = sorted(set(value) - {f.name for f in fields(kind)})  # type: ignore[arg-type]
    if strange:
        raise ValueError(f"{kind.__name__} has no {strange[0]!r}")
    return kind(**{name: _read_typed(hints[name], v) for name, v in value.items()})


def _read_typed(hint: Any, value: Any) -> Any:
    origin, inner = get_origin(hint), get_args(hint)
    if origin is UnionType:
        return None if value is None else _read_typed(next(h for h in inner if h is not NoneType), value)
    if origin in {frozenset, tuple}:
        return origin(_read_typed(inner[0], v) for v in value)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {inner[0](k): _read_typed(inner[1], v) for k, v in value.items()}
    return _in(hint, value) if is_dataclass(hint) and isinstance(hint, type) else _plain(hint, value)


def _plain(hint: type, value: Any) -> Any:
    accepted = (int, float) if hint is float else hint
    if not isinstance(value, accepted) or (isinstance(value, bool) and hint is not bool):
        raise ValueError(f"{value!r} should be {hint.__name__}")
    return value
