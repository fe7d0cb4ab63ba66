"""What every test runs under: the suite's plugins, and the settings of a library."""

from __future__ import annotations

import signal

from hypothesis import HealthCheck, settings

# How long an example takes is the machine's business: tests run beside others on two cores.
settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")

pytest_plugins = ["tests.parts", "tests.requirements", "tests.programs_started", "tests.figures", "tests.clusters"]


def pytest_configure() -> None:
    """Let commands under test be interrupted as from a terminal, however the run itself was started.

    A shell gives its background jobs an ignored SIGINT; every command that a test starts would inherit it and hear nothing.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
