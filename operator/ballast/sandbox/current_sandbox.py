"""The one sandbox that a person has running, and how other commands find it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ballast.errors import UsageError
from ballast.sandbox.cluster import Sandbox
from ballast.sandbox.folders import clusters_root, has_supervisor, sweep


@dataclass(frozen=True, slots=True)
class RunningSandbox:
    """How clients reach the person's sandbox."""

    bootstrap_server: str
    zookeeper: str | None
    client_properties: dict[str, str]
    client_properties_file: Path


def current_folder() -> Path:
    """The folder of the sandbox that ``ballast sandbox up`` starts; there is one per user."""
    return clusters_root() / "up"


def new_current_folder() -> Path:
    """The same folder for a new sandbox; raises ``UsageError`` when one runs already."""
    sweep()
    folder = current_folder()
    if folder.exists():
        raise UsageError(
            "A sandbox is running already.", hint="Look at it with `ballast sandbox status`, end it with `down`."
        )
    return folder


def running() -> RunningSandbox | None:
    """The person's sandbox, when one runs."""
    folder = current_folder()
    if not has_supervisor(folder):
        return None
    sandbox = Sandbox.attach(folder)
    return RunningSandbox(
        sandbox.bootstrap_server, sandbox.zookeeper, sandbox.client_properties, sandbox.client_properties_file
    )


def end() -> bool:
    """End the person's sandbox and remove what dead ones left; whether one ran."""
    folder = current_folder()
    ran = has_supervisor(folder)
    if ran:
        Sandbox.attach(folder).down()
    sweep()
    return ran
