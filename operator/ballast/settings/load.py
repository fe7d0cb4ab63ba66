"""From a YAML file and the environment to one frozen ``Settings``; every mistake is a sentence that names its place.

The environment wins over the file: ``BALLAST__LEADERS__IMBALANCE_PERCENTAGE=5`` sets ``leaders.imbalance_percentage``.  Two
underscores after the prefix keep these apart from what Kubernetes puts into a pod's environment for a Service that happens
to be called ``ballast``.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, Final, get_args

from ballast.errors import UsageError
from ballast.ports.journal_lease import RENEW_AT
from ballast.settings.fields import settable, types, under
from ballast.settings.kafka_names import KAFKA_NAMES
from ballast.settings.model import Settings

PREFIX: Final = "BALLAST__"
SHORT: Final = {
    "BALLAST_BOOTSTRAP_SERVER": ("cluster", "bootstrap_server"),
    "BALLAST_COMMAND_CONFIG": ("cluster", "command_config"),
    "BALLAST_ZOOKEEPER": ("cluster", "zookeeper"),
}
"""The options that every command takes from the environment."""
LEAVING_S: Final = 10.0
"""What the daemon keeps of ``stop.grace_s`` for itself."""

Place = tuple[str, ...]


def load_settings(path: Path | None, environment: Mapping[str, str]) -> Settings:
    """Read, merge, check; the defaults, which a test holds to be valid, where nothing is given."""
    tree: dict[str, Any] = {}
    if path is not None:
        # YAML is imported here and below, since most commands are given none.
        from ballast.settings.yaml_text import read_yaml  # noqa: PLC0415

        tree = read_yaml(path)
    tree = normalise(tree, path.name if path else "the settings")
    for place, value in from_environment(environment):
        _put(tree, place, value, origin="the environment")
    return validate(tree) if tree else Settings()


def normalise(tree: Mapping[str, Any], origin: str) -> dict[str, Any]:
    """Put Kafka's and other dotted names in their places; refuse unknown names, with the nearest known one."""
    out: dict[str, Any] = {}
    for key, value in tree.items():
        name = str(key)
        place = KAFKA_NAMES.get(name) or tuple(name.split("."))
        _check_known(Settings, place, value, name, origin)
        _put(out, place, value, origin=origin)
    return out


def from_environment(environment: Mapping[str, str]) -> Iterable[tuple[Place, Any]]:
    """The settings that environment variables name; values are read as YAML scalars."""
    for name, text in sorted(environment.items()):
        if name in SHORT:
            if text:
                yield SHORT[name], text
        elif name.startswith(PREFIX):
            place = tuple(part.lower() for part in name.removeprefix(PREFIX).split("__"))
            from ballast.settings.yaml_text import read_value  # noqa: PLC0415

            value = read_value(text, name)
            _check_known(Settings, place, value, name, "the environment")
            yield place, value


def validate(tree: Mapping[str, Any]) -> Settings:
    """Check types and bounds."""
    # It takes up to a tenth of a CPU second, and there is nothing to check where nothing is given.
    from pydantic import TypeAdapter, ValidationError  # noqa: PLC0415

    _check_agreement(tree)
    try:
        settings = TypeAdapter(Settings).validate_python(_over_defaults(Settings(), tree))
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        # A member of a union is named like ``literal['auto','none']``, which is no part of the setting's name.
        where = ".".join(str(part) for part in first["loc"] if not str(part).startswith("literal["))
        given = first.get("input")
        shown = f" (given: {given!r})" if isinstance(given, str | int | float | bool) else ""
        more = f" And {error.error_count() - 1} more like it." if error.error_count() > 1 else ""
        message = first["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ").rstrip(".")
        raise UsageError(
            f"{where}: {message}{shown}.{more}",
            hint=f"`ballast config explain {_setting_of(first['loc'])}` says what it means.",
        ) from error
    for one, other, why in _contradictions(settings):
        raise UsageError(f"{one} and {other} contradict each other: {why}.", hint="Change one of the two.")
    return settings


def _over_defaults(section: Any, tree: Mapping[str, Any]) -> dict[str, Any]:
    """Lay what is given over a section's own defaults: ``actions.moves`` keeps its cap when only its windows are given."""
    out: dict[str, Any] = {}
    for f in fields(section):
        default, given = getattr(section, f.name), tree.get(f.name)
        if is_dataclass(default) and (given is None or isinstance(given, Mapping)):
            out[f.name] = _over_defaults(default, given or {})
        else:
            out[f.name] = given if f.name in tree else default
    return out


def _setting_of(place: tuple[int | str, ...]) -> str:
    """The setting that a place inside it belongs to."""
    names = [str(part) for part in place]
    while len(names) > 1 and under(Settings, tuple(names[:-1])) is None:
        names.pop()
    return ".".join(names)


def _check_agreement(tree: Mapping[str, Any]) -> None:
    leaders, actions = tree.get("leaders") or {}, tree.get("actions") or {}
    own = (actions.get("elections") or {}).get("mode") if isinstance(actions, Mapping) else None
    if isinstance(leaders, Mapping) and leaders.get("auto") is True and own not in {None, "auto"}:
        raise UsageError(
            f"auto.leader.rebalance.enable is true and actions.elections.mode is {own}: they contradict each other.",
            hint="Keep one of the two.",
        )


def _contradictions(settings: Settings) -> Iterator[tuple[str, str, str]]:
    """Settings that are each fine and contradict each other: two names, and in one sentence what cannot be."""
    every, journal, web = settings.intervals, settings.journal, settings.web
    if every.lock_s > journal.lease_s * RENEW_AT:
        yield (
            "intervals.lock_s",
            "journal.lease_s",
            f"the lock is renewed every {every.lock_s:g} s and lost after {journal.lease_s:g} s, of which a third is the most",
        )
    if settings.guards.max_reading_age_s <= every.observe_s:
        yield (
            "guards.max_reading_age_s",
            "intervals.observe_s",
            f"a reading every {every.observe_s:g} s is too old after {settings.guards.max_reading_age_s:g} s",
        )
    if settings.stop.wait_for_moves and settings.stop.grace_s <= LEAVING_S:
        yield (
            "stop.wait_for_moves",
            "stop.grace_s",
            f"of {settings.stop.grace_s:g} s none is left to wait for moves: {LEAVING_S:g} s are kept for leaving in order",
        )
    if web.probes_port and web.probes_port == web.port:
        yield "web.probes_port", "web.port", "each needs a port of its own; leave web.probes_port empty to share one"


def _check_known(cls: type, place: Place, value: Any, shown: str, origin: str) -> None:
    """Refuse unknown names at any depth, lists of sections included."""
    parent = under(cls, place[:-1])
    names = [f.name for f in settable(parent)] if parent is not None else []
    if parent is None or place[-1] not in names:
        top = [f.name for f in settable(cls)]
        near = nearest(shown, [*KAFKA_NAMES, *top]) if len(place) == 1 or parent is None else nearest(place[-1], names)
        prefix = "" if len(place) == 1 or parent is None else ".".join(place[:-1]) + "."
        raise UsageError(
            f"{origin} has the setting {shown!r}, which Ballast does not know.",
            hint=f"Did you mean {prefix}{near}?" if near else f"Known here: {', '.join(names or top)}.",
        )
    _check_value(types(parent)[place[-1]], place, value, origin)


def _check_value(kind: Any, place: Place, value: Any, origin: str) -> None:
    if isinstance(kind, type) and is_dataclass(kind) and isinstance(value, Mapping):
        for key, inner in value.items():
            here = (*place, str(key))
            names = [f.name for f in settable(kind)]
            if str(key) not in names:
                near = nearest(str(key), names)
                raise UsageError(
                    f"{origin} has the setting {'.'.join(here)!r}, which Ballast does not know.",
                    hint=f"Did you mean {'.'.join((*place, near))}?" if near else f"Known here: {', '.join(names)}.",
                )
            _check_value(types(kind)[str(key)], here, inner, origin)
    elif isinstance(value, Mapping):
        member = (get_args(kind) or (None,))[-1]
        for key, inner in value.items():
            _check_value(member, (*place, str(key)), inner, origin)
    elif isinstance(value, list):
        members = [a for a in get_args(kind) if isinstance(a, type) and is_dataclass(a)]
        for i, inner in enumerate(value):
            for member in members:
                _check_value(member, (*place, str(i)), inner, origin)


def nearest(name: str, names: Iterable[str]) -> str | None:
    """The known name that was probably meant."""
    found = difflib.get_close_matches(name, list(names), n=1, cutoff=0.6)
    return found[0] if found else None


def _put(tree: dict[str, Any], place: Place, value: Any, *, origin: str) -> None:
    """Set a value; in one file, naming the same setting twice in two ways is a mistake."""
    node = tree
    for part in place[:-1]:
        inner = node.setdefault(part, {})
        if not isinstance(inner, dict):
            raise UsageError(f"{origin}: {part} is a section and holds settings, it has no value of its own.")
        node = inner
    last = place[-1]
    if origin != "the environment" and last in node and not (isinstance(node[last], dict) and isinstance(value, dict)):
        raise UsageError(f"{origin} sets {'.'.join(place)} twice, under two names.", hint="Keep one of the two.")
    if isinstance(value, dict) and isinstance(node.get(last), dict):
        for key, inner in value.items():
            _put(node[last], (str(key),), inner, origin=origin)
    else:
        # A copy, so that what is merged in later never reaches back into the caller's tree.
        node[last] = dict(value) if isinstance(value, dict) else value
