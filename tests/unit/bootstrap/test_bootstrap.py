"""The set-up: what it takes over from pip, what it calls damaged, what it would install."""

from __future__ import annotations

import base64
import hashlib
import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(autouse=True)
def as_a_program() -> Iterator[None]:
    """The folder is run as a program, so its modules see each other by their bare names."""
    sys.path.insert(0, str(ROOT / "bootstrap"))
    yield
    sys.path.remove(str(ROOT / "bootstrap"))


def module(name: str) -> ModuleType:
    """A module of the set-up."""
    return importlib.import_module(name)


def install(folder: Path, name: str, content: bytes, *, recorded: bytes | None = None) -> Path:
    """A package of one file, with a record that says what the file should be."""
    site = folder / "lib" / "python3.11" / "site-packages"
    info = site / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (site / f"{name}.py").write_bytes(content)
    digest = base64.urlsafe_b64encode(hashlib.sha256(recorded or content).digest()).decode().rstrip("=")
    (info / "RECORD").write_text(f"{name}.py,sha256={digest},{len(content)}\n{name}-1.0.dist-info/RECORD,,\n")
    return site / f"{name}.py"


def test_a_changed_file_names_its_package(tmp_path: Path) -> None:
    """Of two packages the one whose file is not what its record says is damaged."""
    install(tmp_path, "whole", b"x = 1\n")
    install(tmp_path, "broken", b"x = 2\n", recorded=b"x = 1\n")
    assert list(module("environment").damaged_packages(tmp_path)) == ["broken"]


def test_a_missing_file_names_its_package(tmp_path: Path) -> None:
    """A file that is gone counts like one that was changed."""
    install(tmp_path, "gone", b"x = 1\n").unlink()
    assert list(module("environment").damaged_packages(tmp_path)) == ["gone"]


def test_the_stamp_follows_the_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another lock is another environment; the same one is not built twice."""
    environment = module("environment")
    for name in ("dev.txt", "build.txt", "pyproject.toml"):
        (tmp_path / name).write_text(name)
    monkeypatch.setattr(environment, "LOCKS", tmp_path)
    monkeypatch.setattr(environment, "ROOT", tmp_path)
    before = environment.stamp("dev.txt")
    assert environment.stamp("dev.txt") == before
    (tmp_path / "dev.txt").write_text("something newer")
    assert environment.stamp("dev.txt") != before


def test_a_demo_needs_the_runtime_alone_and_takes_nothing_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a fresh machine it is light; where the development environment stands, it stays."""
    environment = module("environment")
    monkeypatch.setattr(environment, "STAMP", tmp_path / "stamp")
    monkeypatch.setattr(environment, "CACHE", tmp_path)
    assert environment.Environment("runtime.txt").lock == "runtime.txt"
    (tmp_path / "stamp").write_text("runtime.txt 0123")
    assert environment.Environment("runtime.txt").lock == "runtime.txt"
    assert environment.Environment().lock == "dev.txt"
    (tmp_path / "stamp").write_text("dev.txt 0123")
    assert environment.Environment("runtime.txt").lock == "dev.txt"


@pytest.mark.parametrize(
    ("variable", "value", "expected"),
    [
        ("PIP_INDEX_URL", "https://index.invalid/simple", ("UV_DEFAULT_INDEX", "https://index.invalid/simple")),
        ("PIP_CERT", "/etc/authority.pem", ("SSL_CERT_FILE", "/etc/authority.pem")),
        ("PIP_TRUSTED_HOST", "index.invalid", ("UV_INSECURE_HOST", "index.invalid")),
    ],
)
def test_pips_index_is_uvs_index(
    variable: str, value: str, expected: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user who told pip where packages come from need not tell uv."""
    name, wanted = expected
    monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(variable, value)
    assert module("pip_settings").as_uv_environment(Path(sys.executable))[name] == wanted


def test_what_was_set_for_uv_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """A person's own uv setting is not overridden by pip's."""
    monkeypatch.setenv("PIP_INDEX_URL", "https://index.invalid/simple")
    monkeypatch.setenv("UV_DEFAULT_INDEX", "https://other.invalid/simple")
    assert "UV_DEFAULT_INDEX" not in module("pip_settings").as_uv_environment(Path(sys.executable))


class Apt:
    """Stands in for running programs; remembers the packages that ``apt-get`` was to install."""

    def __init__(self) -> None:
        self.installed: list[str] = []

    def __call__(self, words: list[str], **_: object) -> subprocess.CompletedProcess[bytes]:
        """Remember."""
        if words[:2] == ["apt-get", "install"]:
            self.installed += [word for word in words[2:] if not word.startswith("-")]
        return subprocess.CompletedProcess(words, 0)


@pytest.fixture
def apt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Apt:
    """A Debian where nothing is installed and root asks."""
    packages, apt = module("system_packages"), Apt()
    release = tmp_path / "os-release"
    release.write_text("ID=debian\n")
    (tmp_path / "apt-get").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(packages, "missing", lambda: list(module("programs").TABLE))
    monkeypatch.setattr(packages, "OS_RELEASE", release)
    monkeypatch.setattr(packages, "POLICY", tmp_path / "policy-rc.d")
    monkeypatch.setattr(packages.os, "geteuid", lambda: 0)
    monkeypatch.setattr(subprocess, "run", apt)
    monkeypatch.delenv("NO_SYSTEM_INSTALL", raising=False)
    return apt


def test_root_is_told_before_anything_is_installed(apt: Apt, capsys: pytest.CaptureFixture[str]) -> None:
    """Each package and how to forbid it are named, then installed."""
    module("system_packages").install_missing()
    told = capsys.readouterr().err
    assert "NO_SYSTEM_INSTALL=1 forbids it" in told
    assert apt.installed
    assert all(package in told for package in apt.installed)


def test_installing_can_be_forbidden(
    apt: Apt, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """NO_SYSTEM_INSTALL=1 installs nothing and says what is missing."""
    monkeypatch.setenv("NO_SYSTEM_INSTALL", "1")
    module("system_packages").install_missing()
    assert apt.installed == []
    assert "docker.io" in capsys.readouterr().err


def test_an_ordinary_user_installs_nothing(apt: Apt, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without root there is no attempt."""
    monkeypatch.setattr(module("system_packages").os, "geteuid", lambda: 1000)
    module("system_packages").install_missing()
    assert apt.installed == []


def test_the_set_up_needs_nothing_but_the_standard_library() -> None:
    """It runs before anything is installed, so it may import only what Python brings, and itself."""
    own = {path.stem for path in (ROOT / "bootstrap").glob("*.py")}
    for path in (ROOT / "bootstrap").glob("*.py"):
        for line in path.read_text().splitlines():
            if line.startswith(("import ", "from ")):
                top = line.split()[1].split(".")[0]
                assert top in own or top in sys.stdlib_module_names, f"{path.name}: {line}"
