"""What a pristine root gets from the machine it is made on: where packages come from, and nothing that would help."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def fresh() -> ModuleType:
    """The tool, which is run as a program."""
    spec = importlib.util.spec_from_file_location("fresh", ROOT / "tools" / "fresh.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_root_has_what_readme_names(fresh: ModuleType) -> None:
    """A package that a newcomer is not told to install would hide that it is needed."""
    assert fresh.readme_packages() == ["make", "python3-venv"]


def test_settings_of_the_way_are_carried_and_caches_are_not(fresh: ModuleType) -> None:
    """Proxies, indexes and authorities say where things come from; everything else stays outside."""
    outside = {
        "https_proxy": "http://proxy.invalid:3128",
        "NO_PROXY": "localhost",
        "PIP_INDEX_URL": "https://index.invalid/simple",
        "UV_DEFAULT_INDEX": "https://index.invalid/simple",
        "SSL_CERT_FILE": "/etc/authority.pem",
    }
    kept_out = {
        "PIP_CACHE_DIR": "/var/cache/pip",
        "PIP_CONFIG_FILE": "/etc/other.conf",
        "UV_CACHE_DIR": "/var/cache/uv",
        "JAVA_HOME": "/opt/java",
        "XDG_CACHE_HOME": "/var/cache",
        "HOME": "/root",
    }
    assert fresh.variables(outside | kept_out) == outside


def test_pips_files_become_one(fresh: ModuleType, tmp_path: Path) -> None:
    """The later file wins, as it does for pip; one that is not there is no trouble."""
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_text("[global]\nindex-url = https://first.invalid/%31\ncert = /etc/a.pem\n")
    second.write_text("[global]\nindex-url = https://second.invalid/\n")
    merged = fresh.pip_configuration([first, tmp_path / "nowhere", second])
    assert dict(merged["global"]) == {"index-url": "https://second.invalid/", "cert": "/etc/a.pem"}


def test_the_commands_are_readmes(fresh: ModuleType) -> None:
    """What is tried is what a newcomer is told to type."""
    assert re.findall(r"^make (\w+) ", (ROOT / "README.md").read_text(), re.MULTILINE)[:2] == list(fresh.COMMANDS)
