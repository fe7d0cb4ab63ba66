"""What ``sandbox`` tells."""

from __future__ import annotations

from typing import Annotated, Literal

from ballast.cli.documents.base import Document, OneOf, Part


class SandboxBroker(Part):
    """A broker of the sandbox."""

    id: int
    rack: str | None
    running: bool


class Sandbox(Document):
    """``ballast sandbox status``."""

    kind: Literal["Sandbox"] = "Sandbox"
    kafka_version: str
    mode: Annotated[str, OneOf("kraft", "zookeeper")]
    bootstrap_server: str
    zookeeper: str | None
    command_config: str | None
    """The file of client properties; null without security."""
    folder: str
    brokers: list[SandboxBroker]


class SandboxVersions(Document):
    """``ballast sandbox versions``."""

    kind: Literal["SandboxVersions"] = "SandboxVersions"
    kafka_versions: list[str]
    security: list[str]
