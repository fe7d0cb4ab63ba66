"""What becomes of a test that this machine cannot run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
MISSING = (
    "prometheus, promtool, prometheus-alertmanager not installed (apt-get install prometheus prometheus-alertmanager)"
)
TEST = """
import pytest

@pytest.mark.prometheus
def test_that_needs_prometheus():
    assert True

def test_that_needs_nothing():
    assert True
"""


def run(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the two tests where no Prometheus can be found, under the suite's own plugins."""
    (folder / "test_two.py").write_text(TEST)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "tests.requirements", "-c", "/dev/null"]
    command += ["-o", "markers=prometheus: needs it", "--rootdir", str(folder), str(folder)]
    kept = {name: value for name, value in os.environ.items() if name != "CI"}
    everything = {**kept, "PATH": str(folder), "PYTHONPATH": str(ROOT), **environment}
    return subprocess.run(command, env=everything, cwd=folder, capture_output=True, text=True, check=False)


def test_it_is_left_out_and_named(tmp_path: Path) -> None:
    """The others run, the run is green, and the report says which did not run and why."""
    done = run(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed, 1 deselected" in done.stdout
    assert MISSING in done.stdout
    assert "::test_that_needs_prometheus" in done.stdout


@pytest.mark.parametrize("value", ["true", "1"])
def test_it_fails_in_ci(tmp_path: Path, value: str) -> None:
    """There a missing part is a mistake, and nothing is left out."""
    done = run(tmp_path, CI=value)
    assert done.returncode == 1
    assert "1 passed, 1 error" in done.stdout
    assert f"CI=true, and this test cannot run here: {MISSING}" in done.stdout
