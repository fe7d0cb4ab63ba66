"""Who may reach whom once the chart's NetworkPolicy is enforced: the page, the probes, brokers, stores, Spark's own pods."""

from __future__ import annotations

from typing import Any, Final

import yaml
from tests.chart.conftest import EVERYTHING, Render, merged, one
from tests.chart.reach import Network, Party, pods

PAGE, PROBES, BROKER, API = 8080, 8081, 9093, 6443
OUTSIDE: Final = Party(namespace="")
INGRESS: Final = Party(namespace="web", labels={"app": "ingress"})
PROMETHEUS: Final = Party(namespace="monitoring", labels={"app": "prometheus"})
OTHER: Final = Party(namespace="kafka", labels={"app": "other"})
BROKERS: Final = Party(namespace="kafka", labels={"app": "kafka"})
GUESTS: Final[dict[str, Any]] = {
    "pipeline": {"spark": "k8s"},
    "networkPolicy": {
        "from": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "web"}}}],
        "metricsFrom": [
            {
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}},
                "podSelector": {"matchLabels": PROMETHEUS.labels},
            }
        ],
        "brokerPorts": [BROKER],
    },
}


def network(objects: list[dict[str, Any]]) -> Network:
    """Every policy among the objects."""
    return Network([o for o in objects if o["kind"] == "NetworkPolicy"])


def test_each_port_has_its_own_guests(render: Render) -> None:
    """The page is the ingress's, the probes are Prometheus' and those of Helm's test; no other client gets in."""
    objects = render(merged(EVERYTHING, GUESTS))
    there, found = network(objects), pods(objects)
    daemon, test = found["Deployment shop-ballast"], found["Pod shop-ballast-health"]
    wanted = {PAGE: [INGRESS], PROBES: [PROMETHEUS, test]}
    for port, guests in wanted.items():
        for source in (INGRESS, PROMETHEUS, OTHER, OUTSIDE, test, BROKERS):
            assert there.reaches(source, daemon, port) is (source in guests), (port, source)


def test_without_guests_everybody_is_one(render: Render) -> None:
    """The default lets every client reach the page and the metrics, and none any other port."""
    objects = render()
    there, daemon = network(objects), pods(objects)["Deployment shop-ballast"]
    for source in (INGRESS, OTHER, OUTSIDE):
        assert [there.reaches(source, daemon, port) for port in (PAGE, PROBES, 22)] == [True, True, False]


def test_the_daemon_gets_out_to_what_the_settings_name(render: Render) -> None:
    """Brokers, DNS, the Prometheus of the settings, the store, and what is added by hand; the API with Events alone."""
    values: dict[str, Any] = {
        "settings": {
            "load": {"prometheus": {"url": "http://prometheus.monitoring:9090"}},
            "samples": {"store": "s3://samples/ballast"},
        },
        "networkPolicy": {"brokerPorts": [BROKER], "extraPorts": [8443]},
    }
    for events in (False, True):
        objects = render(merged(values, {"events": {"enabled": events}}))
        there, daemon = network(objects), pods(objects)["Deployment shop-ballast"]
        reached = {
            port for port in (BROKER, 53, 9090, 443, 8443, 80, 22, API, 9092) if there.reaches(daemon, OUTSIDE, port)
        }
        assert reached == {BROKER, 53, 9090, 443, 8443} | ({API} if events else set())
        assert there.reaches(daemon, OUTSIDE, 53, "UDP")
        assert not there.reaches(daemon, OUTSIDE, BROKER, "UDP")
    objects = render()
    assert network(objects).reaches(pods(objects)["Deployment shop-ballast"], OUTSIDE, 22)


def test_the_pipeline_and_jobs_are_not_cut_off(render: Render) -> None:
    """Driver and executors reach each other on any port, the Job the API server, and Jobs the brokers."""
    objects = render(merged(EVERYTHING, GUESTS))
    there, found = network(objects), pods(objects)
    driver = found["CronJob shop-ballast-pipeline"]
    template = yaml.safe_load(one(objects, "ConfigMap", "-spark")["data"]["executor.yaml"])
    executor = Party(namespace="kafka", labels=template["metadata"]["labels"])
    assert there.reaches(executor, driver, 40_000)
    assert there.reaches(driver, executor, 40_000)
    assert there.reaches(driver, OUTSIDE, API)
    for name, job in found.items():
        if name.startswith(("Job", "CronJob")):
            assert there.reaches(job, BROKERS, BROKER), name
    spark = one(objects, "SparkApplication")["spec"]
    roles = [Party(namespace="kafka", labels=spark[role]["labels"]) for role in ("driver", "executor")]
    assert there.reaches(roles[0], roles[1], 40_000)
    assert there.reaches(roles[1], roles[0], 40_000)


def test_another_release_in_the_namespace_is_another_one(render: Render) -> None:
    """Its test does not reach this daemon's probes, and this policy does not bind its daemon."""
    objects, others = (render(merged(EVERYTHING, GUESTS), name=name) for name in ("shop", "payments"))
    daemon, theirs = pods(objects)["Deployment shop-ballast"], pods(others)
    assert not network(objects).reaches(theirs["Pod payments-ballast-health"], daemon, PROBES)
    assert network(objects).reaches(OTHER, theirs["Deployment payments-ballast"], PAGE)
