"""The wheel, as a user installs it: in an environment of its own, without the checkout, without the extras."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import venv
from collections.abc import Callable
from pathlib import Path

import pytest

from ballast import __version__

pytestmark = pytest.mark.kafka

ROOT = Path(__file__).resolve().parents[2]
Ballast = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def ballast(tmp_path_factory: pytest.TempPathFactory) -> Ballast:
    """The command of a fresh environment that holds the built wheel and its locked dependencies; run from an empty folder."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder / "dist")]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = (folder / "dist").glob("kafka_ballast-*.whl")
    home = folder / "environment"
    venv.EnvBuilder(symlinks=True).create(home)
    _install(home, "--require-hashes", "--requirement", str(ROOT / "locks" / "runtime.txt"))
    _install(home, "--no-deps", str(wheel))
    empty = folder / "empty"
    empty.mkdir()
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [str(home / "bin" / "ballast"), *words]
        environment = clean | {"TMPDIR": str(tmp_path_factory.mktemp("t"))}
        done = subprocess.run(
            command, cwd=empty, env=environment, capture_output=True, text=True, timeout=500, check=False
        )
        assert list(empty.iterdir()) == []
        return done

    return run


def _install(home: Path, *words: str) -> None:
    """With the set-up's own uv and cache, which holds nearly all of it by the development lock."""
    sys.path.insert(0, str(ROOT / "bootstrap"))
    try:
        environment = importlib.import_module("environment")
        settings = importlib.import_module("pip_settings")
    finally:
        sys.path.remove(str(ROOT / "bootstrap"))
    uv = environment.Environment()._uv()
    theirs = {"UV_CACHE_DIR": str(environment.CACHE / "uv"), "VIRTUAL_ENV": str(home)}
    theirs |= settings.as_uv_environment(uv.parent / "python")
    done = subprocess.run(
        [str(uv), "pip", "install", *words], env=os.environ | theirs, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_it_says_its_version(ballast: Ballast) -> None:
    """As an option and as a command, which also says which extras are not there."""
    assert ballast("--version").stdout.split()[-1] == __version__
    told = dict(line.rsplit(" ", 1) for line in ballast("version").stdout.splitlines())
    assert told["ballast"] == __version__
    assert told["deltalake not"] == "installed"


@pytest.mark.parametrize(
    ("words", "extra"),
    [
        (("sample", "--store", "store", "-b", "127.0.0.1:1"), "history"),
        (("fleet", "report", "--store", "store"), "history"),
        (("fleet", "plan", "--store", "store"), "spark"),
        (("pipeline", "run", "--store", "store"), "spark"),
    ],
)
def test_what_needs_an_extra_names_it(ballast: Ballast, words: tuple[str, ...], extra: str) -> None:
    """One sentence and the line to type, with the exit code of a wrong setting; no traceback."""
    done = ballast(*words)
    assert done.returncode == 2, done.stderr
    assert f"pip install 'kafka-ballast[{extra}]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_what_is_asked_for_in_a_file_names_its_extra_too(ballast: Ballast, tmp_path: Path) -> None:
    """A fleet's list, a plan by history, a daemon that is to record samples."""
    (fleet := tmp_path / "fleet.yaml").write_text("clusters: [{name: a, bootstrap_server: '127.0.0.1:1'}]")
    (settings := tmp_path / "ballast.yaml").write_text(
        "cluster: {bootstrap_server: '127.0.0.1:1'}\nsamples: {store: store}\nweb: {port: 0}\n"
    )
    snapshot = ROOT / "tests" / "unit" / "core" / "planner" / "snapshots" / "evacuate_room.json"
    for words in (
        ("fleet", "collect", str(fleet), "--store", "store"),
        ("plan", "balance", "--store", "store", "--snapshot", str(snapshot)),
        ("daemon", "--config", str(settings)),
    ):
        done = ballast(*words)
        assert done.returncode == 2, done.stderr
        assert "pip install 'kafka-ballast[history]'" in done.stderr
        assert "Traceback" not in done.stderr


def test_every_command_has_its_help_without_the_extras(ballast: Ballast) -> None:
    """Help is what a person reads before installing more."""
    from ballast.cli.registry import COMMANDS

    for name in COMMANDS:
        done = ballast(name, "--help")
        assert done.returncode == 0, done.stderr


def test_the_demo_runs_from_an_empty_folder(ballast: Ballast) -> None:
    """Five brokers, made unbalanced and balanced again, by the wheel alone; at the end nothing is left to move, and it says so."""
    done = ballast("sandbox", "demo")
    assert done.returncode == 0, done.stdout + done.stderr
    balanced = done.stdout.index("Balanced: every broker is within its range")
    assert "balance: nothing to do, everything is within its range." in done.stdout[balanced:]
    assert "the cluster ended balanced." in done.stderr
