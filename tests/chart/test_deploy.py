"""What lies in deploy/ does what its comments say: built, checked and parsed as the tools that read it would."""

from __future__ import annotations

import configparser
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import helm_python
import jsonschema
import kubernetes_validate
import pytest
import yaml
from bootstrap.programs import path_of
from tests.chart.conftest import EVERYTHING, ROOT, Render, one
from tests.chart.kustomization import build
from tests.chart.test_chart import NEWEST, OLDEST, pod_specs

from ballast.cli.main import cli
from ballast.settings import load_settings
from ballast.settings.model import Settings

DEPLOY = ROOT / "deploy"
UNIT = DEPLOY / "systemd" / "ballast.service"


def settings_of(objects: list[dict[str, Any]], folder: Path) -> Settings:
    """What Ballast makes of the ConfigMap and the environment of its Deployment."""
    file = folder / "ballast.yaml"
    file.write_text(one(objects, "ConfigMap")["data"]["ballast.yaml"])
    (container,) = one(objects, "Deployment")["spec"]["template"]["spec"]["containers"]
    environment = {e["name"]: e.get("value", "") for e in container["env"] if e["name"] != "BALLAST_CONFIG"}
    return load_settings(file, environment)


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
@pytest.mark.parametrize("name", ["kustomize", "kustomize-overlay"])
def test_kustomizations_build_valid_objects(name: str, version: str) -> None:
    """Base and overlay, strictly, for the oldest and the newest Kubernetes."""
    objects = build(DEPLOY / name)
    for obj in objects:
        kubernetes_validate.validate(obj, version, strict=True)
    assert {"Deployment", "ConfigMap", "Service", "ServiceAccount"} <= {obj["kind"] for obj in objects}


def test_the_overlay_changes_what_it_says_and_nothing_else(tmp_path: Path) -> None:
    """Namespace, image, cluster and credentials; the base's own environment, mounts and locks stay."""
    base, over = build(DEPLOY / "kustomize"), build(DEPLOY / "kustomize-overlay")
    assert {o["metadata"]["namespace"] for o in over} == {"kafka"}
    (before,) = one(base, "Deployment")["spec"]["template"]["spec"]["containers"]
    pod = one(over, "Deployment")["spec"]["template"]["spec"]
    (after,) = pod["containers"]
    assert after["image"] == "registry.example/ballast:0.1.0"
    assert [e for e in after["env"] if e in before["env"]] == before["env"]
    assert {m["name"] for m in after["volumeMounts"]} == {v["name"] for v in pod["volumes"]}
    settings = settings_of(over, tmp_path)
    assert settings.cluster.bootstrap_server == "shop-kafka-bootstrap:9093"
    mounts = [m["mountPath"] for m in after["volumeMounts"]]
    assert str(settings.cluster.command_config).rpartition("/")[0] in mounts


SERVICE: dict[str, Any] = {
    "type": "object",
    "required": ["image"],
    "additionalProperties": False,
    "properties": {
        "image": {"type": "string", "pattern": r"^[\w./-]+:[\w.-]+$"},
        "command": {"type": "array", "items": {"type": "string"}},
        "environment": {"type": "object", "additionalProperties": {"type": "string"}},
        "ports": {"type": "array", "items": {"type": "string", "pattern": r"^127\.0\.0\.1:\d+:\d+$"}},
        "volumes": {"type": "array", "items": {"type": "string", "pattern": r"^\.{1,2}/[^:]+:/[^:]+:ro$"}},
        "read_only": {"const": True},
        "tmpfs": {"type": "array", "items": {"type": "string"}},
        "user": {"type": "string", "pattern": r"^\d+:\d+$"},
        "cap_drop": {"const": ["ALL"]},
        "security_opt": {"const": ["no-new-privileges:true"]},
        "stop_grace_period": {"type": "string", "pattern": r"^\d+s$"},
        "restart": {"enum": ["no", "always", "on-failure", "unless-stopped"]},
        "depends_on": {"type": "array", "items": {"type": "string"}},
    },
}
"""The fields of a Compose service that are used, written here from the Compose specification; nothing else passes."""


def test_the_compose_file_is_strict_and_consistent(tmp_path: Path) -> None:
    """Known fields, ports on the loopback only, folders that exist, services that exist, settings that Ballast knows."""
    folder = DEPLOY / "compose"
    tree = yaml.safe_load((folder / "compose.yaml").read_text())
    assert set(tree) == {"services"}
    services = tree["services"]
    for service in services.values():
        jsonschema.validate(service, SERVICE)
        assert set(service.get("depends_on", ())) <= set(services)
        for volume in service.get("volumes", ()):
            assert (folder / volume.split(":")[0]).resolve().exists(), volume
    own = services["ballast"]
    settings = load_settings(None, own["environment"])
    assert settings.cluster.bootstrap_server == "kafka:9092"
    assert settings.stop.grace_s < int(own["stop_grace_period"].removesuffix("s"))
    listeners = services["kafka"]["environment"]["KAFKA_ADVERTISED_LISTENERS"]
    assert f"PLAINTEXT://{settings.cluster.bootstrap_server}" == listeners
    assert accepts(own["command"])


@pytest.mark.prometheus
def test_prometheus_takes_the_compose_files_configuration(tmp_path: Path) -> None:
    """Promtool reads it with the rules where the container has them, and it scrapes the service on its port."""
    text = (DEPLOY / "compose" / "prometheus.yaml").read_text()
    (tmp_path / "prometheus.yml").write_text(text.replace("/helm/", f"{ROOT}/helm/"))
    done = subprocess.run(
        ["promtool", "check", "config", str(tmp_path / "prometheus.yml")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "rules found" in done.stdout
    assert yaml.safe_load(text)["scrape_configs"][0]["static_configs"] == [{"targets": ["ballast:8080"]}]


def unit() -> dict[str, dict[str, list[str]]]:
    """The unit file: sections of keys, each with every value that it was given."""
    found: dict[str, dict[str, list[str]]] = {}
    section = None
    for line in UNIT.read_text().splitlines():
        if not line.strip() or line.lstrip().startswith(("#", ";")):
            continue
        if header := re.fullmatch(r"\[(\w+)\]", line):
            section = found.setdefault(header[1], {})
            continue
        key, equals, value = line.partition("=")
        assert section is not None, line
        assert equals, line
        assert re.fullmatch(r"[A-Z]\w+", key), line
        section.setdefault(key, []).append(value)
    return found


def test_the_systemd_unit_keeps_what_it_promises() -> None:
    """Every key once, a command line that Ballast accepts, time enough to leave, and nothing writable but its cache."""
    sections = unit()
    assert set(sections) == {"Unit", "Service", "Install"}
    assert all(len(values) == 1 for section in sections.values() for values in section.values())
    service = {key: value for key, (value,) in sections["Service"].items()}
    binary, *arguments = service["ExecStart"].split()
    assert binary.endswith("/bin/ballast")
    assert accepts([a if a != "/etc/ballast/ballast.yaml" else os.devnull for a in arguments])
    environment = dict(pair.split("=", 1) for pair in service["Environment"].split())
    settings = load_settings(None, {k: v for k, v in environment.items() if k.startswith("BALLAST")})
    assert settings.log.format == "json"
    assert int(service["TimeoutStopSec"]) > settings.stop.grace_s
    assert environment["NUMBA_CACHE_DIR"] == f"/var/cache/{service['CacheDirectory']}"
    assert (service["ProtectSystem"], service["DynamicUser"], service["NoNewPrivileges"]) == ("strict", "yes", "yes")


@pytest.mark.systemd
def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    """Systemd's own check has nothing to say."""
    parser = configparser.ConfigParser(strict=True, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(UNIT.read_text())
    verify = path_of("systemd-analyze")
    copy = tmp_path / UNIT.name
    copy.write_text(UNIT.read_text().replace("/opt/ballast/bin/ballast", "/bin/true"))
    done = subprocess.run([verify, "verify", "--man=no", str(copy)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    rated = subprocess.run(
        [verify, "security", "--offline=true", "--no-pager", "--threshold=25", str(copy)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert rated.returncode == 0, rated.stdout[-300:]


def accepts(arguments: list[str]) -> bool:
    """Does the command line parse?  Raises the complaint where it does not."""
    command: click.Command = cli
    words = list(arguments)
    context = click.Context(cli)
    while isinstance(command, click.Group):
        name = words.pop(0)
        found = command.get_command(context, name)
        assert found is not None, f"there is no command {name}"
        command, context = found, click.Context(found, parent=context, info_name=name)
    command.parse_args(context, words)
    return True


def test_every_workloads_arguments_are_commands(render: Render, tmp_path: Path) -> None:
    """What the chart starts, Ballast can parse: the daemon, Jobs, CronJobs, the pipeline and the SparkApplication."""
    objects = render(EVERYTHING)
    for kind, spec in pod_specs(objects).items():
        (tmp_path / "plan.json").touch()
        words = [w.replace("/etc/ballast/plan", str(tmp_path)) for w in spec["containers"][0]["args"]]
        assert accepts(words), kind
    assert accepts(one(objects, "SparkApplication")["spec"]["arguments"])


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (
            {"pipeline": {"enabled": True, "args": ["pipeline", "run", "--store", "s3://b/s"]}},
            "which image has Java, PySpark",
        ),
        ({"pipeline": {"enabled": True, "image": "spark:1"}}, "pipeline: where are the samples"),
        ({"sparkApplication": {"enabled": True, "image": "spark:1"}}, "sparkApplication: where are the samples"),
        (
            {"sparkApplication": {"enabled": True}, "settings": {"samples": {"store": "s3://b/s"}}},
            "which image has Spark",
        ),
    ],
)
def test_the_pipeline_asks_for_what_it_needs_before_it_starts(
    render: Render, values: dict[str, Any], words: str
) -> None:
    """An image with Spark and a store of samples: asked for in a sentence, not found out by a Job that fails."""
    with pytest.raises(helm_python.HelmError, match=words):
        render(values)


def test_spark_starts_the_file_that_it_is_given(render: Render, tmp_path: Path) -> None:
    """Started by its path, with the package path of the object and nothing else, the file is Ballast's command."""
    spec = one(render(EVERYTHING), "SparkApplication")["spec"]
    paths = [{e["name"]: e["value"] for e in spec[who]["env"]}["PYTHONPATH"] for who in ("driver", "executor")]
    dockerfile = (DEPLOY / "Dockerfile").read_text()
    assert all(f"PYTHONPATH={path} " in dockerfile for path in paths)
    assert spec["mainApplicationFile"].startswith(f"local://{paths[0]}/")
    script = spec["mainApplicationFile"].removeprefix(f"local://{paths[0]}/")
    done = subprocess.run(
        [sys.executable, str(ROOT / "operator" / script), *spec["arguments"], "--help"],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT / "operator")}, cwd=tmp_path, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "--store" in done.stdout


def test_the_settings_store_reaches_spark_s_driver(render: Render) -> None:
    """It mounts no settings file: what the chart takes for a store is in its environment, where the command reads it."""
    store = "s3://samples/of/ballast"
    spec = one(render(EVERYTHING | {"settings": {"samples": {"store": store}}}), "SparkApplication")["spec"]
    environment = {e["name"]: e["value"] for e in spec["driver"]["env"]}
    assert load_settings(None, environment).samples.store == store
