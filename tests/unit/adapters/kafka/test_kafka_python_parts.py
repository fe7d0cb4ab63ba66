"""kafka-python without its clients: they are not loaded for Ballast, and there for code that asks for them."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from ballast.adapters.kafka.kafka_python_parts import defer_init

PARTS = "import sys, ballast.adapters.kafka.kafka_python"
CLIENTS = "print(*(m for m in ('kafka.admin', 'kafka.consumer', 'kafka.producer') if m in sys.modules))"
SAME = """
import kafka
from kafka import *
from kafka import KafkaConsumer, errors
import kafka.consumer.group, kafka.errors
assert KafkaConsumer is kafka.KafkaConsumer is kafka.consumer.group.KafkaConsumer
assert errors is kafka.errors and kafka.errors.KafkaError is ballast.adapters.kafka.kafka_python.kafka_errors.KafkaError
assert all(hasattr(kafka, name) for name in kafka.__all__) and kafka.__version__
assert not hasattr(kafka, "Nothing")
print(*sorted(name for name in vars(kafka) if name != "__getattr__"))
"""


def say(*lines: str) -> str:
    """What a process of its own prints."""
    program = "\n".join(lines)
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip()


def test_the_clients_are_not_loaded() -> None:
    """Ballast's requests and connections bring none of kafka-python's consumer, producer and admin client."""
    assert say(PARTS, CLIENTS) == ""


def test_the_package_is_whole_for_everybody_else() -> None:
    """Whether Ballast or the other one comes first, ``kafka`` has the same names, and a class is one class."""
    after, before = say(PARTS, SAME), say("import kafka", PARTS, SAME)
    assert after == before != ""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The ``__init__`` of a package of our own, with a module beside it."""
    folder = tmp_path / "deferred_package"
    folder.mkdir()
    (folder / "part.py").write_text("HERE = 1\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("deferred_package", "deferred_package.part"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return folder / "__init__.py"


ASKED_MEANWHILE = """
import sys, threading
from deferred_package import part
RUNS = [*globals().get("RUNS", ()), 1]
ANSWERS = []
other = threading.Thread(target=lambda: ANSWERS.append(sys.modules[__name__].LAST))
other.start()
other.join(0.05)
LAST = part.HERE
"""


def test_its_init_runs_once_when_a_name_is_asked_for(package: Path) -> None:
    """Not for a module of it; a thread that asks meanwhile waits for the whole; the module itself may ask for names."""
    package.write_text(ASKED_MEANWHILE, encoding="utf-8")
    defer_init("deferred_package")
    assert importlib.import_module("deferred_package.part").HERE == 1
    found = sys.modules["deferred_package"]
    assert "RUNS" not in vars(found)
    assert found.LAST == 1
    found.other.join(60)
    assert (found.ANSWERS, found.RUNS) == ([1], [1])


def test_an_init_that_fails_is_tried_again(package: Path) -> None:
    """Its failure is told as it is, to each that asks; nothing is taken for loaded."""
    package.write_text("raise OSError('not now')\n", encoding="utf-8")
    defer_init("deferred_package")
    found = sys.modules["deferred_package"]
    for _ in range(2):
        with pytest.raises(OSError, match="not now"):
            _ = found.LAST


def test_a_package_that_is_missing_is_told_by_its_import() -> None:
    """Nothing is put in its place."""
    defer_init("no_such_package_anywhere")
    assert "no_such_package_anywhere" not in sys.modules
