"""The snapshot file: one reading of a cluster as versioned JSON, and back.

It holds what planning and simulating need (brokers, log dirs, replica lists, sizes, rates, throttles) and nothing that
could be secret: of configs only the named few, no host, no port, no client.  ``dumps`` writes the same bytes for the same
reading, one partition a line; ``loads`` trusts nothing.  The form is documented in ``docs/planning.md``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from ballast.core.cluster.state import (
    NO_LEADERSHIP_RECORD,
    UNKNOWN,
    Broker,
    ClusterState,
    ConfigValue,
    LogDir,
    PartitionRow,
    Topic,
    build,
)
from ballast.core.document import Reader, opened
from ballast.core.planner.cross_rack import SELECTOR
from ballast.core.planner.loads import BYTES_IN, BYTES_OUT, CPU, Loads
from ballast.core.throttles import LISTS, RATES
from ballast.errors import UsageError

FORMAT: Final = "ballast-snapshot"
VERSION: Final = 1
TOPIC_CONFIGS: Final = ("min.insync.replicas", "remote.storage.enable", *LISTS)
"""The topic configs that a snapshot carries."""
BROKER_CONFIGS: Final = tuple(RATES)
"""The broker configs that a snapshot carries."""
_RATES: Final = {"in": BYTES_IN, "out": BYTES_OUT, "cpu": CPU}
"""The key of a measured figure in a partition, and the resource that it makes known."""


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


def loads(text: str, *, source: str = "the snapshot") -> Snapshot:
    """Read a snapshot that ``dumps`` wrote; ``source`` names it in errors."""
    r = opened(
        text,
        source=source,
        form=FORMAT,
        version=VERSION,
        what="a Ballast snapshot",
        hint="Take one with ballast snapshot -o FILE.",
        changed="Take the snapshot again; this file was changed.",
    )
    brokers = r.each("brokers", _broker)
    topics = r.each("topics", _topic)
    rows = r.each("partitions", _Partition)
    _refuse_strangers(r, brokers, topics, rows)
    state = build(
        r.text("cluster_id"),
        tuple(b for b, _ in brokers),
        topics,
        [p.row for p in rows],
        taken_at_ms=r.integer("taken_at_ms"),
        broker_configs={b.id: rates for b, rates in brokers},
        cluster_configs=_configs(r.named_texts("throttles"), "DYNAMIC_DEFAULT_BROKER_CONFIG"),
        api=frozenset(r.texts("api")),
        kafka_version=r.optional_text("kafka_version"),
    )
    state = replace(state, partitions=replace(state.partitions, offline=_offline(state, rows)))
    return Snapshot(
        state, _loads(state, rows, frozenset(r.texts("known")), r.texts("assumptions")), r.flag("anonymised")
    )


# Out


def _values(configs: Mapping[str, ConfigValue], wanted: tuple[str, ...]) -> dict[str, str]:
    return {k: configs[k].value or "" for k in wanted if k in configs and configs[k].value is not None}


def _broker_out(state: ClusterState, b: Broker) -> dict[str, Any]:
    out: dict[str, Any] = {"id": b.id, "rack": b.rack, "alive": b.alive, "controller": b.controller}
    if b.log_dirs_known:
        out["log_dirs"] = [
            {
                "path": d.path,
                "total_bytes": _known(d.total_bytes),
                "usable_bytes": _known(d.usable_bytes),
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
        "min_isr": _known(t.min_isr),
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
        "sizes": [_known(s) for s in p.size_bytes[run].tolist()],
    }
    for key, flags in (("adding", p.adding), ("removing", p.removing), ("offline", p.offline)):
        if bool(flags[run].any()):
            out[key] = p.replica[run][flags[run]].tolist()
    if bool((p.log_dir[run] >= 0).any()):
        out["log_dirs"] = [_known(d) for d in p.log_dir[run].tolist()]
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


def _known(figure: int) -> int | None:
    return figure if figure >= 0 else None


# In


def _configs(values: Mapping[str, str], source: str) -> dict[str, ConfigValue]:
    return {key: ConfigValue(value, source) for key, value in values.items()}


def _broker(r: Reader) -> tuple[Broker, dict[str, ConfigValue]]:
    known = r.has("log_dirs")
    broker = Broker(
        r.integer("id"),
        rack=r.optional_text("rack"),
        alive=r.flag("alive"),
        controller=r.flag("controller"),
        log_dirs=r.each("log_dirs", _log_dir) if known else (),
        log_dirs_known=known,
    )
    rates = r.named_texts("throttles") if r.has("throttles") else {}
    configs = _configs(rates, "DYNAMIC_BROKER_CONFIG")
    if r.has("replica_selector"):
        configs[SELECTOR] = ConfigValue(r.optional_text("replica_selector"), "STATIC_BROKER_CONFIG")
    return broker, configs


def _log_dir(r: Reader) -> LogDir:
    return LogDir(
        r.text("path"),
        _or_unknown(r.optional_integer("total_bytes")),
        _or_unknown(r.optional_integer("usable_bytes")),
        r.flag("cordoned"),
        r.optional_text("error"),
    )


def _topic(r: Reader) -> Topic:
    return Topic(
        r.text("name"),
        internal=r.flag("internal"),
        deleting=r.flag("deleting"),
        min_isr=_or_unknown(r.optional_integer("min_isr")),
        configs=_configs(r.named_texts("configs"), "DYNAMIC_TOPIC_CONFIG"),
    )


def _or_unknown(figure: int | None) -> int:
    return UNKNOWN if figure is None else figure


class _Partition:
    """One partition as the file has it, checked against itself."""

    def __init__(self, r: Reader) -> None:
        replicas = r.brokers("replicas")
        self.place = r.place
        self.offline = self._some(r, "offline", replicas)
        self.row = PartitionRow(
            r.text("topic"),
            r.integer("partition"),
            r.integer("leader", at_least=NO_LEADERSHIP_RECORD),
            replicas,
            self._some(r, "isr", replicas),
            adding=self._some(r, "adding", replicas),
            removing=self._some(r, "removing", replicas),
            sizes=self._each(r, "sizes", replicas),
            log_dirs=self._each(r, "log_dirs", replicas) if r.has("log_dirs") else (UNKNOWN,) * len(replicas),
        )
        self.rates = {key: r.integer(key) for key in ("in", "out", "read", "written") if r.has(key)}
        self.cpu = r.integers("cpu") if r.has("cpu") else ()
        if len(self.cpu) not in {0, 2}:
            raise r.wrong("cpu", "two numbers, of leading and of following")

    @staticmethod
    def _some(r: Reader, key: str, replicas: tuple[int, ...]) -> tuple[int, ...]:
        found = r.brokers(key) if r.has(key) else ()
        if not set(found) <= set(replicas):
            raise r.wrong(key, "some of its 'replicas'")
        return found

    @staticmethod
    def _each(r: Reader, key: str, replicas: tuple[int, ...]) -> tuple[int, ...]:
        values = tuple(UNKNOWN if v is None else v for v in r.items(key))
        if len(values) != len(replicas) or not all(isinstance(v, int) and v >= UNKNOWN for v in values):
            raise r.wrong(key, "one whole number (or null) for each of its 'replicas'")
        return values

    def figure(self, key: str) -> int | tuple[int, ...] | None:
        """A measured figure, None where the file has none."""
        return (self.cpu or None) if key == "cpu" else self.rates.get(key)


def _refuse_strangers(
    r: Reader,
    brokers: tuple[tuple[Broker, dict[str, ConfigValue]], ...],
    topics: tuple[Topic, ...],
    rows: tuple[_Partition, ...],
) -> None:
    """Each thing once, and nothing that belongs to nothing."""
    ids, names = [b.id for b, _ in brokers], [t.name for t in topics]
    keys = [(p.row.topic, p.row.number) for p in rows]
    for key, values in (("brokers", ids), ("topics", names), ("partitions", keys)):
        if len(set(values)) != len(values):
            raise r.wrong(key, "a list without repeats")
    known, dirs = set(names), {b.id: len(b.log_dirs) for b, _ in brokers}
    for p in rows:
        if p.row.topic not in known:
            raise UsageError(f"{p.place}: topic {p.row.topic!r} is not among 'topics'.", hint=r.hint)
        for b, at in zip(p.row.replicas, p.row.log_dirs or (), strict=True):
            if at >= 0 and at >= dirs.get(b, 0):
                raise UsageError(f"{p.place}: broker {b} has no log dir number {at}.", hint=r.hint)


def _offline(state: ClusterState, rows: tuple[_Partition, ...]) -> Any:
    flags = np.zeros(len(state.partitions.replica), np.bool_)
    for p in rows:
        if p.offline:
            row = state.index[state.topics[state.topic_index[p.row.topic]].name, p.row.number]  # type: ignore[index]
            run = slice(int(state.partitions.start[row]), int(state.partitions.start[row + 1]))
            flags[run] = np.isin(state.partitions.replica[run], p.offline)
    return flags


def _loads(
    state: ClusterState, rows: tuple[_Partition, ...], known: frozenset[str], assumptions: tuple[str, ...]
) -> Loads:
    """Sizes from the state, rates from the file; a rate counts as known only where every partition has it."""
    plain = Loads.from_state(state)
    ordered = sorted(rows, key=lambda p: (p.row.topic, p.row.number))
    found = {
        key: np.array([p.figure(key) for p in ordered], np.int64)
        for key, resource in _RATES.items()
        if resource in known and all(p.figure(key) is not None for p in ordered) and ordered
    }
    if not found:
        return plain
    cpu = found.get("cpu", np.zeros((len(ordered), 2), np.int64))
    written = [p.figure("written") for p in ordered]
    read = np.array([UNKNOWN if (figure := p.figure("read")) is None else figure for p in ordered], np.int64)
    return replace(
        plain,
        bytes_in_per_s=found.get("in", plain.bytes_in_per_s),
        bytes_out_per_s=found.get("out", plain.bytes_out_per_s),
        bytes_read_per_s=read,
        bytes_written_per_s=np.array([] if None in written else written, np.int64),
        cpu_leader=cpu[:, 0].copy(),
        cpu_follower=cpu[:, 1].copy(),
        known=plain.known | {_RATES[key] for key in found},
        assumptions=assumptions,
    )
