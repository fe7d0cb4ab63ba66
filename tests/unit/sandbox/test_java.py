"""Which Java is found, and the home that Spark is given where it lacks a module."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from ballast.sandbox.java import ensure_java, ensure_java_home_for_spark

JAVA = """#!/bin/sh
case "$*" in
  -version) echo 'openjdk version "25.0.2"' >&2 ;;
  --list-modules) echo java.base@25.0.2 ;;
  *) echo "$@" ;;
esac
"""
"""A Java without the module that Spark asks for."""


@pytest.fixture(name="home")
def java_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The machine's only Java, and an empty cache."""
    program = tmp_path / "jre" / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(JAVA)
    program.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(program.parent.parent))
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return program.parent.parent


def asked_for_by_spark(home: Path) -> str:
    """What is started when Spark asks for its module."""
    command = [str(home / "bin" / "java"), "--add-modules=jdk.incubator.vector", "-jar", "a b.jar"]
    return subprocess.run(command, capture_output=True, text=True, timeout=20, check=True).stdout.strip()


def test_spark_gets_a_home_whose_java_asks_for_no_module_that_it_lacks(home: Path) -> None:
    """Everything else that Spark says goes through."""
    made = ensure_java_home_for_spark()
    assert made != home
    assert asked_for_by_spark(made) == "-jar a b.jar"


def test_a_home_for_spark_is_never_made_from_itself(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that was given it as JAVA_HOME makes the same one: it starts the real Java, and does not start itself for ever."""
    made = ensure_java_home_for_spark()
    monkeypatch.setenv("JAVA_HOME", str(made))
    assert ensure_java_home_for_spark() == made
    assert asked_for_by_spark(made) == "-jar a b.jar"
    assert ensure_java().home == home
