"""What the daemon may do, and when: its settings.

Every field's docstring is its documentation and stands alone; the reference page is generated from it.  Nothing here acts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated
from zoneinfo import ZoneInfo

from annotated_types import Ge, Gt, Interval

from ballast.core.planner import PlannerPolicy
from ballast.executor.machine.policy import ExecutionPolicy

Seconds = Annotated[float, Gt(0)]
NonNegativeSeconds = Annotated[float, Ge(0)]
Percent = Annotated[float, Interval(ge=0, le=100)]


IGNORABLE = frozenset({"cruise-control", "confluent-balancer"})
"""Other balancers that may be installed and idle: the operator may say so."""


class Mode(StrEnum):
    """How far the daemon goes by itself."""

    OBSERVE = "observe"
    APPROVE = "approve"
    AUTO = "auto"


class ActionKind(StrEnum):
    """What the daemon can do to a cluster, from the cheapest to the dearest."""

    ELECTIONS = "elections"
    REPLICA_LIST_CHANGES = "replica_list_changes"
    MOVES = "moves"
    REPAIR = "repair"


class ControllerRebalance(StrEnum):
    """What Ballast does while the controller runs preferred leader elections by itself."""

    WAIT = "wait"
    ACT = "act"
    DISABLE = "disable"


@dataclass(frozen=True, kw_only=True, slots=True)
class Window:
    """A time in which an action may start."""

    opens: str
    """When the window opens, as a cron expression of five fields, for example `0 1 * * 1-5`."""
    lasts_minutes: Annotated[int, Gt(0)]
    """How long the window stays open, in minutes. A batch that started inside may finish after it closed."""
    timezone: str = "UTC"
    """The IANA time zone that the cron expression is read in, for example `Europe/Berlin`."""

    def __post_init__(self) -> None:
        # Imported here since every command loads the policies, and few have a window in them.
        from cronsim import CronSim, CronSimError  # noqa: PLC0415

        try:
            CronSim(self.opens, datetime(2026, 1, 1, tzinfo=UTC))
        except CronSimError as error:
            raise ValueError(f"“{self.opens}” is not a cron expression of five fields ({error})") from error
        try:
            ZoneInfo(self.timezone)
        except (KeyError, ValueError, OSError) as error:
            raise ValueError(f"“{self.timezone}” is not a time zone; use an IANA name such as Europe/Berlin") from error


@dataclass(frozen=True, kw_only=True, slots=True)
class ActionPolicy:
    """One kind of action: whether, when and how often."""

    mode: Mode | None = None
    """`observe`, `approve` or `auto` for this kind of action alone. Empty: as `mode` of the daemon."""
    windows: tuple[Window, ...] = ()
    """Times in which this kind of action may start. Empty: any time."""
    per_day: Annotated[int, Gt(0)] | None = None
    """Maximum number of starts in a calendar day (UTC); it survives restarts. Empty: no limit."""
    cool_down_s: NonNegativeSeconds = 0.0
    """Minimum time between the end of one action of this kind and the start of the next, in seconds. A plan that a person approved does not
    wait for it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Actions:
    """The four kinds of action."""

    elections: ActionPolicy = ActionPolicy()
    """Preferred leader elections: no data moves."""
    replica_list_changes: ActionPolicy = ActionPolicy(cool_down_s=600.0)
    """Changes of the order of replica lists, so that preferred leaders are spread: no data moves."""
    moves: ActionPolicy = ActionPolicy(per_day=4, cool_down_s=1800.0)
    """Moves of replicas to balance the load: data moves, throttled."""
    repair: ActionPolicy = ActionPolicy(cool_down_s=60.0)
    """Moves away from down brokers, and rack repairs: data moves, throttled."""

    def of(self, kind: ActionKind) -> ActionPolicy:
        """The policy of one kind."""
        policy = getattr(self, kind.value)
        assert isinstance(policy, ActionPolicy)
        return policy


@dataclass(frozen=True, kw_only=True, slots=True)
class LeaderPolicy:
    """Leader imbalance: when a broker counts as imbalanced, and how soon it is put right."""

    imbalance_percentage: Percent | None = None
    """Kafka's `leader.imbalance.per.broker.percentage`: a broker is imbalanced when it does not lead more than this percentage of the
    partitions whose preferred leader it is. Empty: the value of ZooKeeper's controller where the cluster has one, else 10."""
    check_interval_s: Seconds | None = None
    """Kafka's `leader.imbalance.check.interval.seconds`: time between two checks of leader imbalance, in seconds. Empty: the value of
    ZooKeeper's controller where the cluster has one, else 300."""
    auto: bool = False
    """Kafka's `auto.leader.rebalance.enable`, here for Ballast itself: true lets it run elections by itself
    (`actions.elections.mode: auto`). Kafka's default is true, Ballast's is false."""
    recovered_percentage: Percent | None = None
    """An imbalanced broker stays imbalanced until its percentage is at or below this. It must not be above `leaders.imbalance_percentage`.
    Empty: half of that percentage."""
    with_controller_rebalance: ControllerRebalance = ControllerRebalance.WAIT
    """While the controller runs elections by itself (`auto.leader.rebalance.enable` on the brokers, Kafka's default): `wait` leaves it one
    of its own check intervals and elects only what is still imbalanced after it, `act` elects without waiting for the controller, `disable`
    leaves elections to the controller."""

    def __post_init__(self) -> None:
        given = self.imbalance_percentage
        if self.recovered_percentage is not None and given is not None and self.recovered_percentage > given:
            raise ValueError("recovered_percentage must not be above imbalance_percentage")

    def recovery_percentage(self, imbalance_percentage: float) -> float:
        """The level at or below which an imbalanced broker is well again, in percent."""
        if self.recovered_percentage is None:
            return imbalance_percentage / 2
        return min(self.recovered_percentage, imbalance_percentage)


@dataclass(frozen=True, kw_only=True, slots=True)
class Intervals:
    """Time between two checks of each kind, in seconds."""

    observe_s: Seconds = 15.0
    """Time between two readings of the cluster's metadata, in seconds."""
    log_dirs_s: Seconds = 60.0
    """Time between two readings of replica sizes and configs, in seconds; they cost the brokers more than metadata does."""
    balance_s: Seconds = 3600.0
    """Time between two checks of whether the load is balanced, in seconds."""
    repair_s: Seconds = 60.0
    """Time between two checks for brokers that are down and for replicas that share a rack, in seconds."""
    act_s: Seconds = 5.0
    """Time between two checks of whether a plan that waits may start, in seconds."""
    journal_s: Seconds = 30.0
    """Time between two readings of the journal's history, in seconds."""
    lock_s: Seconds = 3.0
    """Time between two renewals of the lock, or between two attempts of a standby to get it, in seconds."""
    requests_s: Seconds = 2.0
    """Time between two checks for requests from people and other processes, in seconds."""
    settings_s: Seconds = 5.0
    """Time between two checks of whether the settings file changed, in seconds."""


@dataclass(frozen=True, kw_only=True, slots=True)
class GuardPolicy:
    """Conditions under which nothing is started."""

    down_broker_grace_s: NonNegativeSeconds = 1800.0
    """How long a broker must have been down, or a log dir of a live broker failed, before its replicas are rebuilt elsewhere, in
    seconds."""
    membership_cool_down_s: NonNegativeSeconds = 300.0
    """After a broker joins, leaves or returns, no balancing starts for this long, in seconds: no election, replica list change or move that
    balances the load. Nor does any while replicas are out of sync. Repair of a rack also waits this long after each of its brokers returns,
    once for each broker. A repair that a person approved does not wait."""
    ignore_balancers: tuple[str, ...] = ()
    """Other balancers that do not keep Ballast from acting: `cruise-control`, `confluent-balancer`."""
    max_reading_age_s: Seconds = 120.0
    """Maximum age of the reading of the cluster that a decision uses, in seconds."""

    def __post_init__(self) -> None:
        unknown = set(self.ignore_balancers) - IGNORABLE
        if unknown:
            raise ValueError(f"ignore_balancers knows cruise-control and confluent-balancer, not {', '.join(unknown)}")


@dataclass(frozen=True, kw_only=True, slots=True)
class RepairPolicy:
    """Limits of automatic repair. Beyond any of them a plan waits for approval, also in mode `auto`."""

    whole_racks: bool = False
    """True starts a repair without approval also while every broker of a rack with several brokers is down; most often such a rack returns
    as a whole. A repair never puts two replicas of a partition into one rack where each had its own: such replicas wait for the rack, or
    for `ballast plan evacuate`."""
    max_racks: Annotated[int, Ge(0)] = 1
    """Maximum number of racks with brokers that are down or have a failed log dir. Beyond it a repair waits for approval."""
    max_brokers_fraction: Annotated[float, Interval(gt=0, le=1)] = 0.1
    """Maximum fraction of the brokers that are down or have a failed log dir; those within `guards.down_broker_grace_s` count.
    Beyond it a repair waits for approval. One broker is always allowed."""
    max_bytes: Annotated[int, Gt(0)] | None = 1 << 40
    """Maximum number of bytes that one repair copies without approval; the default is 1 TiB. Empty: no limit."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StopPolicy:
    """What the daemon does at SIGTERM."""

    grace_s: Seconds = 25.0
    """Maximum time from SIGTERM until the process has ended, in seconds; keep it below the pod's `terminationGracePeriodSeconds`."""
    wait_for_moves: bool = False
    """True waits, within `stop.grace_s`, for moves in progress to finish. False leaves them, with their throttles, to the process that
    starts next."""


@dataclass(frozen=True, kw_only=True, slots=True)
class WebPolicy:
    """The page, the JSON API, the metrics and the probes."""

    host: str = "127.0.0.1"
    """Address to listen on; `0.0.0.0` inside a pod."""
    port: Annotated[int, Interval(ge=0, le=65535)] = 8080
    """Port to listen on; 0 uses a free one and logs it."""
    probes_port: Annotated[int, Interval(ge=0, le=65535)] | None = None
    """A separate port for probes and metrics, so that load on the page does not delay them; the chart sets it. Empty: they are on
    `web.port` alone."""
    hosts: tuple[str, ...] = ()
    """Host names of the page, as browsers and proxies send them in the Host header. Addresses, `localhost`, names without a dot and names
    of Kubernetes Services (`….svc`) are always accepted; any other name is refused, so that no foreign site can read the page through a
    browser."""
    tls_certificate: Path | None = None
    """A PEM file with the certificate chain of the page; with `web.tls_key` the page uses TLS. A renewed certificate is used without a
    restart."""
    tls_key: Path | None = None
    """The PEM file with the private key of `web.tls_certificate`."""
    token_file: Path | None = None
    """A file with the token that allows pause, resume, approve and cancel, or with a line `NAME ROLE TOKEN` for each person, where the role
    is `operator` or `viewer` (may not act). It is read at each use, so it may be rotated. Empty: the page is read-only."""
    read_needs_token: bool = False
    """True also asks for a token, a viewer's or an operator's, to read the page and the API. Probes and metrics need none: protect them
    with `web.probes_port` and a NetworkPolicy."""
    topic_metrics: bool = False
    """True adds metrics per topic (size, under-replicated partitions). Never per partition."""

    def __post_init__(self) -> None:
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise ValueError("tls_certificate and tls_key need each other")
        if self.read_needs_token and self.token_file is None:
            raise ValueError("read_needs_token needs token_file")


@dataclass(frozen=True, kw_only=True, slots=True)
class EventPolicy:
    """Event sinks beside the log, the metrics and the page."""

    kubernetes: bool = False
    """True writes what Ballast did as Kubernetes Events about its own pod, so that `kubectl describe pod` shows it. The pod's
    ServiceAccount needs the right to create events; the chart grants it with `events.enabled`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LogPolicy:
    """Format and level of the log."""

    format: str = "auto"
    """Format of the log: `json`, `text`, or `auto`: text on a terminal and JSON elsewhere."""
    level: str = "info"
    """Minimum level of logged messages: `debug`, `info`, `warning` or `error`."""

    def __post_init__(self) -> None:
        if self.format not in {"auto", "json", "text"}:
            raise ValueError("format must be auto, json or text")
        if self.level not in {"debug", "info", "warning", "error"}:
            raise ValueError("level must be debug, info, warning or error")


@dataclass(frozen=True, kw_only=True, slots=True)
class DaemonPolicy:
    """Everything the loop decides by; replaced whole when the settings change."""

    mode: Mode = Mode.OBSERVE
    """`observe` writes nothing to the cluster, not even a journal; `approve` prepares plans that wait for a person;
    `auto` executes them."""
    leaders: LeaderPolicy = LeaderPolicy()
    """Leader imbalance."""
    actions: Actions = field(default_factory=Actions)
    """Mode, windows and limits of each kind of action."""
    intervals: Intervals = Intervals()
    """Check intervals."""
    guards: GuardPolicy = GuardPolicy()
    """Conditions under which nothing is started."""
    repair: RepairPolicy = RepairPolicy()
    """Limits of automatic repair."""
    stop: StopPolicy = StopPolicy()
    """What the daemon does at SIGTERM."""
    balance: PlannerPolicy = field(default_factory=PlannerPolicy)
    """The imbalance that is tolerated, and what plans may do."""
    execution: ExecutionPolicy = field(default_factory=ExecutionPolicy)
    """How plans are executed."""

    def mode_of(self, kind: ActionKind) -> Mode:
        """The active mode of one kind of action."""
        own = self.actions.of(kind).mode
        if own is not None:
            return own
        if kind is ActionKind.ELECTIONS and self.leaders.auto:
            return Mode.AUTO
        return self.mode

    @property
    def writes(self) -> bool:
        """Does any kind of action ever write to the cluster?"""
        return any(self.mode_of(kind) is not Mode.OBSERVE for kind in ActionKind)


@dataclass(slots=True)
class LivePolicy:
    """The active policy: the settings check replaces it, all other parts read it each time."""

    now: DaemonPolicy


SettingsChange = tuple[DaemonPolicy, tuple[tuple[str, str], ...], str]
"""The policy from now on, the settings for the page, and what changed in one sentence."""
