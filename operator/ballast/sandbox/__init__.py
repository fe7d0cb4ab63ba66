"""A real Kafka on this machine's loopback, for a person to play with and for the tests."""

from __future__ import annotations

from ballast.sandbox.cluster import Sandbox
from ballast.sandbox.current_sandbox import running
from ballast.sandbox.spec import SandboxSpec

__all__ = ["Sandbox", "SandboxSpec", "running"]
