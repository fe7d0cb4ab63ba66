"""Objects of other people's CRDs, against small schemas written here for the fields that the chart uses.

The CRDs themselves are not at hand offline; these schemas follow the published ones and refuse any field that they do not
name, so that a new field in a template has to be looked up before it passes.  An API server with the published CRDs of the
Gateway API 1.6.1 and of Spark's operator 2.4.0 took the HTTPRoute and the SparkApplication of these values, strictly.
"""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
from tests.chart.conftest import EVERYTHING, Render, one

TEXT: dict[str, Any] = {"type": "string", "minLength": 1}
NAME = {"type": "string", "maxLength": 63, "pattern": r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"}
HOST = {
    "type": "string",
    "maxLength": 253,
    "pattern": r"^(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
}
LABELS = {"type": "object", "additionalProperties": TEXT}
SELECTOR = {"type": "object", "properties": {"matchLabels": LABELS}, "additionalProperties": False}


def exactly(required: list[str], **properties: Any) -> dict[str, Any]:
    """An object with these fields and no others."""
    return {"type": "object", "required": required, "properties": properties, "additionalProperties": False}


ENDPOINTS = {
    "type": "array",
    "minItems": 1,
    "items": exactly(
        ["port"],
        port=TEXT,
        path={"const": "/metrics"},
        interval={"pattern": r"^\d+(ms|s|m)$"},
        relabelings={
            "type": "array",
            "items": exactly(["targetLabel", "replacement"], targetLabel=TEXT, replacement=TEXT),
        },
    ),
}
RULE = {
    "type": "object",
    "required": ["expr"],
    "properties": {
        "alert": TEXT, "record": TEXT, "expr": TEXT, "for": {"pattern": r"^\d+[smh]$"},
        "labels": exactly(["severity"], severity={"enum": ["info", "warning", "critical"]}),
        "annotations": exactly(["summary", "description", "runbook_url"], summary=TEXT, description=TEXT, runbook_url=TEXT),
    },
    "oneOf": [{"required": ["alert", "labels", "annotations"]}, {"required": ["record"]}],
    "additionalProperties": False,
}  # fmt: skip
SPARK_POD = exactly(
    ["cores", "memory"], cores={"type": "integer"}, memory={"pattern": r"^\d+g$"}, instances={"type": "integer"},
    serviceAccount=TEXT, labels={"type": "object", "additionalProperties": TEXT}, securityContext={"type": "object"}, podSecurityContext={"type": "object"},
    nodeSelector=LABELS, tolerations={"type": "array"}, priorityClassName=TEXT,
    volumeMounts={"type": "array", "items": exactly(["name", "mountPath"], name=TEXT, mountPath=TEXT)},
    env={"type": "array", "items": exactly(["name", "value"], name=TEXT, value=TEXT)},
)  # fmt: skip
SPECS: dict[str, tuple[str, dict[str, Any]]] = {
    "ServiceMonitor": ("monitoring.coreos.com/v1", exactly(["selector", "endpoints"], selector=SELECTOR, endpoints=ENDPOINTS)),
    "PodMonitor": (
        "monitoring.coreos.com/v1",
        exactly(["selector", "podMetricsEndpoints"], selector=SELECTOR, podMetricsEndpoints=ENDPOINTS),
    ),
    "PrometheusRule": (
        "monitoring.coreos.com/v1",
        exactly(["groups"], groups={"type": "array", "items": exactly(["name", "rules"], name=TEXT, rules={"type": "array", "items": RULE})}),
    ),
    "HTTPRoute": (
        "gateway.networking.k8s.io/v1",
        exactly(
            ["parentRefs", "rules"],
            parentRefs={"type": "array", "minItems": 1, "maxItems": 32, "items": exactly(["name"], name=TEXT, namespace=NAME, sectionName=HOST)},
            hostnames={"type": "array", "maxItems": 16, "items": HOST},
            rules={"type": "array", "minItems": 1, "maxItems": 16, "items": exactly(["backendRefs"], backendRefs={
                "type": "array", "maxItems": 16, "items": exactly(["name", "port"], name=TEXT, port={"type": "integer", "minimum": 1, "maximum": 65535})})},
        ),
    ),
    "SparkApplication": (
        "sparkoperator.k8s.io/v1beta2",
        exactly(
            ["type", "mode", "image", "mainApplicationFile", "sparkVersion", "driver", "executor"],
            type={"const": "Python"}, pythonVersion={"const": "3"}, mode={"const": "cluster"}, image=TEXT, imagePullPolicy=TEXT, imagePullSecrets={"type": "array", "items": TEXT},
            mainApplicationFile=TEXT, arguments={"type": "array", "items": TEXT}, sparkVersion=TEXT,
            restartPolicy=exactly(
                ["type", "onFailureRetries", "onFailureRetryInterval"], type={"enum": ["Never", "OnFailure", "Always"]},
                onFailureRetries={"type": "integer"}, onFailureRetryInterval={"type": "integer", "minimum": 1},
                onSubmissionFailureRetries={"type": "integer"}, onSubmissionFailureRetryInterval={"type": "integer", "minimum": 1},
            ),
            volumes={"type": "array", "items": exactly(["name", "persistentVolumeClaim"], name=TEXT,
                persistentVolumeClaim=exactly(["claimName"], claimName=TEXT))},
            driver=SPARK_POD, executor=SPARK_POD, deps=exactly(["jars"], jars={"type": "array", "items": TEXT}),
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", sorted(SPECS))
def test_objects_of_crds_have_only_known_fields(render: Render, kind: str) -> None:
    """API version, and every field of the spec."""
    api, schema = SPECS[kind]
    obj = one(render(EVERYTHING), kind)
    assert obj["apiVersion"] == api
    jsonschema.validate(obj["spec"], schema)


def test_monitors_and_rules_select_what_they_are_for(render: Render) -> None:
    """A monitor that selects nothing would be silence, not safety."""
    objects = render(EVERYTHING)
    service, pod = one(objects, "Service"), one(objects, "Deployment")["spec"]["template"]
    for kind, target in (("ServiceMonitor", service), ("PodMonitor", pod)):
        wanted = one(objects, kind)["spec"]["selector"]["matchLabels"]
        assert wanted.items() <= target["metadata"]["labels"].items()
    assert one(objects, "ServiceMonitor")["spec"]["endpoints"][0]["port"] in [
        p["name"] for p in service["spec"]["ports"]
    ]
    assert one(objects, "HTTPRoute")["spec"]["rules"][0]["backendRefs"][0]["name"] == service["metadata"]["name"]
