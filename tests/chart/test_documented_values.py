"""The values that docs/kubernetes.md shows are values of this chart, and the settings in them are settings of Ballast."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import yaml
from tests.chart.conftest import ROOT, Render, merged, one
from tests.chart.test_deploy import accepts
from tests.unit.core.plan.test_file import PLAN

from ballast.core.plan.file import dumps, loads
from ballast.settings.load import load_settings


def documented() -> list[dict[str, Any]]:
    """Every YAML block of the page, in order."""
    page = (ROOT / "docs" / "kubernetes.md").read_text()
    return [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)]


def test_every_block_of_values_renders_and_its_settings_are_valid(render: Render, tmp_path: Path) -> None:
    """Each alone over the least that the chart needs; a key that does not exist is refused by schema or settings."""
    blocks = documented()
    assert len(blocks) >= 4
    for number, values in enumerate(blocks):
        text = one(render(values), "ConfigMap")["data"]["ballast.yaml"]
        file = tmp_path / f"{number}.yaml"
        file.write_text(text)
        load_settings(file, {})


def assign(values: dict[str, Any], assignment: str) -> dict[str, Any]:
    """Values with one ``--set`` over them; none of the page's has a dot or a comma inside."""
    path, _, value = assignment.partition("=")
    tree: Any = value
    for name in reversed(path.split(".")):
        tree = {name: tree}
    return merged(values, tree)


def releases() -> dict[str, dict[str, Any]]:
    """What each release is installed and upgraded with, where the page says it as ``--set``."""
    page = (ROOT / "docs" / "kubernetes.md").read_text()
    found: dict[str, dict[str, Any]] = {}
    for block in re.findall(r"```sh\n(.*?)```", page, re.DOTALL):
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            if words[:1] == ["helm"] and "--set" in words:
                assert words[1] == "install" or (words[1] == "upgrade" and "--reuse-values" in words), line
                assert words[3] == "helm/ballast"
                for at in (at for at, word in enumerate(words) if word == "--set"):
                    found[words[2]] = assign(found.get(words[2], {}), words[at + 1])
    return found


def test_the_commands_that_it_shows_install_what_the_others_name(render: Render) -> None:
    """Each ``helm install`` and ``helm upgrade`` renders; Services and Jobs that kubectl is to find are there."""
    made = releases()
    assert set(made) == {"shop", "payments", "orders"}
    for name, values in made.items():
        assert one(render(values, name=name, exact=True), "Service")["metadata"]["name"] == f"{name}-ballast"
    page = (ROOT / "docs" / "kubernetes.md").read_text()
    values = merged(
        made["shop"], {"jobs": [{"name": "plan", "args": ["status"]}], "pipeline": {"enabled": True, "image": "i"}}
    )
    objects = render(merged(values, {"settings": {"samples": {"store": "s3://b"}}}), name="shop", exact=True)
    there = {f"{o['kind'].lower()}/{o['metadata']['name']}" for o in objects}
    named = {re.sub(r"-\d+$", "", word) for word in re.findall(r"\b(?:service|job|cronjob)/shop[\w-]+", page)}
    assert named == {"service/shop-ballast", "job/shop-ballast-plan", "cronjob/shop-ballast-pipeline"}
    assert named <= {re.sub(r"-\d+$", "", word) for word in there}


def test_the_jobs_that_it_shows_are_commands_with_all_their_arguments(tmp_path: Path) -> None:
    """Each is parsed as Ballast parses it, with a file where the plan's ConfigMap is mounted."""
    (tmp_path / "plan.json").touch()
    jobs = [job for values in documented() for job in values.get("jobs", ())]
    assert {job["name"] for job in jobs} == {"plan", "apply", "verify"}
    for job in jobs:
        assert ("/etc/ballast/plan/plan.json" in job["args"]) is ("plan" in job)
        assert accepts([word.replace("/etc/ballast/plan", str(tmp_path)) for word in job["args"]])


def test_the_plan_is_taken_out_of_a_log_that_holds_more() -> None:
    """`kubectl logs` shows both streams: sentences and log lines around the plan are no part of it."""
    page = (ROOT / "docs" / "kubernetes.md").read_text()
    (taken,) = re.findall(r"kubectl logs job/shop\S+ \| (.*) > plan.json", page)
    log = f'Planning.\n{{"level": "warning", "message": "again"}}\n{dumps(PLAN)}{{"level": "info"}}\nDone.\n'
    done = subprocess.run(["sh", "-c", taken], input=log, capture_output=True, text=True, check=True)
    assert loads(done.stdout) == PLAN


def test_a_fleet_is_one_shared_file_and_one_small_file_for_each_cluster(render: Render) -> None:
    """Laid over each other as Helm does it: the cluster's own name and Secrets, and what all of them share."""
    common, payments = documented()[-2:]
    objects = render(merged(common, payments), name="payments", exact=True)
    settings = yaml.safe_load(one(objects, "ConfigMap")["data"]["ballast.yaml"])
    assert settings["cluster"]["name"] == "payments"
    assert settings["mode"] == "approve"
    assert {"ServiceMonitor", "PrometheusRule"} <= {obj["kind"] for obj in objects}
    (container,) = one(objects, "Deployment")["spec"]["template"]["spec"]["containers"]
    assert container["image"].startswith("registry.example/ballast:")
