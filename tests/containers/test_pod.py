"""The image is built, and the chart's pod runs in it against a real cluster."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from tests import waiting
from tests.chart.conftest import EVERYTHING, ROOT, one, render
from tests.containers.docker_host import DockerHost
from tests.containers.pod import NotUnderstood, Objects, as_container, probe_url
from tests.ports import free_ports

from ballast.sandbox import Sandbox

pytestmark = [pytest.mark.containers, pytest.mark.kafka, pytest.mark.timeout(1200)]
"""The first test also waits for its image to be built."""

__all__ = ["render"]
SECRETS = {"page-token": {"token": "a-token-of-this-test"}}


Run = Callable[..., Any]


@pytest.fixture
def run(docker_client: Any, docker_host: DockerHost) -> Run:
    """Start a container in the background."""
    return lambda **arguments: docker_client.containers.run(detach=True, labels=docker_host.labels, **arguments)


def get(url: str) -> tuple[int, str]:
    """Status and body; 0 while there is no answer."""
    try:
        with urllib.request.urlopen(url, timeout=30) as answer:  # noqa: S310 — loopback
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refusal:
        return refusal.code, refusal.read().decode()
    except OSError as failure:
        return 0, str(failure)


def until(what: str, probe: Callable[[], bool], container: Any, timeout_s: float = 120) -> None:
    """Poll; fail with the container's log."""
    waiting.until(probe, what, within_s=timeout_s, story=lambda: str(container.logs(tail=40).decode()))


def objects_of(rendered: list[dict[str, Any]]) -> Objects:
    """The ConfigMaps of the chart and the Secrets of the test."""
    configs = {o["metadata"]["name"]: o["data"] for o in rendered if o["kind"] == "ConfigMap"}
    return Objects(configs=configs, secrets=SECRETS)


def values(kraft: Sandbox, image: str, port: int) -> dict[str, Any]:
    """The chart's values for the cluster under test."""
    repository, _, tag = image.rpartition(":")
    return {
        "settings": {
            "cluster": {"name": "sandbox", "bootstrap_server": kraft.bootstrap_server},
            "intervals": {"observe_s": 1},
        },
        "image": {"repository": repository, "tag": tag},
        "web": {"port": port, "probesPort": free_ports(1)[0], "token": {"secret": "page-token"}},
        # Everything here stays on the loopback.
        "env": [{"name": "BALLAST__WEB__HOST", "value": "127.0.0.1"}],
        "oneShot": {"enabled": True},
    }


def test_the_pod_runs_as_the_chart_renders_it(
    kraft: Sandbox, run: Run, ballast_image: str, render: Callable[..., Any], tmp_path: Path
) -> None:
    """Its probes turn well, it reads the cluster, its page has a token, SIGTERM ends it in time with code 0."""
    (port,) = free_ports(1)
    rendered = render(values(kraft, ballast_image, port))
    spec = one(rendered, "Deployment")["spec"]["template"]["spec"]
    arguments = as_container(spec, pod_name="shop-ballast-0", objects=objects_of(rendered), folder=tmp_path)
    container = run(**arguments)
    try:
        (described,) = spec["containers"]
        until("ready", lambda: get(probe_url(described, "readinessProbe"))[0] == 200, container)
        assert get(probe_url(described, "startupProbe"))[0] == 200
        assert get(probe_url(described, "livenessProbe"))[0] == 200
        until("a reading", lambda: get(f"http://127.0.0.1:{port}/healthz")[0] == 200, container)
        status = json.loads(get(f"http://127.0.0.1:{port}/api/v1/status")[1])
        assert [b["id"] for b in status["cluster"]["brokers"]] == list(kraft.broker_ids)
        assert status["instance"] == "shop-ballast-0"
        assert status["actionsEnabled"] is True
        assert status["role"] == "observing"
        users = {row[0] for row in container.top(ps_args="-o uid,pid")["Processes"]}
        assert users == {"65532"}
        began = time.monotonic()
        container.stop(timeout=spec["terminationGracePeriodSeconds"])
        took_s = time.monotonic() - began
        assert container.wait()["StatusCode"] == 0
        assert took_s < spec["terminationGracePeriodSeconds"]
        lines = [json.loads(line) for line in container.logs().decode().splitlines() if line.startswith("{")]
        assert lines[-1]["message"] == "Stopped."
        assert not [line for line in lines if "traceback" in line]
        assert "a-token-of-this-test" not in container.logs().decode()
    finally:
        container.remove(force=True)


def test_a_one_shot_command_runs_from_the_same_chart(
    kraft: Sandbox, run: Run, ballast_image: str, render: Callable[..., Any], tmp_path: Path
) -> None:
    """The CronJob's pod prints the cluster's status and ends with 0."""
    (port,) = free_ports(1)
    rendered = render(values(kraft, ballast_image, port))
    spec = one(rendered, "CronJob", "-once")["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    arguments = as_container(spec, pod_name="shop-once", objects=objects_of(rendered), folder=tmp_path)
    container = run(**arguments)
    try:
        assert container.wait(timeout=120)["StatusCode"] == 0, container.logs().decode()
        said = container.logs(stdout=True, stderr=False).decode()
        assert all(str(broker) in said for broker in kraft.broker_ids)
    finally:
        container.remove(force=True)


def test_the_image_runs_without_rights_and_holds_no_package_manager(docker_client: Any, ballast_image: str) -> None:
    """It says its version without any right, and pip is not in it."""
    said = docker_client.containers.run(
        ballast_image, ["--version"], remove=True, read_only=True, user="12345:12345", cap_drop=["ALL"]
    )
    assert said.decode().startswith("ballast, version ")
    assert docker_client.images.get(ballast_image).attrs["Config"]["User"] == "65532:65532"
    found = docker_client.containers.run(
        ballast_image, ["-c", "import importlib.util as u; print(u.find_spec('pip'))"], remove=True,
        entrypoint=["/opt/ballast/bin/python"],
    )  # fmt: skip
    assert found.decode().strip() == "None"
    named = docker_client.containers.run(
        ballast_image, ["-c", "import getpass, os; print(getpass.getuser(), os.path.expanduser('~'))"], remove=True,
        entrypoint=["/opt/ballast/bin/python"], read_only=True, cap_drop=["ALL"],
    )  # fmt: skip
    assert named.decode().split() == ["ballast", "/tmp"], "libraries ask the system who they are"  # noqa: S108


MEGABYTE: Final = 1_000_000
MOST_BYTES: Final = 250 * MEGABYTE
"""Of the whole image."""
BASE_BYTES: Final = 130 * MEGABYTE
"""Room left for the base of a release, Debian's slim Python; the base of this run may be smaller."""


def test_the_image_is_small(docker_client: Any, ballast_image: str) -> None:
    """Every node pulls it before the first pod starts."""
    image = docker_client.images.get(ballast_image)
    base = docker_client.images.get(image.labels["org.opencontainers.image.base.name"])
    sizes = {"image": image.attrs["Size"], "over its base": image.attrs["Size"] - base.attrs["Size"]}
    assert sizes["image"] <= MOST_BYTES, sizes
    assert sizes["over its base"] <= MOST_BYTES - BASE_BYTES, sizes


PLANS: Final = """
import importlib.util, sys
sys.path.insert(0, {deploy!r})
from ballast.core import compiled
if "numba" in sys.argv:
    compiled.library = lambda: None
from ballast.core.planner import plan
from ballast.core.what_if import digest
from small_clusters import make_plans, plans
for state, intent in plans():
    print(type(intent).__name__, digest(plan(state, intent)))
make_plans()
print(compiled.library() is not None, importlib.util.find_spec("numba") is not None)
"""
"""Prints each plan, and which way the loops of the planner were compiled."""


def test_the_image_makes_the_plans_that_numba_makes(docker_client: Any, ballast_image: str) -> None:
    """Its library of compiled loops takes numba's place for every call, on whatever processor of its kind the pod runs."""
    said = docker_client.containers.run(
        ballast_image, ["-W", "error", "-c", PLANS.format(deploy="/in")], entrypoint=["/opt/ballast/bin/python"], remove=True,
        read_only=True, cap_drop=["ALL"], network_mode="none", volumes={str(ROOT / "deploy"): {"bind": "/in", "mode": "ro"}},
    )  # fmt: skip
    *plans, ways = said.decode().splitlines()
    assert ways == "True False"
    here = [sys.executable, "-c", PLANS.format(deploy=str(ROOT / "deploy")), "numba"]
    *expected, ways = subprocess.run(here, capture_output=True, text=True, check=True).stdout.splitlines()
    assert ways == "False True"
    assert len(plans) > 20
    assert plans == expected


def test_the_image_says_what_it_is_made_of(docker_client: Any, ballast_image: str) -> None:
    """Its bill of materials has every package of the lock that was installed, and its label names the base."""
    show = "print(open('/opt/ballast/sbom.json').read())"
    said = docker_client.containers.run(
        ballast_image, ["-c", show], entrypoint=["/opt/ballast/bin/python"], remove=True, network_mode="none"
    )
    listed = {c["name"]: c["version"] for c in json.loads(said)["components"]}
    locked = set(re.findall(r"(?m)^([\w.-]+)==", (ROOT / "locks" / "runtime.txt").read_text()))
    assert set(listed) == locked - {"numba", "llvmlite"}
    assert docker_client.images.get(ballast_image).labels["org.opencontainers.image.base.name"]


@pytest.mark.parametrize(
    "strange", [{"hostNetwork": True}, {"initContainers": []}, {"containers": [{"name": "a", "command": ["sh"]}]}]
)
def test_the_translator_refuses_what_it_does_not_understand(
    render: Callable[..., Any], tmp_path: Path, strange: dict[str, Any]
) -> None:
    """Otherwise a passing test would prove less than it seems to."""
    spec = one(render(EVERYTHING), "Deployment")["spec"]["template"]["spec"]
    with pytest.raises(NotUnderstood):
        as_container({**spec, **strange}, pod_name="p", objects=Objects(), folder=tmp_path)
