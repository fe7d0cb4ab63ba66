"""Puts a daemon together: cluster, journal, planner, executor, settings, and the loop that uses them."""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import FrameType

from ballast.adapters.clock import SystemClock
from ballast.adapters.kafka.retry import RetryPolicy
from ballast.adapters.kubernetes_events import KubernetesEvents, Pod
from ballast.daemon.acting.driving import DriverParts, DriverRunController
from ballast.daemon.context.access import Tools
from ballast.daemon.context.log import log_event
from ballast.daemon.context.view import Board, View
from ballast.daemon.metrics.catalog import Metrics
from ballast.daemon.policy import LivePolicy
from ballast.daemon.process import logs
from ballast.daemon.process.parts import Outside, RunHooks
from ballast.daemon.process.service import Service, ServiceParts
from ballast.errors import BallastError, UsageError
from ballast.ports.event_sink import null_sink
from ballast.ports.time import Clock
from ballast.settings.load import load_settings
from ballast.settings.model import Settings
from ballast.settings.show import flat
from ballast.settings.watch import SettingsWatch
from ballast.wiring.cluster import OpenCluster, client_security, open_cluster
from ballast.wiring.credentials import CredentialsWatch, end_now, start_anew
from ballast.wiring.history import with_history
from ballast.wiring.journal import journal_of, this_process
from ballast.wiring.runs import new_run_id

log = logging.getLogger("ballast.daemon")


def run_daemon(config: Path | None, environment: Mapping[str, str]) -> bool:
    """Run until SIGTERM or SIGINT; True when it left in order to be started anew, with new credentials."""
    watch = None if config is None else SettingsWatch(config, environment)
    settings = load_settings(None, environment) if watch is None else watch.settings
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
    retry = RetryPolicy(total_s=settings.cluster.timeout_s, observer=Retries(metrics).on_event)
    opened, credentials = open_followed(settings, retry)
    with opened:
        outside = Outside(
            cluster=opened.cluster,
            clock=clock,
            board=board,
            policy=LivePolicy(settings.daemon),
            holder=this_process(f"ballast daemon on {instance_name()}", lease_s=settings.journal.lease_s),
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
                settings_changed=watch.look if watch else lambda: None,
                credentials=credentials,
                start_anew=lambda: start_anew(sys.argv[1:]),
                end_now=lambda: start_anew(sys.argv[1:]) if credentials and credentials.renew else end_now(),
            )
        )
        _obey_signals(service, credentials)
        service.run()
        return credentials is not None and credentials.renew


def open_followed(settings: Settings, retry: RetryPolicy | None = None) -> tuple[OpenCluster, CredentialsWatch | None]:
    """The cluster, and the watch over the files that its credentials come from, where they come from any."""
    wanted = settings.cluster
    path = wanted.command_config
    credentials = CredentialsWatch(
        lambda: client_security(path),
        lambda security: replace(opened, security=security).check_answers(),
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


def _obey_signals(service: Service, credentials: CredentialsWatch | None) -> None:
    def stop(_: int, __: FrameType | None) -> None:
        if credentials is not None:
            credentials.cancel_renewal()
        service.stop()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
