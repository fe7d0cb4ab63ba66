"""The chart renders, lints, validates, and leaves out what it must leave out."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import helm_python
import kubernetes_validate
import pytest
import yaml
from tests.chart.conftest import CHART, EVERYTHING, LEAST, ROOT, Render, merged, one

from ballast.settings import load_settings

OLDEST, NEWEST = "1.27", "1.37"
CRD_BACKED = {"ServiceMonitor", "PodMonitor", "PrometheusRule", "HTTPRoute", "SparkApplication"}


def pod_specs(objects: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The pod spec in every workload, by kind; of the CronJobs the pipeline by its name."""
    out = {}
    for obj in objects:
        if obj["kind"] in {"Deployment", "Job"}:
            out[obj["kind"]] = obj["spec"]["template"]["spec"]
        elif obj["kind"] == "CronJob":
            kind = "Pipeline" if obj["metadata"]["name"].endswith("-pipeline") else "CronJob"
            out[kind] = obj["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    return out


def test_lint_finds_nothing() -> None:
    """Helm's own lint has no error and no warning."""
    result = helm_python.lint(str(CHART), LEAST, strict=True)
    found = [m for m in result["messages"] if m["severity"] > 1]
    assert found == []


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
@pytest.mark.parametrize("values", [LEAST, EVERYTHING], ids=["least", "everything"])
def test_every_builtin_object_is_valid(render: Render, version: str, values: dict[str, Any]) -> None:
    """Strict validation against the schemas of the oldest and the newest supported Kubernetes."""
    checked = [obj for obj in render(values) if obj["kind"] not in CRD_BACKED]
    for obj in checked:
        kubernetes_validate.validate(obj, version, strict=True)
    assert {"Deployment", "Service", "ConfigMap", "ServiceAccount"} <= {obj["kind"] for obj in checked}


def test_the_least_values_make_only_the_core(render: Render) -> None:
    """Nothing optional is there unless asked for (the Pod is Helm's test), and nothing ever has rights in the Kubernetes API."""
    kinds = sorted(obj["kind"] for obj in render())
    assert kinds == [
        "ConfigMap",
        "Deployment",
        "NetworkPolicy",
        "Pod",
        "PodDisruptionBudget",
        "Service",
        "ServiceAccount",
    ]


def test_everything_makes_every_kind_once_and_no_rights(render: Render) -> None:
    """With every switch on, there is still no Role, no binding and no Secret."""
    kinds = {obj["kind"] for obj in render(EVERYTHING)}
    assert CRD_BACKED | {"Ingress", "CronJob", "Job"} <= kinds
    assert not kinds & {"Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding", "Secret"}


def test_events_bring_one_right_and_nothing_else(render: Render) -> None:
    """The flag makes a Role that can create events here; only the daemon's pod gets a token, and its pod's name and uid."""
    objects = render(merged(EVERYTHING, {"events": {"enabled": True}}))
    for kind in ("Role", "RoleBinding"):
        for version in (OLDEST, NEWEST):
            kubernetes_validate.validate(one(objects, kind), version, strict=True)
    role, binding = one(objects, "Role"), one(objects, "RoleBinding")
    assert role["rules"] == [{"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create"]}]
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    assert binding["subjects"] == [
        {"kind": "ServiceAccount", "name": one(objects, "ServiceAccount")["metadata"]["name"], "namespace": "kafka"}
    ]
    specs = pod_specs(objects)
    assert {kind: spec["automountServiceAccountToken"] for kind, spec in specs.items()} == {
        "Deployment": True, "Job": False, "CronJob": False, "Pipeline": False,
    }  # fmt: skip
    env = {e["name"]: e for e in specs["Deployment"]["containers"][0]["env"]}
    assert env["BALLAST__EVENTS__KUBERNETES"]["value"] == "true"
    assert env["BALLAST_POD_UID"]["valueFrom"] == {"fieldRef": {"fieldPath": "metadata.uid"}}
    assert env["BALLAST_INSTANCE"]["valueFrom"] == {"fieldRef": {"fieldPath": "metadata.name"}}
    (rule,) = one(objects, "NetworkPolicy")["spec"]["egress"]
    assert {p["port"] for p in rule["ports"]} == {53, 9092, 443, 6443}
    own = render({"events": {"enabled": True}, "serviceAccount": {"name": "mine"}})
    assert one(own, "RoleBinding")["subjects"][0]["name"] == "mine"


@pytest.mark.parametrize("kind", ["Deployment", "Job", "CronJob", "Pipeline"])
def test_pods_are_locked_down(render: Render, kind: str) -> None:
    """Not root, nothing writable but /tmp, no capability, no token, no links to services."""
    spec = pod_specs(render(EVERYTHING))[kind]
    assert spec["automountServiceAccountToken"] is False
    assert spec["enableServiceLinks"] is False
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not {"hostNetwork", "hostPID", "hostIPC"} & set(spec)
    (container,) = spec["containers"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert "command" not in container
    assert container["resources"]["requests"]
    assert container["resources"]["limits"]["memory"]
    writable = [m["mountPath"] for m in container["volumeMounts"] if not m.get("readOnly")]
    assert writable == ["/tmp", "/var/lib/ballast"]  # noqa: S108
    assert all("hostPath" not in volume for volume in spec["volumes"])


def test_without_a_cluster_it_says_what_is_missing(render: Render) -> None:
    """The one value that has no default is asked for in a sentence."""
    with pytest.raises(helm_python.HelmError, match="which cluster is Ballast to keep"):
        render({}, exact=True)


@pytest.mark.parametrize(
    "wrong",
    [
        {"replica": 3},
        {"web": {"tokens": {}}},
        {"replicas": "two"},
        {"settings": {"mode": "atuo"}},
        {"antiAffinity": "no"},
    ],
)
def test_the_schema_refuses_what_no_template_reads(render: Render, wrong: dict[str, Any]) -> None:
    """A value that is misspelt or of a wrong type is refused before anything is rendered."""
    with pytest.raises(helm_python.HelmError):
        render(wrong)


def test_the_selector_is_what_it_always_was(render: Render) -> None:
    """A Deployment's selector is immutable: changing it would break every upgrade."""
    selector = {"app.kubernetes.io/name": "ballast", "app.kubernetes.io/instance": "shop"}
    objects = render(EVERYTHING)
    assert one(objects, "Deployment")["spec"]["selector"] == {"matchLabels": selector}
    assert one(objects, "Service")["spec"]["selector"] == selector
    labels = one(objects, "Deployment")["spec"]["template"]["metadata"]["labels"]
    assert selector.items() <= labels.items()
    others = {
        "Job": one(objects, "Job")["spec"]["template"],
        "CronJob": one(objects, "CronJob", "-once")["spec"]["jobTemplate"]["spec"]["template"],
        "pipeline": one(objects, "CronJob", "-pipeline")["spec"]["jobTemplate"]["spec"]["template"],
        "test": one(objects, "Pod"),
        # The operator gives its pods the labels of the object and of each role.
        "SparkApplication": one(objects, "SparkApplication"),
        "driver": {"metadata": one(objects, "SparkApplication")["spec"]["driver"]},
        "executor": {"metadata": one(objects, "SparkApplication")["spec"]["executor"]},
    }
    for what, pod in others.items():
        assert not selector.items() <= pod["metadata"]["labels"].items(), f"the Service would lead to a {what}"


def test_the_settings_in_the_configmap_are_settings(render: Render, tmp_path: Path) -> None:
    """What the chart writes is what Ballast reads, together with the environment that the chart sets."""
    objects = render(EVERYTHING)
    file = tmp_path / "ballast.yaml"
    file.write_text(_config(objects))
    environment = {
        e["name"]: e.get("value", "")
        for e in pod_specs(objects)["Deployment"]["containers"][0]["env"]
        if e["name"].startswith(("BALLAST__", "BALLAST_COMMAND"))
    }
    settings = load_settings(file, environment)
    assert settings.web.port == 8080
    assert settings.web.host == "0.0.0.0"  # noqa: S104
    assert settings.cluster.name == "shop"
    assert str(settings.web.token_file) == "/etc/ballast/token/token"
    assert settings.stop.grace_s < pod_specs(objects)["Deployment"]["terminationGracePeriodSeconds"]


def _config(objects: list[dict[str, Any]]) -> str:
    (config,) = [o for o in objects if o["kind"] == "ConfigMap" and "ballast.yaml" in o["data"]]
    return str(config["data"]["ballast.yaml"])


def test_every_mount_has_its_volume_and_every_file_its_mount(render: Render) -> None:
    """Paths that the environment names lie under something that is mounted."""
    for spec in pod_specs(render(EVERYTHING)).values():
        (container,) = spec["containers"]
        assert {m["name"] for m in container["volumeMounts"]} == {v["name"] for v in spec["volumes"]}
        mounts = [m["mountPath"] for m in container["volumeMounts"]]
        files = [e["value"] for e in container["env"] if str(e.get("value", "")).startswith("/")]
        assert files
        assert all(any(path.startswith(mount) for mount in mounts) for path in files)


def leaves(tree: Any, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Paths to everything that is not a section."""
    if isinstance(tree, dict) and tree:
        return [leaf for key, value in tree.items() for leaf in leaves(value, (*path, key))]
    return [path]


def test_every_value_is_used() -> None:
    """A value that no template reads would promise what the chart does not do."""
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    templates = "\n".join(p.read_text() for p in (CHART / "templates").rglob("*.*"))
    whole = {"settings", "resources", "pipeline.resources"}
    unused = []
    for leaf in leaves(values):
        dotted = ".".join(leaf)
        if any(dotted == w or dotted.startswith(w + ".") for w in whole) or "labels" in leaf:
            continue
        if f".Values.{dotted}" not in templates and not re.search(rf"[ (]\.{re.escape(leaf[-1])}\b", templates):
            unused.append(dotted)
    assert unused == []


def test_schema_and_readme_are_the_generated_ones() -> None:
    """``python helm/generate.py`` was run after the last change of values.yaml."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "helm" / "generate.py"), "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_alert_rules_are_those_of_the_repository(render: Render) -> None:
    """One file of rules serves Prometheus with and without its operator; only the runbook links get their base."""
    rule = one(render(EVERYTHING), "PrometheusRule")
    plain = yaml.safe_load((ROOT / "deploy" / "prometheus" / "ballast.rules.yaml").read_text())
    text = json.dumps(rule["spec"]).replace("https://git.example/ballast/docs/", "docs/")
    # One release that is absent is told by its name, beside others that are there.
    named = r"absent(ballast_build_info{namespace=\"kafka\",kafka_cluster=\"shop\"})"
    assert named in text
    text = text.replace(named, "absent(ballast_build_info)")
    assert json.loads(text) == plain
    assert "https://git.example/ballast/docs/alerts.md#" in json.dumps(rule["spec"])


def test_plain_manifests_are_the_charts() -> None:
    """``python helm/kustomize.py`` was run after the last change of the chart, and what it made is valid."""
    made = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys; sys.path.insert(0, 'helm'); import kustomize; print(kustomize.render(), end='')",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert (ROOT / "deploy" / "kustomize" / "ballast.yaml").read_text() == made
    for obj in yaml.safe_load_all(made):
        kubernetes_validate.validate(obj, OLDEST, strict=True)


def test_probes_are_about_the_process_and_its_page(render: Render) -> None:
    """None of them asks for the cluster; they have a port of their own; an unready pod holds up no drain of a node."""
    objects = render()
    (container,) = pod_specs(objects)["Deployment"]["containers"]
    asked = {kind: container[f"{kind}Probe"]["httpGet"] for kind in ("startup", "liveness", "readiness")}
    assert {kind: get["path"] for kind, get in asked.items()} == {
        "startup": "/livez", "liveness": "/livez", "readiness": "/readyz",
    }  # fmt: skip
    assert {get["port"] for get in asked.values()} == {"probes"}
    ports = {p["name"]: p["containerPort"] for p in container["ports"]}
    env = {e["name"]: e.get("value") for e in container["env"]}
    assert env["BALLAST__WEB__PROBES_PORT"] == str(ports["probes"]) != str(ports["http"])
    assert one(objects, "PodDisruptionBudget")["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow"


@pytest.mark.parametrize(
    ("values", "first", "least"), [({}, 15, 120), ({"initialDelaySeconds": 5, "startupSeconds": 4}, 5, 7)]
)
def test_a_starting_process_is_first_asked_when_it_has_had_time_to_start(
    render: Render, values: dict[str, int], first: int, least: int
) -> None:
    """Each ask without an answer is a Warning event of the pod: a start of up to fifteen seconds has none."""
    (container,) = pod_specs(render({"probes": values}))["Deployment"]["containers"]
    probe = container["startupProbe"]
    assert probe["initialDelaySeconds"] == first
    last = probe["initialDelaySeconds"] + probe["periodSeconds"] * probe["failureThreshold"]
    assert least - probe["periodSeconds"] < last <= least


def test_every_series_names_its_cluster(render: Render) -> None:
    """By the settings' name, else by the release's."""
    for values, name in (
        (EVERYTHING, "shop"),
        (merged(EVERYTHING, {"settings": {"cluster": {"name": ""}}}), "shop-ballast"),
    ):
        objects = render(values)
        (service,) = one(objects, "ServiceMonitor")["spec"]["endpoints"]
        (pod,) = one(objects, "PodMonitor")["spec"]["podMetricsEndpoints"]
        for endpoint in (service, pod):
            assert endpoint["port"] == "probes"
            assert endpoint["relabelings"] == [{"targetLabel": "kafka_cluster", "replacement": name}]


def test_the_page_answers_under_every_name_that_the_chart_gives_it(render: Render) -> None:
    """The Ingress's and the HTTPRoute's; TLS brings its Secret with it."""
    objects = render(merged(EVERYTHING, {"web": {"hosts": ["more.example"], "tls": {"secret": "page-tls"}}}))
    env = {e["name"]: e.get("value") for e in pod_specs(objects)["Deployment"]["containers"][0]["env"]}
    settings = load_settings(None, {n: v for n, v in env.items() if n.startswith("BALLAST__WEB") and v})
    assert {"ballast.example", "more.example"} == set(settings.web.hosts)
    assert str(settings.web.tls_certificate) == "/etc/ballast/tls/tls.crt"


def test_daemon_and_pipeline_have_one_store(render: Render) -> None:
    """What the one writes the other reads: the same claim at the same place, in every pod, and in Spark's own."""
    objects = render(EVERYTHING)
    for spec in pod_specs(objects).values():
        (volume,) = [v for v in spec["volumes"] if v["name"] == "store"]
        assert volume["persistentVolumeClaim"] == {"claimName": "samples"}
    spark = one(objects, "SparkApplication")["spec"]
    assert spark["volumes"] == [{"name": "store", "persistentVolumeClaim": {"claimName": "samples"}}]
    for who in ("driver", "executor"):
        assert spark[who]["volumeMounts"] == [{"name": "store", "mountPath": "/var/lib/ballast"}]
    assert one(objects, "CronJob", "-pipeline")["spec"]["concurrencyPolicy"] == "Forbid"


def test_pods_of_the_spark_operator_may_write_the_store(render: Render) -> None:
    """Their user and group are the daemon's, to which the volume is given; their containers have no capability, or what is said."""
    objects = render(EVERYTHING)
    for who in ("driver", "executor"):
        pod = one(objects, "SparkApplication")["spec"][who]
        assert pod["podSecurityContext"] == pod_specs(objects)["Deployment"]["securityContext"]
        assert pod["securityContext"] == {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
        deployed = pod_specs(objects)["Deployment"]
        assert all(pod[where] == deployed[where] for where in ("nodeSelector", "tolerations", "priorityClassName"))
    assert one(objects, "SparkApplication")["spec"]["imagePullSecrets"] == ["pull"]
    own = {"runAsUser": 185, "runAsNonRoot": True, "capabilities": {"drop": ["ALL"], "add": ["SYS_PTRACE"]}}
    said = one(render(merged(EVERYTHING, {"sparkApplication": {"securityContext": own}})), "SparkApplication")["spec"]
    assert [said[who]["securityContext"] for who in ("driver", "executor")] == [own, own]


def test_resources_are_written_as_in_a_pod_spec(render: Render) -> None:
    """A whole number of processors is a number, and further resources are the Kubernetes API's to judge."""
    asked = {"requests": {"cpu": 1, "ephemeral-storage": "1Gi"}, "limits": {"cpu": 1.5, "memory": 2147483648}}
    specs = pod_specs(render(merged(EVERYTHING, {"resources": asked, "pipeline": {"resources": asked}})))
    for which in ("Deployment", "Pipeline"):
        (container,) = specs[which]["containers"]
        assert container["resources"]["limits"] == asked["limits"]
        assert container["resources"]["requests"]["cpu"] == 1
        assert container["resources"]["requests"]["ephemeral-storage"] == "1Gi"


def test_pods_are_spread_by_their_own_labels(render: Render) -> None:
    """A constraint without a selector matches no pod; one that has its own keeps it."""
    own = {"matchLabels": {"mine": "yes"}}
    zone = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}
    spread = {"topologySpreadConstraints": [zone, {**zone, "labelSelector": own}]}
    objects = render(spread)
    found = pod_specs(objects)["Deployment"]["topologySpreadConstraints"]
    selector = one(objects, "Deployment")["spec"]["selector"]
    assert found == [{**zone, "labelSelector": selector}, {**zone, "labelSelector": own}]


@pytest.mark.parametrize(
    ("settings", "writes"),
    [
        ({}, False),
        ({"mode": "approve"}, True),
        ({"actions": {"moves": {"mode": "auto"}}}, True),
        ({"auto.leader.rebalance.enable": True}, True),
    ],
)
def test_the_notes_say_that_nothing_is_written_only_where_that_is_so(settings: dict[str, Any], *, writes: bool) -> None:
    """One kind of action that acts is enough for it to be untrue."""
    with helm_python.Chart.load(str(CHART)) as chart:
        texts = chart.render(merged(LEAST, {"settings": settings}), name="shop", namespace="kafka")
    (notes,) = [text for path, text in texts.items() if path.endswith("NOTES.txt")]
    assert ("nothing is written" in notes) is not writes


def test_two_clusters_share_a_namespace(render: Render) -> None:
    """Two releases make no object of the same name, and neither selects the other's pods."""
    one_release, other = render(EVERYTHING, name="shop"), render(EVERYTHING, name="payments")
    names = [{(o["kind"], o["metadata"]["name"]) for o in objects} for objects in (one_release, other)]
    assert names[0].isdisjoint(names[1])
    labels = one(other, "Deployment")["spec"]["template"]["metadata"]["labels"]
    for kind in ("Service", "NetworkPolicy", "PodDisruptionBudget"):
        spec = one(one_release, kind)["spec"]
        selector = spec["selector"] if kind != "NetworkPolicy" else spec["podSelector"]
        assert not selector.get("matchLabels", selector).items() <= labels.items()
