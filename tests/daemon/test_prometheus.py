"""Metrics, rules and dashboard against the real Prometheus and Alertmanager."""

from __future__ import annotations

import json
import re
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
import yaml
from bootstrap.programs import path_of
from tests.daemon.conftest import Running
from tests.leash import leashed
from tests.ports import free_ports
from tests.waiting import becomes, until

from ballast.daemon.metrics.catalog import CATALOG, page
from ballast.daemon.policy import DaemonPolicy, Intervals, WebPolicy

pytestmark = pytest.mark.prometheus

ROOT = Path(__file__).resolve().parents[2]
RULES = ROOT / "deploy" / "prometheus" / "ballast.rules.yaml"
DASHBOARD = ROOT / "deploy" / "grafana" / "dashboard.json"
FAST = DaemonPolicy(intervals=Intervals(observe_s=1, log_dirs_s=2, balance_s=5, repair_s=2, act_s=1))
Serve = Callable[..., Running]


def ask(url: str) -> Any:
    """A JSON answer; None while the server does not answer."""
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:  # noqa: S310 — loopback
            return json.load(answer)
    except OSError:
        return None


class Monitoring:
    """A Prometheus and an Alertmanager in front of some targets."""

    def __init__(self, folder: Path, targets: list[str], rules: Path) -> None:
        self.port, self.alerts_port = free_ports(2)
        config = {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(rules)],
            "alerting": {"alertmanagers": [{"static_configs": [{"targets": [f"127.0.0.1:{self.alerts_port}"]}]}]},
            "scrape_configs": [{"job_name": "ballast", "static_configs": [{"targets": targets}]}],
        }
        (folder / "prometheus.yaml").write_text(yaml.safe_dump(config))
        (folder / "alertmanager.yaml").write_text(
            yaml.safe_dump({"route": {"receiver": "unused"}, "receivers": [{"name": "unused"}]})
        )
        prometheus, manager = path_of("prometheus"), path_of("prometheus-alertmanager")
        self._log = (folder / "log").open("w")
        self._processes = [
            subprocess.Popen(leashed(*command), stdout=self._log, stderr=self._log)
            for command in (
                [prometheus, f"--config.file={folder}/prometheus.yaml", f"--storage.tsdb.path={folder}/data",
                 f"--web.listen-address=127.0.0.1:{self.port}"],
                [manager, f"--config.file={folder}/alertmanager.yaml", f"--storage.path={folder}/alerts",
                 f"--web.listen-address=127.0.0.1:{self.alerts_port}", "--cluster.listen-address="],
            )
        ]  # fmt: skip

    def query(self, expression: str) -> list[dict[str, Any]]:
        """An instant query, empty while Prometheus is starting; an error of PromQL fails the test."""
        url = f"http://127.0.0.1:{self.port}/api/v1/query?" + urllib.parse.urlencode({"query": expression})
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                return list(json.load(answer)["data"]["result"])
        except urllib.error.HTTPError as refused:
            if refused.code == HTTPStatus.SERVICE_UNAVAILABLE:
                return []
            raise AssertionError(f"{expression}: {refused.read().decode()}") from refused
        except OSError:
            return []

    def alerts(self) -> dict[str, dict[str, Any]]:
        """What has reached Alertmanager, by name."""
        found = ask(f"http://127.0.0.1:{self.alerts_port}/api/v2/alerts") or []
        return {alert["labels"]["alertname"]: alert for alert in found}

    def stop(self) -> None:
        """End both."""
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            process.wait(90)
        self._log.close()


@pytest.fixture
def monitor(tmp_path: Path) -> Iterator[Callable[..., Monitoring]]:
    """Starts monitoring for some daemons."""
    with ExitStack() as stack:

        def start(daemons: list[Running], rules: Path = RULES) -> Monitoring:
            monitoring = Monitoring(tmp_path, [f"127.0.0.1:{d.service.web.port}" for d in daemons], rules)
            stack.callback(monitoring.stop)
            return monitoring

        yield start


def promtool(*arguments: str, text: str | None = None) -> str:
    """Run promtool; its complaint fails the test."""
    done = subprocess.run(["promtool", *arguments], input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_the_rules_pass_their_own_tests() -> None:
    """Every alert fires when it should, once, and not before."""
    promtool("check", "rules", str(RULES))
    assert "SUCCESS" in promtool("test", "rules", str(RULES.with_name("ballast.rules.test.yaml")))


def test_every_alert_has_a_test_and_a_runbook() -> None:
    """An alert without a test or an explanation would ring at night for nothing."""
    rules = [r for g in yaml.safe_load(RULES.read_text())["groups"] for r in g["rules"]]
    tested = RULES.with_name("ballast.rules.test.yaml").read_text()
    sections = re.findall(r"^## (\w+)$", (ROOT / "docs" / "alerts.md").read_text(), re.MULTILINE)
    alerts = [r for r in rules if "alert" in r]
    assert len(alerts) >= 14
    for rule in alerts:
        assert f"alertname: {rule['alert']}\n" in tested, rule["alert"]
        anchor = rule["annotations"]["runbook_url"].removeprefix("docs/alerts.md#")
        assert anchor in [s.lower() for s in sections], rule["alert"]
    assert sorted(sections) == sorted(r["alert"] for r in alerts)


def test_rules_and_dashboard_name_only_metrics_that_exist() -> None:
    """A misspelt metric would be an alert that never fires."""
    known = {spec.name for spec in CATALOG}
    known |= {f"{n}{end}" for n in known for end in ("_sum", "_count", "_bucket")}
    text = RULES.read_text() + DASHBOARD.read_text()
    assert set(re.findall(r"\bballast_[a-z_]+\b", text)) - known == set()


def test_the_page_of_metrics_is_the_generated_one() -> None:
    """``ballast config reference --page metrics > docs/metrics.md`` was run after the last change."""
    assert (ROOT / "docs" / "metrics.md").read_text() == page()


def test_metrics_follow_the_conventions(serve: Serve) -> None:
    """Promtool's lint has nothing to say, also with everything switched on."""
    daemon = serve(FAST, web=WebPolicy(port=0, topic_metrics=True))
    daemon.until(lambda v: v.figures is not None and "balance" in v.checks)
    text = daemon.get("/metrics")[1]
    promtool("check", "metrics", text=text)
    assert 'ballast_topic_size_bytes{topic="orders"} 3.6e+09' in text


def test_every_panel_of_the_dashboard_answers(serve: Serve, monitor: Callable[..., Monitoring]) -> None:
    """Each expression is run against a Prometheus that scraped two real daemons, and gives figures."""
    daemons = [serve(FAST), serve(FAST)]
    for daemon in daemons:
        daemon.until(lambda v: v.figures is not None and "balance" in v.checks)
    monitoring = monitor(daemons)
    until(lambda: len(monitoring.query("ballast_partitions")) == 2, "two daemons scraped")
    panels = json.loads(DASHBOARD.read_text())["panels"]
    expressions = [t["expr"] for panel in panels for t in panel["targets"]]
    assert len(expressions) >= 25
    for expression in expressions:
        until(partial(monitoring.query, expression), expression)
    (failed,) = (e for e in expressions if "ballast_broker_failed_log_dirs" in e)
    # A scrape that takes longer than its second leaves no series for a moment.
    becomes(
        lambda: {found["metric"]["broker"]: found["value"][1] for found in monitoring.query(failed)},
        {str(b): "0" for b in daemons[0].world.brokers},
    )
    most = until(partial(monitoring.query, "max(ballast_partitions)"), "the largest")
    assert most[0]["value"][1] == "12"
    recorded = until(lambda: monitoring.query("ballast:leader_imbalance_ratio:max"), "the recording rule")
    assert float(recorded[0]["value"][1]) == 0


def test_trouble_reaches_the_alertmanager_and_goes_away(
    serve: Serve, monitor: Callable[..., Monitoring], tmp_path: Path
) -> None:
    """From a broker that dies to an alert with its runbook, and back; only the waiting times are shortened."""
    quick = tmp_path / "quick.rules.yaml"
    quick.write_text(re.sub(r"for: \w+", "for: 1s", RULES.read_text()))
    daemon = serve(FAST)
    daemon.until(lambda v: v.figures is not None)
    monitoring = monitor([daemon], quick)
    until(lambda: monitoring.query("ballast_partitions"), "the first scrape")
    for broker in (1, 2):
        daemon.world.kill(broker)
    alert = until(lambda: monitoring.alerts().get("BallastUnderMinIsr"), "the alert")
    assert alert["annotations"]["summary"] == "12 partitions are under their min.insync.replicas."
    assert alert["annotations"]["runbook_url"].endswith("#ballastunderminisr")
    for broker in (1, 2):
        daemon.world.start(broker)
    until(lambda: not monitoring.query("ALERTS{alertname='BallastUnderMinIsr',alertstate='firing'}"), "its end")
