"""The snapshot file: one reading of a cluster as versioned JSON, and back.

It holds what planning and simulating need (brokers, log dirs, replica lists, sizes, rates, throttles) and nothing that
could be secret: of configs only the named few, no host, no port, no client.  ``dumps`` writes the same bytes for the same
reading, one partition a line; ``loads`` trusts nothing.  The form is documented in ``docs/planning.md``.

``FILE`` is the form; pydantic's core holds a file to it while it parses it, and makes no object of a partition but a dict.  What
a partition must be beside that (its ISR is some of its replicas, and so on) is seen in columns, of all partitions at once.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Final, cast

import numpy as np
from pydantic_core import SchemaValidator, ValidationError, to_json
from pydantic_core.core_schema import CoreSchema

from ballast.core.cluster import (
    NO_LEADERSHIP_RECORD,
    UNKNOWN,
    Broker,
    ClusterState,
    ConfigValue,
    Flags,
    Ints,
    LogDir,
    Partitions,
    Topic,
)
from ballast.core.document_errors import refusal, refuse_repeated_keys
from ballast.core.planner.cross_rack.traffic import SELECTOR
from ballast.core.planner.loads import BYTES_IN, BYTES_OUT, CPU, Loads
from ballast.core.throttles import LISTS, RATES
from ballast.errors import UsageError

FORMAT: Final = "ballast-snapshot"
VERSION: Final = 1
TOPIC_CONFIGS: Final = ("min.insync.replicas", "remote.storage.enable", *LISTS)
"""The topic configs that a snapshot carries."""
BROKER_CONFIGS: Final = tuple(RATES)
"""The broker configs that a snapshot carries."""
HINT: Final = "Take one with ballast snapshot -o FILE."
_RATES: Final = {"in": BYTES_IN, "out": BYTES_OUT, "cpu": CPU}
"""The key of a measured figure in a partition, and the resource that it makes known."""


Schema = dict[str, Any]
"""A type as ``pydantic_core`` takes it, whose validator needs none of pydantic's classes."""
LARGEST: Final = 2**63 - 1


def _whole(least: int = 0, most: int = LARGEST) -> Schema:
    return {"type": "int", "ge": least, "le": most}


def _list(item: Schema, **limits: int) -> Schema:
    return {"type": "list", "items_schema": item, **limits}


def _one_of(word: str | int) -> Schema:
    return {"type": "literal", "expected": [word]}


def _object(required: Mapping[str, Schema], optional: Mapping[str, Schema]) -> Schema:
    """What is ``optional`` may be null as well; no other key is there."""
    fields: Schema = {key: {"type": "typed-dict-field", "schema": schema} for key, schema in required.items()}
    for key, schema in optional.items():
        or_null = {"type": "nullable", "schema": schema}
        fields[key] = {"type": "typed-dict-field", "schema": or_null, "required": False}
    return {"type": "typed-dict", "fields": fields, "extra_behavior": "forbid"}


_TEXT: Final[Schema] = {"type": "str"}
_FLAG: Final[Schema] = {"type": "bool"}
_TEXTS: Final[Schema] = {"type": "dict", "keys_schema": _TEXT, "values_schema": _TEXT}
_ID: Final = _whole(most=2**31 - 1)
_LOG_DIR: Final = _object(
    {"path": _TEXT, "cordoned": _FLAG}, {"total_bytes": _whole(), "usable_bytes": _whole(), "error": _TEXT}
)
_BROKER: Final = _object(
    {"id": _ID, "alive": _FLAG, "controller": _FLAG},
    {"rack": _TEXT, "log_dirs": _list(_LOG_DIR), "throttles": _TEXTS, "replica_selector": _TEXT},
)
_TOPIC: Final = _object({"name": _TEXT, "internal": _FLAG, "deleting": _FLAG, "configs": _TEXTS}, {"min_isr": _whole()})
_PARTITION: Final = _object(
    {
        "topic": _TEXT,
        "partition": _ID,
        "leader": _whole(NO_LEADERSHIP_RECORD, 2**31 - 1),
        "replicas": _list(_ID),
        "sizes": _list({"type": "nullable", "schema": _whole(UNKNOWN)}),
    },
    {
        **dict.fromkeys(("isr", "adding", "removing", "offline"), _list(_ID)),
        "log_dirs": _list({"type": "nullable", "schema": _whole(UNKNOWN, 2**31 - 1)}),
        **dict.fromkeys(("in", "out", "read", "written"), _whole()),
        "cpu": _list(_whole(), min_length=2, max_length=2),
    },
)
FILE: Final = _object(
    {
        "format": _one_of(FORMAT),
        "version": _one_of(VERSION),
        "anonymised": _FLAG,
        "cluster_id": _TEXT,
        "taken_at_ms": _whole(),
        "api": _list(_TEXT),
        "known": _list(_TEXT),
        "assumptions": _list(_TEXT),
        "throttles": _TEXTS,
        "brokers": _list(_BROKER),
        "topics": _list(_TOPIC),
        "partitions": _list(_PARTITION),
    },
    {"kafka_version": _TEXT},
)
Line = dict[str, Any]
"""An object of the file."""


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """A reading and what its partitions cost."""

    state: ClusterState
    loads: Loads
    anonymised: bool = False


def dumps(snapshot: Snapshot) -> str:
    """The snapshot as JSON text."""
    state = snapshot.state
    head = {
        "format": FORMAT,
        "version": VERSION,
        "anonymised": snapshot.anonymised,
        "cluster_id": state.cluster_id,
        "taken_at_ms": state.taken_at_ms,
        "kafka_version": state.kafka_version,
        "api": sorted(state.api),
        "known": sorted(snapshot.loads.known),
        "assumptions": list(snapshot.loads.assumptions),
        "throttles": _values(state.cluster_configs, BROKER_CONFIGS),
    }
    fields = [f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in head.items()]
    for key, lines in (
        ("brokers", [_broker_out(state, b) for b in state.brokers]),
        ("topics", [_topic_out(t) for t in state.topics]),
        ("partitions", [_partition_out(snapshot, row) for row in range(len(state.partitions))]),
    ):
        text = ",\n".join(f"    {json.dumps(line, separators=(',', ':'))}" for line in lines)
        fields.append(f'  "{key}": [\n{text}\n  ]' if lines else f'  "{key}": []')
    return "{\n" + ",\n".join(fields) + "\n}\n"


def loads(text: str | bytes, *, source: str = "the snapshot") -> Snapshot:
    """Read a snapshot that ``dumps`` wrote; ``source`` names it in errors."""
    try:
        f: Line = SchemaValidator(cast("CoreSchema", FILE)).validate_json(text, strict=True)
    except ValidationError as error:
        version, what = ("version", VERSION), "a Ballast snapshot"
        raise refusal(error, source=source, what=what, hint=HINT, form="format", version=version) from None
    # Each key has its colon, and nearly all keys are the partitions': where there are no other colons no key is there twice.
    head = to_json(f, exclude={"partitions"}).count(b":")
    keys = head + 1 + sum(map(len, f["partitions"]))
    refuse_repeated_keys(text, keys, source=source, hint=HINT)
    brokers, topics = _brokers(f), tuple(map(_topic, sorted(f["topics"], key=lambda t: t["name"])))
    columns = _Columns(f, source)
    columns.refuse_unknown_log_dirs({b.id: len(b.log_dirs) for b in brokers})
    present = {b.id for b in brokers}
    absent = [Broker(b, alive=False) for b in set(columns.replica.tolist()) - present]
    state = ClusterState(
        cluster_id=f["cluster_id"],
        taken_at_ms=f["taken_at_ms"],
        brokers=tuple(sorted((*brokers, *absent), key=lambda b: b.id)),
        topics=topics,
        partitions=columns.partitions(),
        broker_configs={b["id"]: _broker_configs(b) for b in f["brokers"]},
        cluster_configs=_configs(f["throttles"], "DYNAMIC_DEFAULT_BROKER_CONFIG"),
        api=frozenset(f["api"]),
        kafka_version=f.get("kafka_version"),
    )
    return Snapshot(state, _loads(state, columns.rows, frozenset(f["known"]), tuple(f["assumptions"])), f["anonymised"])


# Out


def _values(configs: Mapping[str, ConfigValue], wanted: tuple[str, ...]) -> dict[str, str]:
    return {k: configs[k].value or "" for k in wanted if k in configs and configs[k].value is not None}


def _broker_out(state: ClusterState, b: Broker) -> dict[str, Any]:
    out: dict[str, Any] = {"id": b.id, "rack": b.rack, "alive": b.alive, "controller": b.controller}
    if b.log_dirs_known:
        out["log_dirs"] = [
            {
                "path": d.path,
                "total_bytes": _figure_or_none(d.total_bytes),
                "usable_bytes": _figure_or_none(d.usable_bytes),
                "cordoned": d.cordoned,
                "error": d.error,
            }
            for d in b.log_dirs
        ]
    configs = state.broker_configs.get(b.id, {})
    rates = _values(configs, BROKER_CONFIGS)
    if SELECTOR in configs:
        out["replica_selector"] = configs[SELECTOR].value
    return out | ({"throttles": rates} if rates else {})


def _topic_out(t: Topic) -> dict[str, Any]:
    return {
        "name": t.name,
        "internal": t.internal,
        "deleting": t.deleting,
        "min_isr": _figure_or_none(t.min_isr),
        "configs": _values(t.configs, TOPIC_CONFIGS),
    }


def _partition_out(snapshot: Snapshot, row: int) -> dict[str, Any]:
    state, load = snapshot.state, snapshot.loads
    p = state.partitions
    run = slice(int(p.start[row]), int(p.start[row + 1]))
    name = state.name(row)
    out: dict[str, Any] = {
        "topic": name.topic,
        "partition": name.partition,
        "leader": int(p.leader[row]),
        "replicas": list(state.replicas(row)),
        "isr": list(state.isr(row)),
        "sizes": [_figure_or_none(s) for s in p.size_bytes[run].tolist()],
    }
    for key, flags in (("adding", p.adding), ("removing", p.removing), ("offline", p.offline)):
        if bool(flags[run].any()):
            out[key] = p.replica[run][flags[run]].tolist()
    if bool((p.log_dir[run] >= 0).any()):
        out["log_dirs"] = [_figure_or_none(d) for d in p.log_dir[run].tolist()]
    if BYTES_IN in load.known:
        out["in"] = int(load.bytes_in_per_s[row])
    if BYTES_OUT in load.known:
        out["out"] = int(load.bytes_out_per_s[row])
    if len(load.bytes_read_per_s) and load.bytes_read_per_s[row] != UNKNOWN:
        out["read"] = int(load.bytes_read_per_s[row])
    if len(load.bytes_written_per_s):
        out["written"] = int(load.bytes_written_per_s[row])
    if CPU in load.known:
        out["cpu"] = [int(load.cpu_leader[row]), int(load.cpu_follower[row])]
    return out


def _figure_or_none(figure: int) -> int | None:
    return figure if figure >= 0 else None


# In


def _configs(values: Mapping[str, str], source: str) -> dict[str, ConfigValue]:
    return {key: ConfigValue(value, source) for key, value in values.items()}


def _brokers(f: Line) -> tuple[Broker, ...]:
    return tuple(
        Broker(
            b["id"],
            rack=b.get("rack"),
            alive=b["alive"],
            controller=b["controller"],
            log_dirs=tuple(map(_log_dir, b.get("log_dirs") or ())),
            log_dirs_known=b.get("log_dirs") is not None,
        )
        for b in f["brokers"]
    )


def _broker_configs(b: Line) -> dict[str, ConfigValue]:
    configs = _configs(b.get("throttles") or {}, "DYNAMIC_BROKER_CONFIG")
    if (selector := b.get("replica_selector")) is not None:
        configs[SELECTOR] = ConfigValue(selector, "STATIC_BROKER_CONFIG")
    return configs


def _log_dir(d: Line) -> LogDir:
    total, usable = d.get("total_bytes"), d.get("usable_bytes")
    return LogDir(d["path"], _or_unknown(total), _or_unknown(usable), d["cordoned"], d.get("error"))


def _topic(t: Line) -> Topic:
    return Topic(
        t["name"],
        internal=t["internal"],
        deleting=t["deleting"],
        min_isr=_or_unknown(t.get("min_isr")),
        configs=_configs(t["configs"], "DYNAMIC_TOPIC_CONFIG"),
    )


def _or_unknown(figure: int | None) -> int:
    return UNKNOWN if figure is None else figure


class _Columns:
    """The partitions in the order of a state, each thing of them once, and nothing that belongs to nothing."""

    def __init__(self, f: Line, source: str) -> None:
        self._source = source
        names = sorted(t["name"] for t in f["topics"])
        self._at = {name: i for i, name in enumerate(names)}
        keys = [(r["topic"], r["partition"]) for r in f["partitions"]]
        self._refuse_repeats("brokers", [b["id"] for b in f["brokers"]])
        self._refuse_repeats("topics", names)
        self._refuse_repeats("partitions", keys)
        if not self._at.keys() >= {topic for topic, _ in keys}:
            place, name = next((i, topic) for i, (topic, _) in enumerate(keys) if topic not in self._at)
            raise UsageError(f"{source}: partitions[{place}].topic: {name!r} is not among 'topics'.", hint=HINT)
        self._order = sorted(range(len(keys)), key=keys.__getitem__)
        self.rows = [f["partitions"][i] for i in self._order]
        lists = [r["replicas"] for r in self.rows]
        self._counts = _lengths(lists)
        self.replica = _flat(lists).astype(np.int32)
        self._slots = self._different("replicas", lists)
        self.log_dir = self._figures("log_dirs").astype(np.int32)

    def partitions(self) -> Partitions:
        """The columns of the partitions."""
        unknown = np.full(len(self.replica), UNKNOWN, np.int64)
        return Partitions(
            topic=np.array([self._at[r["topic"]] for r in self.rows], np.int32),
            number=np.array([r["partition"] for r in self.rows], np.int32),
            leader=np.array([r["leader"] for r in self.rows], np.int32),
            start=np.concatenate(([0], np.cumsum(self._counts, dtype=np.int64))),
            replica=self.replica,
            in_sync=self._members("isr"),
            adding=self._members("adding"),
            removing=self._members("removing"),
            offline=self._members("offline"),
            size_bytes=self._figures("sizes"),
            lag=unknown,
            log_dir=self.log_dir,
            future_size_bytes=unknown.copy(),
        )

    def refuse_unknown_log_dirs(self, dirs: Mapping[int, int]) -> None:
        """Refuse a replica on a log dir that its broker, of ``dirs`` log dirs, does not have."""
        ids, which = np.unique(self.replica, return_inverse=True)
        most = np.array([dirs.get(b, 0) for b in ids.tolist()], np.int64)[which] if len(ids) else which
        for slot in np.flatnonzero((self.log_dir >= 0) & (self.log_dir >= most)).tolist():
            row = int(np.searchsorted(np.cumsum(self._counts), slot, side="right"))
            number = f"broker {self.replica[slot]} has no log dir number {self.log_dir[slot]}"
            raise self._wrong(row, "log_dirs", number)

    def _members(self, key: str) -> Flags:
        """By replica: is it in this list of its partition's?"""
        lists = self._lists(key)
        found = self._different(key, lists)
        if not len(found):
            return np.zeros(len(self._slots), np.bool_)
        if not bool(np.isin(found, self._slots, assume_unique=True).all()):
            row = next(i for i, some in enumerate(lists) if not set(some) <= set(self.rows[i]["replicas"]))
            raise self._wrong(row, key, "should be some of its replicas")
        return np.isin(self._slots, found, assume_unique=True)

    def _different(self, key: str, lists: Sequence[Collection[int]]) -> Ints:
        """Row and broker of each element in one number."""
        found = np.repeat(np.arange(len(lists), dtype=np.int64) << 31, _lengths(lists)) | _flat(lists)
        in_order = np.sort(found)
        if bool((in_order[1:] == in_order[:-1]).any()):
            row = next(i for i, some in enumerate(lists) if len(set(some)) != len(some))
            raise self._wrong(row, key, "should be a list of different broker ids")
        return found

    def _figures(self, key: str) -> Ints:
        """By replica, in lists as long as those of the replicas; ``UNKNOWN`` where there is none."""
        found = [r.get(key) for r in self.rows]
        if all(some is None for some in found):
            return np.full(len(self.replica), UNKNOWN, np.int64)
        lists = [(None,) * count if some is None else some for some, count in zip(found, self._counts, strict=True)]
        unlike = _lengths(lists) != self._counts
        if bool(unlike.any()):
            raise self._wrong(
                int(np.argmax(unlike)), key, "should be one whole number (or null) for each of its replicas"
            )
        values = list(chain.from_iterable(lists))
        return np.array([UNKNOWN if v is None else v for v in values] if None in values else values, np.int64)

    def _lists(self, key: str) -> list[Collection[Any]]:
        return [r.get(key) or () for r in self.rows]

    def _refuse_repeats(self, key: str, values: Collection[Hashable]) -> None:
        if len(set(values)) != len(values):
            raise UsageError(f"{self._source}: {key}: should be a list without repeats.", hint=HINT)

    def _wrong(self, row: int, key: str, what: str) -> UsageError:
        return UsageError(f"{self._source}: partitions[{self._order[row]}].{key}: {what}.", hint=HINT)


def _lengths(lists: Sequence[Collection[object]]) -> Ints:
    return np.fromiter(map(len, lists), np.int64, len(lists))


def _flat(lists: Iterable[Collection[int]]) -> Ints:
    return np.array(list(chain.from_iterable(lists)), np.int64)


def _loads(state: ClusterState, rows: Sequence[Line], known: frozenset[str], assumptions: tuple[str, ...]) -> Loads:
    """Sizes from the state, rates from the file; a rate counts as known only where every partition has it."""
    plain = Loads.from_state(state)

    def figures(key: str) -> list[Any]:
        return [r.get(key) for r in rows]

    found = {
        key: np.array(values, np.int64)
        for key, resource in _RATES.items()
        if resource in known and rows and None not in (values := figures(key))
    }
    if not found:
        return plain
    cpu = found.get("cpu", np.zeros((len(rows), 2), np.int64))
    written = figures("written")
    read_ = np.array([_or_unknown(figure) for figure in figures("read")], np.int64)
    return replace(
        plain,
        bytes_in_per_s=found.get("in", plain.bytes_in_per_s),
        bytes_out_per_s=found.get("out", plain.bytes_out_per_s),
        bytes_read_per_s=read_,
        bytes_written_per_s=np.array([] if None in written else written, np.int64),
        cpu_leader=cpu[:, 0].copy(),
        cpu_follower=cpu[:, 1].copy(),
        known=plain.known | {_RATES[key] for key in found},
        assumptions=assumptions,
    )
