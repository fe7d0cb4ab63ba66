"""Every setting, composed from the policies that the rooms declare; documented where each is declared.

A field here is either a package's policy or the connection.  Names are Ballast's own; Kafka's dotted names are accepted for
the ones that Kafka has (``kafka_names``).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from annotated_types import Ge, Gt

from ballast.adapters.samples.prometheus_queries import PrometheusPolicy
from ballast.core.planner import PlannerPolicy
from ballast.daemon.policy import (
    Actions,
    DaemonPolicy,
    EventPolicy,
    GuardPolicy,
    Intervals,
    LeaderPolicy,
    LogPolicy,
    Mode,
    RepairPolicy,
    StopPolicy,
    WebPolicy,
)
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.pipeline.policy import LOCAL, PipelinePolicy, carries_token, check_master, check_memory


@dataclass(frozen=True, kw_only=True, slots=True)
class ClusterSettings:
    """Which cluster, and how it is reached. Changes need a restart."""

    name: str = ""
    """Display name of the cluster, on the page and in `ballast_cluster_info`. Empty: the cluster id."""
    bootstrap_server: str | None = None
    """`host:port,…` of a few brokers. Empty: the brokers that are registered in `cluster.zookeeper`; without both, `ballast daemon` is
    refused."""
    command_config: Path | None = None
    """A file of client properties in Kafka's own form (`security.protocol`, `sasl.jaas.config`, `ssl.…`)."""
    zookeeper: str | None = None
    """`host:port[/chroot]` for clusters that still have ZooKeeper. Its `/cluster/id` and the brokers' cluster id must agree."""
    id: str | None = None
    """The expected cluster id: Ballast refuses a cluster with another id at this address. Empty: the id of the first reading, until the
    process ends."""
    timeout_s: Annotated[float, Gt(0)] = 30.0
    """Maximum wait for an answer of the cluster, in seconds."""


@dataclass(frozen=True, kw_only=True, slots=True)
class JournalSettings:
    """The write-ahead journal: what is done is written there first. Changes need a restart."""

    file: Path | None = None
    """A file instead of the topic in the cluster, for the daemon and for every command with these settings: for a cluster in which no topic
    can be created, with one replica only. A process that uses the file and one that uses the topic do not exclude each other."""
    lease_s: Annotated[float, Gt(0)] = 15.0
    """Minimum time since the holder last renewed the lock before another process may take it over, in seconds."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SampleSettings:
    """The sampler, which gives plans a history to judge by. Changes need a restart."""

    store: str | None = None
    """Folder or object-store URL of the Delta tables. Empty: no samples are kept."""
    statistic: Literal["mean", "p95", "peak"] = "p95"
    """Rate of a partition that plans use once the pipeline has made a load model: its mean, its 95th percentile or its peak, over the
    intervals between samples."""
    growth_days: Annotated[float, Ge(0)] = 0.0
    """Balance disks for this many days ahead, by each partition's growth. 0 balances them for now."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LoadSettings:
    """External metrics, for loads that the Kafka protocol does not tell. Changes need a restart."""

    prometheus: PrometheusPolicy = field(default_factory=PrometheusPolicy)
    """A Prometheus that scrapes the brokers' own metrics."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PipelineSettings:
    """The Spark half, of which the daemon runs nothing: `ballast pipeline run` and `ballast fleet plan` read these."""

    spark: str = LOCAL
    """Where Spark runs: `local[*]` inside the command itself, `spark://host:port` on a standalone cluster, `k8s://host:port` on Kubernetes,
    `sc://host:port` on a Spark Connect server. `--spark` and `BALLAST_SPARK` override it, and may carry a token for `sc://`."""
    driver_memory: str = "2g"
    """Heap of the embedded JVM, such as `2g` or `1500m`. `--driver-memory` overrides it."""
    history: PipelinePolicy = field(default_factory=PipelinePolicy)
    """How much history the load model uses, and how long each table is kept."""

    def __post_init__(self) -> None:
        """Checked here and not at the field: a refusal of a field repeats its value, which may carry a token."""
        check_master(self.spark)
        check_memory(self.driver_memory)
        if carries_token(self.spark):
            raise ValueError("spark carries a token, which settings would show: give the address as BALLAST_SPARK")


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """One process keeps one cluster by these."""

    cluster: ClusterSettings = field(default_factory=ClusterSettings)
    """Connection to the cluster."""
    mode: Mode = Mode.OBSERVE
    """`observe` writes nothing to the cluster, not even a journal; `approve` prepares plans that wait for a person; `auto` executes
    them. Each kind of action may have its own mode, for example `actions.moves.mode`."""
    leaders: LeaderPolicy = field(default_factory=LeaderPolicy)
    """Leader imbalance."""
    actions: Actions = field(default_factory=Actions)
    """Mode, windows and limits of each kind of action."""
    intervals: Intervals = field(default_factory=Intervals)
    """Check intervals."""
    guards: GuardPolicy = field(default_factory=GuardPolicy)
    """Conditions under which nothing is started."""
    repair: RepairPolicy = field(default_factory=RepairPolicy)
    """Limits of automatic repair: beyond any of them a plan waits for approval, also in mode `auto`."""
    balance: PlannerPolicy = field(default_factory=PlannerPolicy)
    """The imbalance that is tolerated, and what plans may do."""
    execution: ExecutionPolicy = field(default_factory=ExecutionPolicy)
    """How plans are executed: batches, throttles, guards."""
    journal: JournalSettings = field(default_factory=JournalSettings)
    """The write-ahead journal."""
    samples: SampleSettings = field(default_factory=SampleSettings)
    """Where samples are kept, and how plans use them."""
    load: LoadSettings = field(default_factory=LoadSettings)
    """External metrics."""
    pipeline: PipelineSettings = field(default_factory=PipelineSettings)
    """The Spark pipeline, which makes the load model from the samples."""
    stop: StopPolicy = field(default_factory=StopPolicy)
    """What the daemon does at SIGTERM."""
    web: WebPolicy = field(default_factory=WebPolicy)
    """The page, the API, the metrics and the probes. Changes need a restart."""
    events: EventPolicy = field(default_factory=EventPolicy)
    """Event sinks beside the log, the metrics and the page. Changes need a restart."""
    log: LogPolicy = field(default_factory=LogPolicy)
    """Format and level of the log. Changes need a restart."""

    @property
    def daemon(self) -> DaemonPolicy:
        """What the loop decides by."""
        return DaemonPolicy(
            mode=self.mode,
            leaders=self.leaders,
            actions=self.actions,
            intervals=self.intervals,
            guards=self.guards,
            repair=self.repair,
            stop=self.stop,
            balance=self.balance,
            execution=self.execution,
        )


NEED_RESTART = ("cluster", "journal", "samples", "load", "web", "events", "log")
"""Sections that are read once."""
