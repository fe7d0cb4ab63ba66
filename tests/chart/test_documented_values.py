"""The values that docs/kubernetes.md shows are values of this chart, and the settings in them are settings of Ballast."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml
from tests.chart.conftest import ROOT, Render, merged, one
from tests.chart.test_deploy import accepts

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


def test_the_jobs_that_it_shows_are_commands_with_all_their_arguments(tmp_path: Path) -> None:
    """Each is parsed as Ballast parses it, with a file where the plan's ConfigMap is mounted."""
    (tmp_path / "plan.json").touch()
    jobs = [job for values in documented() for job in values.get("jobs", ())]
    assert {job["name"] for job in jobs} == {"plan", "apply", "verify"}
    for job in jobs:
        assert ("/etc/ballast/plan/plan.json" in job["args"]) is ("plan" in job)
        assert accepts([word.replace("/etc/ballast/plan", str(tmp_path)) for word in job["args"]])


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
