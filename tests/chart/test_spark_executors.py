"""With ``pipeline.spark: k8s`` the Job may start executors, tells Spark how, and they are locked down like every other pod."""

from __future__ import annotations

from typing import Any

import kubernetes_validate
import pytest
import yaml
from tests.chart.conftest import EVERYTHING, Render, merged, one
from tests.chart.test_chart import NEWEST, OLDEST, pod_specs

K8S = merged(EVERYTHING, {"pipeline": {"spark": "k8s", "executors": {"count": 3, "cores": 2, "memory": "3g"}}})


def conf(objects: list[dict[str, Any]]) -> dict[str, str]:
    """The Spark properties that the Job's pod finds in its configuration folder."""
    lines = one(objects, "ConfigMap", "-spark")["data"]["spark-defaults.conf"].splitlines()
    return dict(line.split(" ", 1) for line in lines if line)


def executor(objects: list[dict[str, Any]]) -> dict[str, Any]:
    """The pod that Spark completes and starts."""
    found: dict[str, Any] = yaml.safe_load(one(objects, "ConfigMap", "-spark")["data"]["executor.yaml"])
    return found


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
def test_every_object_is_valid(render: Render, version: str) -> None:
    """Those of the chart, and the pod inside the ConfigMap once Spark has given it an image."""
    objects = render(K8S)
    for kind, end in (
        ("Role", "-spark"),
        ("RoleBinding", "-spark"),
        ("ServiceAccount", "-spark"),
        ("ConfigMap", "-spark"),
    ):
        kubernetes_validate.validate(one(objects, kind, end), version, strict=True)
    kubernetes_validate.validate(one(objects, "CronJob", "-pipeline"), version, strict=True)
    pod = executor(objects)
    pod["spec"]["containers"][0]["image"] = "given-by-spark"
    kubernetes_validate.validate(pod, version, strict=True)


def test_the_job_alone_has_the_rights(render: Render) -> None:
    """Its own ServiceAccount is bound to the Role; the daemon's, the other Jobs' and the executors' pods have no token."""
    objects = render(K8S)
    job = pod_specs(objects)["Pipeline"]
    account = one(objects, "ServiceAccount", "-spark")["metadata"]["name"]
    assert (job["serviceAccountName"], job["automountServiceAccountToken"]) == (account, True)
    binding = one(objects, "RoleBinding", "-spark")
    assert [subject["name"] for subject in binding["subjects"]] == [account]
    assert binding["roleRef"]["name"] == one(objects, "Role", "-spark")["metadata"]["name"]
    granted = {r: set(rule["verbs"]) for rule in one(objects, "Role", "-spark")["rules"] for r in rule["resources"]}
    assert granted["pods"] >= {"create", "get", "list", "watch", "delete"}
    assert "secrets" not in granted
    assert "*" not in set().union(*granted.values())
    others = {kind: spec for kind, spec in pod_specs(objects).items() if kind != "Pipeline"}
    assert not any(spec["automountServiceAccountToken"] for spec in others.values())
    assert all(spec["serviceAccountName"] != account for spec in others.values())
    assert executor(objects)["spec"]["automountServiceAccountToken"] is False


def test_the_job_tells_spark_where_executors_are_and_where_it_is(render: Render) -> None:
    """The API server, the driver's address and pod, and the folder with the rest, each where Spark looks for it."""
    objects = render(K8S)
    (container,) = pod_specs(objects)["Pipeline"]["containers"]
    env = {e["name"]: e for e in container["env"]}
    assert env["BALLAST_SPARK"]["value"].startswith("k8s://https://")
    assert env["BALLAST_POD_IP"]["valueFrom"] == {"fieldRef": {"fieldPath": "status.podIP"}}
    pairs = [b for a, b in zip(container["args"], container["args"][1:], strict=False) if a == "--conf"]
    assert pairs == ["spark.driver.host=$(BALLAST_POD_IP)", "spark.kubernetes.driver.pod.name=$(BALLAST_INSTANCE)"]
    assert {"BALLAST_POD_IP", "BALLAST_INSTANCE"} <= set(env)
    folder = env["SPARK_CONF_DIR"]["value"]
    (mount,) = [m for m in container["volumeMounts"] if m["mountPath"] == folder]
    (volume,) = [v for v in pod_specs(objects)["Pipeline"]["volumes"] if v["name"] == mount["name"]]
    assert volume["configMap"]["name"] == one(objects, "ConfigMap", "-spark")["metadata"]["name"]
    assert conf(objects)["spark.kubernetes.executor.podTemplateFile"] == f"{folder}/executor.yaml"


def test_executors_are_what_the_values_say(render: Render) -> None:
    """Count, cores, heap, the Job's own image, and its namespace."""
    objects = render(K8S)
    found = conf(objects)
    assert (found["spark.executor.instances"], found["spark.executor.cores"], found["spark.executor.memory"]) == (
        "3",
        "2",
        "3g",
    )
    assert found["spark.kubernetes.namespace"] == "kafka"
    assert found["spark.kubernetes.container.image"] == pod_specs(objects)["Pipeline"]["containers"][0]["image"]


def test_executors_are_locked_down_and_have_the_store(render: Render) -> None:
    """The Job's own security, its store at the same place, and labels that select nothing of the daemon's."""
    objects = render(K8S)
    job, pod = pod_specs(objects)["Pipeline"], executor(objects)
    (container,) = pod["spec"]["containers"]
    assert pod["spec"]["securityContext"] == job["securityContext"]
    assert container["securityContext"] == job["containers"][0]["securityContext"]
    assert [m["mountPath"] for m in container["volumeMounts"]] == ["/tmp", "/var/lib/ballast"]  # noqa: S108
    volumes = {v["name"]: v for v in job["volumes"]}
    assert all(volumes[v["name"]] == v for v in pod["spec"]["volumes"])
    selector = one(objects, "Deployment")["spec"]["selector"]["matchLabels"]
    assert not selector.items() <= pod["metadata"]["labels"].items()


def test_the_operators_driver_has_the_rights_and_a_token(render: Render) -> None:
    """One account for it alone, which no other pod of the chart has; the Job without executors keeps the daemon's."""
    objects = render(merged(EVERYTHING, {"sparkApplication": {"serviceAccount": ""}}))
    account = one(objects, "ServiceAccount", "-spark")
    assert one(objects, "SparkApplication")["spec"]["driver"]["serviceAccount"] == account["metadata"]["name"]
    assert account["automountServiceAccountToken"] is True
    assert one(objects, "RoleBinding", "-spark")["subjects"][0]["name"] == account["metadata"]["name"]
    assert all(s["serviceAccountName"] != account["metadata"]["name"] for s in pod_specs(objects).values())
    assert not any(s["automountServiceAccountToken"] for s in pod_specs(objects).values())
    executors = one(objects, "SparkApplication")["spec"]["executor"]["serviceAccount"]
    assert executors == pod_specs(objects)["Deployment"]["serviceAccountName"], "no rights, no token"


def test_without_it_nothing_of_it_is_there(render: Render) -> None:
    """No rights, no further object, no token; an account that is there already is taken as it is."""
    objects = render(EVERYTHING)
    assert one(objects, "SparkApplication")["spec"]["driver"]["serviceAccount"] == "spark"
    assert not [o for o in objects if o["metadata"]["name"].endswith("-spark")]
    assert pod_specs(objects)["Pipeline"]["automountServiceAccountToken"] is False
