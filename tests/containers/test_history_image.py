"""The image with Arrow and Delta runs as the chart's pod would, and keeps samples in a claim."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
from deltalake import DeltaTable
from tests.chart.conftest import merged, one, render
from tests.containers.pod import as_container, probe_url
from tests.containers.test_pod import Run, get, objects_of, run, until, values
from tests.ports import free_ports

from ballast.adapters.samples.store import table_url
from ballast.sandbox import Sandbox

pytestmark = [pytest.mark.containers, pytest.mark.kafka, pytest.mark.timeout(1200)]
"""The first test also waits for its image to be built."""

__all__ = ["render", "run"]
MOUNT: Final = "/var/lib/ballast"
KEEPS: Final[dict[str, Any]] = {
    "settings": {"samples": {"store": f"{MOUNT}/samples"}, "intervals": {"log_dirs_s": 1}},
    "store": {"claim": "samples"},
}
ALERT_FROM: Final = 3
"""Failures in a row from which the alert BallastSamplesFailing is pending."""


def figure(url: str, name: str) -> float | None:
    """A metric without labels; None where it is absent, also while there is no answer."""
    found = re.search(rf"(?m)^{name} (\S+)$", get(url)[1])
    return float(found[1]) if found else None


def warnings(container: Any) -> list[str]:
    """What the log warns of."""
    lines = [json.loads(line) for line in container.logs().decode().splitlines() if line.startswith("{")]
    return [line["message"] for line in lines if line["level"] == "warning"]


def test_a_folder_that_cannot_be_written_is_told_until_it_can(
    kraft: Sandbox, run: Run, history_image: str, render: Callable[..., Any], tmp_path: Path
) -> None:
    """The alert's metrics count, the page is served, the log tells a command; once a user runs it, samples are kept."""
    claim = tmp_path / "claim"
    claim.mkdir(mode=0o755)
    (port,) = free_ports(1)
    rendered = render(merged(values(kraft, history_image, port), KEEPS))
    spec = one(rendered, "Deployment")["spec"]["template"]["spec"]
    objects = replace(objects_of(rendered), claims={"samples": claim})
    container = run(**as_container(spec, pod_name="shop-ballast-0", objects=objects, folder=tmp_path / "objects"))
    try:
        ready = probe_url(spec["containers"][0], "readinessProbe")
        metrics = f"{ready.rpartition('/')[0]}/metrics"
        failures = "ballast_sample_failures_in_a_row"
        until("failures that are counted", lambda: (figure(metrics, failures) or 0) >= ALERT_FROM, container)
        assert figure(metrics, "ballast_active_or_observing") == 1, "the alert asks for the replica that writes samples"
        assert figure(metrics, "ballast_sample_timestamp_seconds") is None
        assert get(ready)[0] == 200
        told = next(line for line in warnings(container) if f"{MOUNT}/samples" in line)
        command = re.search(r"`(.*chown -R 65532:65532.*)`", told)
        assert command, told
        subprocess.run(["sh", "-c", command[1].replace(MOUNT, str(claim))], check=True)
        until("a sample", lambda: figure(metrics, "ballast_sample_timestamp_seconds") is not None, container)
        assert figure(metrics, failures) == 0
        assert DeltaTable(table_url(str(claim / "samples"), "brokers")).to_pyarrow_table().num_rows >= 3
    finally:
        container.remove(force=True)
