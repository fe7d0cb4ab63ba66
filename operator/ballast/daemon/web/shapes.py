"""The shapes of the API's answers as JSON Schema: of views from their own fields, so that none can be left out.

What ``api`` shapes by hand is described by hand beside it.  Nothing may be answered that is not described: every object says
``additionalProperties: false``, and a test holds answers to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import StrEnum
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from ballast.core.cluster.drain import Drain
from ballast.core.planner.ranges import Share
from ballast.core.samples import Point
from ballast.daemon.context.view import (
    Absence,
    Answer,
    BalanceView,
    LockView,
    MoveView,
    Other,
    Outage,
    Pause,
    Permission,
    PlanView,
    RunView,
    TickReport,
)
from ballast.daemon.observing.figures import BrokerFigures

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
COUNT: Schema = {"type": "integer"}
NUMBER: Schema = {"type": "number"}
FLAG: Schema = {"type": "boolean"}
_PLAIN: Mapping[Any, Schema] = {str: TEXT, int: COUNT, float: NUMBER, bool: FLAG, NoneType: {"type": "null"}, Any: {}}
NAMES: Mapping[type, str] = {
    Absence: "Absence",
    Answer: "Answer",
    BrokerFigures: "Broker",
    Drain: "Drain",
    BalanceView: "Verdict",
    LockView: "Lock",
    MoveView: "Move",
    Other: "Other",
    Outage: "Outage",
    Point: "Point",
    Pause: "Pause",
    PlanView: "Plan",
    RunView: "Run",
    Share: "Share",
    Permission: "Permission",
    TickReport: "Tick",
}
"""What the views are called in the description."""


def ref(name: str) -> Schema:
    """A named shape."""
    return {"$ref": f"#/components/schemas/{name}"}


def array(of: Schema) -> Schema:
    """A list of one shape."""
    return {"type": "array", "items": of}


def or_null(shape: Schema) -> Schema:
    """The shape, or null where there is none or it is not known."""
    return {"anyOf": [shape, {"type": "null"}]}


def closed(description: str, properties: Mapping[str, Schema]) -> Schema:
    """An object with exactly these fields."""
    return {
        "type": "object",
        "description": description,
        "required": sorted(properties),
        "properties": dict(properties),
        "additionalProperties": False,
    }


def components() -> dict[str, Schema]:
    """Every named shape."""
    shapes = {name: _of_view(view) for view, name in NAMES.items()}
    broker = shapes["Broker"]["properties"]
    broker |= {name: or_null(COUNT) for name in broker if name.endswith("_bytes")}
    return {**shapes, "Partition": _PARTITION, "Range": _RANGE, "Cluster": _CLUSTER, "Status": _STATUS}


def _of_view(view: type) -> Schema:
    hints = get_type_hints(view)
    first_line = (view.__doc__ or "").partition("\n")[0]
    return closed(first_line, {f.name: _of_type(hints[f.name]) for f in fields(view)})


def _of_type(hint: Any) -> Schema:
    if hint in _PLAIN:
        return dict(_PLAIN[hint])
    if isinstance(hint, type) and (is_dataclass(hint) or issubclass(hint, StrEnum)):
        return ref(NAMES[hint]) if is_dataclass(hint) else {"enum": [member.value for member in hint]}
    origin, inside = get_origin(hint), get_args(hint)
    if origin in {Union, UnionType}:
        return {"anyOf": [_of_type(option) for option in inside]}
    if origin is tuple and inside[-1] is Ellipsis:
        return array(_of_type(inside[0]))
    if origin is tuple:
        return {"type": "array", "prefixItems": [_of_type(item) for item in inside], "items": False}
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": _of_type(inside[1])}
    raise TypeError(f"{hint} has no shape in JSON yet")


_RANGE = closed(
    "One resource over the brokers that share it, and the range of each in which it is left alone.",
    {
        "resource": TEXT,
        "label": TEXT,
        "unit": {"enum": ["bytes", "bytes/s", "cpu", ""]},
        "tolerance": {**NUMBER, "description": "How far from its fair share a broker may be, as a part of that share."},
        "skew": {**NUMBER, "description": "The largest distance from a fair share, as a part of that share."},
        "outside": {**array(COUNT), "description": "Ids of the brokers out of range."},
        "shares": {"type": "object", "additionalProperties": ref("Share"), "description": "By broker id."},
    },
)
_CLUSTER = closed(
    "The cluster in figures; what a broker did not say is null, never zero.",
    {
        "id": TEXT,
        "kafka_version": or_null(TEXT),
        "taken_at_ms": {**COUNT, "description": "When it was read; milliseconds since the epoch, as every `_ms`."},
        "topics": COUNT,
        "partitions": COUNT,
        "under_replicated": COUNT,
        "under_min_isr": COUNT,
        "at_min_isr": COUNT,
        "min_isr_unknown": {
            **COUNT,
            "description": "Under-replicated, of topics whose minimum could not be read: in neither of the two.",
        },
        "offline": COUNT,
        "moving": COUNT,
        "leader_imbalance_threshold": {**NUMBER, "description": "0 to 1; a broker over it counts as imbalanced."},
        "brokers": array(ref("Broker")),
        "ranges": array(ref("Range")),
        "throttles": closed(
            "Replication throttles that are set now, whoever set them.",
            {"topics": array(TEXT), "brokers": array(COUNT), "bytes_per_s": or_null(COUNT)},
        ),
        "gaps": {**array(TEXT), "description": "What the reading lacks, and why."},
    },
)
_STATUS = closed(
    "Everything that the page shows.",
    {
        "version": {**COUNT, "description": "Grows with every change."},
        "now_ms": {**COUNT, "description": "The daemon's clock, by which ages are told."},
        "name": TEXT,
        "instance": TEXT,
        "started_at_ms": COUNT,
        "role": {"enum": ["starting", "observer", "leader", "standby", "stopping"]},
        "mode": {"enum": ["observe", "approve", "auto"]},
        "actions_enabled": {**FLAG, "description": "False: the page is read-only."},
        "read_only": {**or_null(TEXT), "description": "Why nobody may act; null where somebody may."},
        "cluster": or_null(ref("Cluster")),
        "outage": or_null(ref("Outage")),
        "absences": {**array(ref("Absence")), "description": "Brokers that are down and hold replicas."},
        "permissions": array(ref("Permission")),
        "others": array(ref("Other")),
        "pause": or_null(ref("Pause")),
        "drains": {**array(ref("Drain")), "description": "Brokers that people drained, by `plan` and its approval."},
        "lock": ref("Lock"),
        "balance": ref("Verdict"),
        "run": {**or_null(ref("Run")), "description": "The run that this process carries out."},
        "run_elsewhere": {
            **or_null(ref("Run")),
            "description": "On a standby: the run that another process carries out, as the journal tells it.",
        },
        "plans": array(ref("Plan")),
        "ticks": {"type": "object", "additionalProperties": ref("Tick"), "description": "By the tick's name."},
        "answers": {**array(ref("Answer")), "description": "What came of the newest requests to this process."},
        "throttles_to_restore": {**COUNT, "description": "Throttles that Ballast set and has not yet removed."},
        "settings_problem": or_null(TEXT),
    },
)
_PARTITION = closed(
    "One partition; mid-move, `replicas` is the union of old and new.",
    {
        "topic": TEXT,
        "partition": COUNT,
        "leader": or_null(COUNT),
        "preferred": COUNT,
        **{name: array(COUNT) for name in ("replicas", "in_sync", "adding", "removing")},
        "size_bytes": {**or_null(COUNT), "description": "Of the leader's log."},
        "lag": {
            **or_null(COUNT),
            "description": "Messages that the slowest replica is behind; null where log ends were not read: the daemon does not.",
        },
    },
)
BROKER = closed(
    "One broker; the largest replicas first.",
    {
        "id": COUNT,
        "rack": or_null(TEXT),
        "host": or_null(TEXT),
        **dict.fromkeys(("alive", "reachable", "controller"), FLAG),
        "log_dirs": array(
            closed(
                "One log directory.",
                {
                    "path": TEXT,
                    "total_bytes": or_null(COUNT),
                    "usable_bytes": or_null(COUNT),
                    "cordoned": FLAG,
                    "error": or_null(TEXT),
                },
            )
        ),
        "throttles": array(closed("One rate that is set.", {"name": TEXT, "value": TEXT})),
        "total": {**COUNT, "description": "Replicas; at most 1000 of them are listed."},
        "replicas": array(
            closed(
                "One replica.",
                {
                    "topic": TEXT,
                    "partition": COUNT,
                    **dict.fromkeys(("leader", "preferred", "in_sync", "adding", "removing"), FLAG),
                    "size_bytes": or_null(COUNT),
                },
            )
        ),
    },
)
TOPIC = closed(
    "One topic.",
    {
        "name": TEXT,
        "internal": FLAG,
        "min_isr": or_null(COUNT),
        "size_bytes": {**or_null(COUNT), "description": "Of all replicas."},
        "throttled": FLAG,
        "total": {**COUNT, "description": "Partitions; at most 1000 of them are listed."},
        "partitions": array(ref("Partition")),
    },
)
PARTITIONS = closed(
    "The partitions in one state.", {"state": TEXT, "total": COUNT, "partitions": array(ref("Partition"))}
)
