"""Reads a fleet: its list, each cluster, and what history says of it."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from ballast.adapters.samples.load_model import read_load_model
from ballast.core.cluster import ClusterState
from ballast.core.what_if import Member, Traffic
from ballast.core.wording import ShowLine, human_many, human_names
from ballast.errors import BallastError, UsageError
from ballast.pipeline.fleet_store import Contact, append_snapshots, record_contacts
from ballast.pipeline.policy import show_master
from ballast.pipeline.session import SparkPolicy, for_work_in_python, require_pyspark
from ballast.wiring.cluster import open_cluster
from ballast.wiring.loads import HistoryPolicy, loads_from_history, model_rows, unknown_figures
from ballast.wiring.pipeline import Jars, spark_session

AT_ONCE = 8
"""Clusters read side by side."""
_KNOWN = {"name", "config", "bootstrap_server", "command_config", "zookeeper"}


@dataclass(frozen=True, slots=True)
class Entry:
    """One cluster of the fleet's list."""

    name: str
    config: Path | None = None
    bootstrap_server: str | None = None
    command_config: Path | None = None
    zookeeper: str | None = None


def read_list(path: Path) -> list[Entry]:
    """The clusters of a YAML file; every mistake is a sentence."""
    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as failure:
        raise UsageError(f"The fleet's list {path} cannot be read: {str(failure).splitlines()[0]}.") from failure
    rows = found.get("clusters") if isinstance(found, dict) else None
    if not isinstance(rows, list) or not rows:
        raise UsageError(f"{path.name} has no clusters.", hint="Write `clusters:` and a list of name and config.")
    entries = [_entry(row, path) for row in rows]
    names = [e.name for e in entries]
    twice = sorted({n for n in names if names.count(n) > 1})
    if twice:
        raise UsageError(f"{path.name} names {twice[0]!r} twice.", hint="Give each cluster a name of its own.")
    return entries


def _entry(row: Any, path: Path) -> Entry:
    if not isinstance(row, dict) or not isinstance(row.get("name"), str):
        raise UsageError(f"{path.name}: each cluster needs a name.", hint="- name: payments")
    unknown = sorted(set(row) - _KNOWN)
    if unknown:
        raise UsageError(
            f"{path.name}: {row['name']} has {unknown[0]!r}.", hint=f"Known are {', '.join(sorted(_KNOWN))}."
        )
    if row.keys().isdisjoint(("config", "bootstrap_server", "zookeeper")):
        raise UsageError(f"{path.name}: {row['name']} says neither config nor bootstrap_server nor zookeeper.")
    base = path.parent
    return Entry(
        row["name"],
        base / row["config"] if row.get("config") else None,
        row.get("bootstrap_server"),
        base / row["command_config"] if row.get("command_config") else None,
        row.get("zookeeper"),
    )


def collect(
    entries: list[Entry], store: str, *, timeout_s: float, on_line: ShowLine
) -> tuple[list[Member], Mapping[str, BallastError]]:
    """Read every cluster side by side and append what answered; what did not is named, and the others are kept."""

    def read(entry: Entry) -> Member | BallastError:
        try:
            opened = open_cluster(
                bootstrap_server=entry.bootstrap_server,
                command_config=entry.command_config,
                zookeeper=entry.zookeeper,
                config=entry.config,
                timeout_s=timeout_s,
            )
            with opened:
                state = opened.cluster.snapshot()
        except BallastError as failure:
            on_line(f"{entry.name}: {failure}")
            return failure
        on_line(
            f"{entry.name}: {human_many(len(state.brokers), 'broker')}, {human_many(len(state.partitions), 'partition')}"
        )
        traffic, lack = traffic_of(state, store)
        if lack:
            on_line(f"{entry.name}: {lack}")
        return Member(entry.name, state, traffic)

    tried_at = datetime.now(UTC)
    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="collect") as pool:
        found = list(pool.map(read, entries))
    members = [m for m in found if isinstance(m, Member)]
    _refuse_same_cluster(members)
    if members:
        append_snapshots(store, members)
    record_contacts(store, [_contact(e, f, tried_at) for e, f in zip(entries, found, strict=True)])
    failed = {e.name: f for e, f in zip(entries, found, strict=True) if isinstance(f, BallastError)}
    return members, failed


def _refuse_same_cluster(members: list[Member]) -> None:
    """Two names of one cluster would count all that it holds twice."""
    names: dict[str, list[str]] = {}
    for member in members:
        names.setdefault(member.state.cluster_id, []).append(member.name)
    for cluster, same in names.items():
        if len(same) > 1:
            raise UsageError(
                f"{human_names(same)} are the same cluster (cluster id {cluster}); nothing was collected.",
                hint="Keep one of these names in the list.",
            )


def _contact(entry: Entry, found: Member | BallastError, tried_at: datetime) -> Contact:
    if isinstance(found, Member):
        return Contact(entry.name, found.state.cluster_id, tried_at, answered=True, detail="")
    return Contact(entry.name, None, tried_at, answered=False, detail=found.message)


def traffic_of(state: ClusterState, store: str) -> tuple[Traffic | None, str]:
    """What the load model says, None where there is none, and what it does not say."""
    try:
        loads = loads_from_history(state, HistoryPolicy(store=store), now=datetime.now(UTC))
        model = read_load_model(store, state.cluster_id, topic_ids={t.name: t.topic_id or "" for t in state.topics})
    except UsageError as failure:
        return None, f"traffic and growth are not known: {failure.message}"
    rows = model_rows(state, model)
    growth = np.asarray(model.figures["growth_bytes_per_day"], np.float64)
    known = np.where(rows >= 0, growth[np.maximum(rows, 0)], np.nan) if len(growth) else np.full(len(rows), np.nan)
    lacks = []
    if still := int(np.isnan(known).sum()):
        lacks.append(f"the growth of {human_many(still, 'partition')} is not known: they count as not growing.")
    if silent := unknown_figures(model, rows, "bytes_in_p95"):
        lacks.append(f"what producers write to {human_many(silent, 'partition')} is not known: it counts as nothing.")
    return Traffic(loads.bytes_in_per_s, loads.bytes_out_per_s, np.rint(known)), " ".join(lacks)


def plan_fleet(store: str, scenarios: tuple[str, ...], *, spark: SparkPolicy, jars: Jars, on_line: ShowLine) -> int:
    """Plan the fleet on Spark; returns how many rows the fleet plan has."""
    require_pyspark()
    # These import PySpark, which is an extra.
    from ballast.pipeline import fleet_job  # noqa: PLC0415
    from ballast.pipeline.tables import SparkTables  # noqa: PLC0415

    asked = fleet_job.parse_scenarios(scenarios)
    with ExitStack() as stack:

        def session() -> Any:
            on_line(f"starting Spark ({show_master(spark.master)})")
            # All the work is the planner's, in Python: what the JVM itself does is little, however large the fleet.
            return stack.enter_context(spark_session(for_work_in_python(spark), store, jars))

        on_line(f"planning {', '.join(asked)}")
        return fleet_job.plan_fleet(SparkTables(session, store), asked)
