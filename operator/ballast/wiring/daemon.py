"""Puts a daemon together: cluster, journal, planner, executor, settings, and the loop that uses them."""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import FrameType

from ballast.adapters.clock import SystemClock
from ballast.adapters.extras import require
from ballast.adapters.kafka.retry import RetryPolicy
from ballast.adapters.kubernetes_events import KubernetesEvents, Pod
from ballast.adapters.samples.sampler import Sampler, SampleReport
from ballast.core.cluster import ClusterState
from ballast.core.planner import Loads
from ballast.daemon.acting.driving import DriverParts, DriverRunController
from ballast.daemon.context.access import Tools
from ballast.daemon.context.log import log_event
from ballast.daemon.context.view import Board, View
from ballast.daemon.metrics.catalog import Metrics
from ballast.daemon.policy import LivePolicy
from ballast.daemon.process import logs
from ballast.daemon.process.parts import Outside, RunHooks
from ballast.daemon.process.service import Service, ServiceParts, SettingsChange
from ballast.errors import BallastError, Unavailable, UsageError
from ballast.ports.event_sink import null_sink
from ballast.ports.journal import Holder
from ballast.ports.time import Clock
from ballast.settings.load import load_settings
from ballast.settings.model import Settings
from ballast.settings.show import differences, flat, need_restart
from ballast.settings.watch import FileWatch
from ballast.wiring.cluster import OpenCluster, client_security, open_cluster
from ballast.wiring.credentials import CredentialsWatch, end_now, start_anew
from ballast.wiring.external import external_load
from ballast.wiring.journal import journal_of, this_process
from ballast.wiring.loads import HistoryPolicy, loads_from_history
from ballast.wiring.runs import new_run_id
from ballast.wiring.series import StoredSeries

log = logging.getLogger("ballast.daemon")


def run_daemon(config: Path | None, environment: Mapping[str, str]) -> bool:
    """Run until SIGTERM or SIGINT; True when it left in order to be started anew, with new credentials."""
    watch = None if config is None else FileWatch(config)
    settings = load_settings(config, environment)
    logs.configure(settings.log)
    if not settings.cluster.bootstrap_server and settings.cluster.zookeeper is None:
        raise UsageError(
            "No bootstrap server configured.",
            hint="Set cluster.bootstrap_server in the settings file (--config), or the variable BALLAST_BOOTSTRAP_SERVER; "
            "--sandbox runs it on the sandbox of this machine.",
        )
    clock = SystemClock()
    board = Board(first_view(settings, clock))
    metrics = Metrics(board)
    opened, credentials = open_followed(
        settings,
        lambda: service.stop(),  # noqa: PLW0108 — it is made below
        RetryPolicy(total_s=settings.cluster.timeout_s, observer=Retries(metrics).on_event),
    )
    with opened:
        outside = Outside(
            cluster=opened.cluster,
            clock=clock,
            board=board,
            policy=LivePolicy(settings.daemon),
            holder=describe_self(settings),
            reading_journal=journal_of(opened, timeout_s=settings.cluster.timeout_s),
            tools=lambda hooks: make_tools(opened, settings, clock, hooks, metrics),
            event_sink=KubernetesEvents(Pod.of(environment)) if settings.events.kubernetes else null_sink,
            per_topic=settings.web.topic_metrics,
        )
        if settings.samples.store:
            outside = with_history(outside, settings, settings.samples.store, metrics)
        service = Service(
            ServiceParts(
                outside=outside,
                web=settings.web,
                metrics=metrics,
                settings_defaults=dict(flat(Settings())),
                settings_changed=settings_reader(watch, environment, settings),
                credentials_changed=credentials.check if credentials else None,
                start_anew=lambda: start_anew(sys.argv[1:]),
                end_now=lambda: start_anew(sys.argv[1:]) if credentials and credentials.renew else end_now(),
            )
        )
        _obey_signals(service, credentials)
        service.run()
        return credentials is not None and credentials.renew


def open_followed(
    settings: Settings, stop: Callable[[], None], retry: RetryPolicy | None = None
) -> tuple[OpenCluster, CredentialsWatch | None]:
    """The cluster, and the watch over the files that its credentials come from, where they come from any."""
    wanted = settings.cluster
    path = wanted.command_config
    credentials = CredentialsWatch(
        lambda: client_security(path),
        lambda security: replace(opened, security=security).check_answers(),
        stop,
        properties=path,
    )
    opened = open_cluster(
        bootstrap_server=wanted.bootstrap_server,
        command_config=path,
        zookeeper=wanted.zookeeper,
        cluster_id=wanted.id,
        timeout_s=wanted.timeout_s,
        retry=retry,
    )
    opened = replace(opened, journal_file=settings.journal.file)
    return opened, credentials if path is not None or opened.security.files else None


class Retries:
    """Hears of every question that is asked again: a log line each, and they are counted."""

    def __init__(self, metrics: Metrics) -> None:
        self._counter = metrics.retries

    def on_event(self, operation: str, attempt: int, failure: BallastError, wait_s: float) -> None:
        """``RetryObserver``."""
        log_event(
            log,
            f"Asking for {operation} again in {wait_s:.1f} s (attempt {attempt} failed): {failure.message}",
            level=logging.WARNING,
            failure=failure.id,
        )
        self._counter.labels(operation).inc()


def make_tools(opened: OpenCluster, settings: Settings, clock: Clock, hooks: RunHooks, metrics: Metrics) -> Tools:
    """What a daemon that may write needs: the journal and the driver."""
    journal = journal_of(opened, timeout_s=settings.cluster.timeout_s)
    return journal, DriverRunController(
        DriverParts(
            cluster=opened.cluster,
            journal=journal,
            clock=clock,
            policy=hooks.policy,
            full_reading=hooks.full_reading,
            new_id=new_run_id,
            ended=hooks.ended,
            refused=hooks.refused,
            failed=partial(metrics.count_failure, "run"),
            server=opened.bootstrap_server,
        )
    )


def with_history(outside: Outside, settings: Settings, store: str, metrics: Metrics) -> Outside:
    """Record a sample each minute, and plan by the load model once there is one."""
    require("history", "samples.store")
    from ballast.adapters.samples.series import SeriesStore  # noqa: PLC0415 — so does this
    from ballast.adapters.samples.store import SampleStore  # noqa: PLC0415 — it needs the extra

    gaps: tuple[str, ...] = ()
    board, clock = outside.board, outside.clock
    charts = StoredSeries(board, clock, outside.series, SeriesStore(store), partial(metrics.count_failure, "charts"))
    charts.begin()

    def record(report: SampleReport) -> None:
        nonlocal gaps
        board.publish(sampled_at_ms=clock.now_ms(), sample_failures=0)
        if report.bytes_in_per_s is not None:
            outside.series.measured = (clock.now_ms(), report.bytes_in_per_s)
        charts.keep()
        # Said when it changes and not each minute: a Prometheus may be away for a night.
        if report.missing != gaps:
            gaps = report.missing
            for sentence in gaps or ("Samples are whole again: every figure that was asked for is there.",):
                log_event(
                    log, f"Sample: {sentence}" if gaps else sentence, level=logging.WARNING if gaps else logging.INFO
                )

    def fail() -> None:
        board.publish(sample_failures=(board.view.sample_failures or 0) + 1)

    board.publish(sample_failures=0)
    sampler = Sampler(
        outside.cluster,
        SampleStore(store),
        clock,
        external=external_load(settings.load.prometheus),
        on_sample=record,
        on_failure=fail,
    )
    history = HistoryPolicy(store=store, measure=settings.samples.statistic, growth_days=settings.samples.growth_days)

    without = ""

    def loads(state: ClusterState) -> Loads | None:
        nonlocal without
        before, without = without, ""
        try:
            return loads_from_history(state, history, now=datetime.now(UTC))
        except (UsageError, Unavailable) as none_yet:
            without = none_yet.message
            # A store that holds no model yet is how each begins; one that does not answer is trouble.
            level = logging.WARNING if isinstance(none_yet, Unavailable) else logging.INFO
            if without != before:
                log_event(log, f"Planning without history: {without}", level=level)
            return None
        finally:
            if before and not without:
                log_event(log, "Planning by history again.")

    return replace(outside, on_state=sampler, loads=loads)


def first_view(settings: Settings, clock: Clock) -> View:
    """What is known before the first check."""
    return View(
        name=settings.cluster.name,
        instance=instance_name(),
        started_at_ms=clock.now_ms(),
        mode=settings.mode.value,
        settings=tuple(flat(settings)),
    )


def instance_name() -> str:
    """The pod's name where there is one, else the host's."""
    return os.environ.get("BALLAST_INSTANCE") or socket.gethostname()


def describe_self(settings: Settings) -> Holder:
    """Who takes the lock."""
    return this_process(f"ballast daemon on {instance_name()}", lease_s=settings.journal.lease_s)


def settings_reader(
    watch: FileWatch | None, environment: Mapping[str, str], first: Settings
) -> Callable[[], SettingsChange | None]:
    """Look whether the file changed; hand over what may change while running and name what may not."""
    if watch is None:
        return lambda: None
    current, mistaken = first, False

    def look() -> SettingsChange | None:
        nonlocal current, mistaken
        if not watch.changed():
            return None
        # A mistake is told once, and so is its end: also where the file then says what it said before.
        mended, mistaken = mistaken, True
        before, current = current, load_settings(watch.path, environment)
        mistaken = False
        changed = differences(current, before)
        if not changed:
            same = "The settings file is valid again, and its settings are active."
            return (current.daemon, tuple(flat(current)), same) if mended else None
        later = need_restart(before, current)
        names = ", ".join(f"{name} = {value}" for name, value, _ in changed if name not in later)
        sentence = f"Settings changed: {names}." if names else "Settings changed."
        if later:
            sentence += f" Picked up at the next start only: {', '.join(later)}."
        return current.daemon, tuple(flat(current)), sentence

    return look


def _obey_signals(service: Service, credentials: CredentialsWatch | None) -> None:
    def stop(_: int, __: FrameType | None) -> None:
        if credentials is not None:
            credentials.renew = False  # A signal to stop ends the process, also while it is leaving to come back.
        service.stop()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
