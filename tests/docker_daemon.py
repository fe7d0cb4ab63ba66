"""A Docker for the tests: the one that answers, else one of the suite's own where that is allowed."""

from __future__ import annotations

import os
import subprocess

from bootstrap.programs import missing, path_of


def docker_answers() -> bool:
    """Whether a Docker daemon answers this user."""
    try:
        asked = subprocess.run([path_of("docker"), "info"], capture_output=True, timeout=30, check=False)
    except FileNotFoundError:
        return False
    return asked.returncode == 0


def may_start_one() -> bool:
    """Whether the suite may start a daemon itself: as root, with the programs there, and not forbidden."""
    return os.geteuid() == 0 and not missing("containers") and os.environ.get("NO_DOCKER_START") != "1"


def why_no_docker() -> str | None:
    """Why tests with containers cannot run here; None when they can."""
    if docker_answers() or may_start_one():
        return None
    if lacking := missing("containers"):
        return f"no Docker answers, and {', '.join(outside.name for outside in lacking)} not installed"
    return "no Docker answers, and only root may start one (NO_DOCKER_START=1 forbids it)"
