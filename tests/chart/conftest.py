"""Renders the chart with Helm's own engine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import helm_python
import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "helm" / "ballast"
LEAST = {"settings": {"cluster": {"bootstrap_server": "kafka:9092"}}}

EVERYTHING: dict[str, Any] = {
    "settings": {
        "cluster": {"name": "shop", "bootstrap_server": "kafka:9092"},
        "mode": "approve",
        "samples": {"store": "/var/lib/ballast/samples"},
    },
    "image": {"digest": "sha256:" + "0" * 64},
    "imagePullSecrets": [{"name": "pull"}],
    "commonLabels": {"team": "data"},
    "auth": {
        "properties": {"secret": "kafka-client"},
        "strimzi": {"userSecret": "ballast-user", "clusterCaSecret": "shop-cluster-ca-cert"},
        "files": [{"secret": "more", "path": "/etc/ballast/files/more"}],
    },
    "web": {"token": {"secret": "page-token"}},
    "service": {"annotations": {"a": "b"}},
    "ingress": {
        "enabled": True,
        "className": "nginx",
        "annotations": {"a": "b"},
        "hosts": ["ballast.example"],
        "tls": [{"hosts": ["ballast.example"], "secretName": "tls"}],
    },
    "httpRoute": {"enabled": True, "parentRefs": [{"name": "gateway"}], "hostnames": ["ballast.example"]},
    "networkPolicy": {"from": [{"namespaceSelector": {}}], "brokerPorts": [9092]},
    "serviceAccount": {"annotations": {"a": "b"}},
    "nodeSelector": {"disk": "ssd"},
    "tolerations": [{"key": "kafka", "operator": "Exists"}],
    "topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "ScheduleAnyway"}
    ],
    "priorityClassName": "high",
    "podAnnotations": {"a": "b"},
    "podLabels": {"c": "d"},
    "env": [{"name": "TZ", "value": "UTC"}],
    "monitoring": {
        "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
        "podMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
        "prometheusRule": {"enabled": True, "runbookBase": "https://git.example/ballast/", "labels": {"x": "y"}},
        "dashboard": {"enabled": True},
    },
    "oneShot": {"enabled": True},
    "jobs": [{"name": "apply", "plan": "tonight", "args": ["apply", "/etc/ballast/plan/plan.json", "--yes"]}],
    "store": {"claim": "samples"},
    "pipeline": {"enabled": True, "image": "ballast-spark:1"},
    "sparkApplication": {
        "enabled": True,
        "image": "spark:1",
        "jars": ["local:///opt/delta.jar"],
        "serviceAccount": "spark",
    },
}

Render = Callable[..., list[dict[str, Any]]]


def merged(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """Values laid over values, as Helm does it."""
    out = dict(base)
    for key, value in over.items():
        out[key] = merged(out[key], value) if isinstance(value, dict) and isinstance(out.get(key), dict) else value
    return out


@pytest.fixture(scope="session")
def render() -> Render:
    """The objects that the chart makes of these values (over the least that it needs)."""

    def objects(
        values: dict[str, Any] | None = None, *, name: str = "shop", exact: bool = False
    ) -> list[dict[str, Any]]:
        with helm_python.Chart.load(str(CHART)) as chart:
            given = (values or {}) if exact else merged(LEAST, values or {})
            chart.validate_schema(given)
            texts = chart.render(given, name=name, namespace="kafka")
        found = [yaml.safe_load_all(text) for path, text in texts.items() if path.endswith(".yaml")]
        return [obj for documents in found for obj in documents if obj]

    return objects


def one(objects: list[dict[str, Any]], kind: str, end: str = "") -> dict[str, Any]:
    """The single object of a kind, or of those of this kind the one whose name ends so."""
    found = [obj for obj in objects if obj["kind"] == kind and obj["metadata"]["name"].endswith(end)]
    assert len(found) == 1, f"{len(found)} objects of kind {kind}"
    return found[0]
