"""Runs services of a Compose file as containers: what each says is executed; what is not known here is refused.

No image registry is needed: the caller says which image stands in for the one that a service names.  For Kafka's own image
``properties_of`` does what its start script does with the environment.  Said openly: host ports are the test's own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from tests.containers.pod import NotUnderstood

FIELDS: Final = {
    "image", "command", "environment", "ports", "read_only", "tmpfs", "user", "cap_drop", "security_opt",
    "stop_grace_period", "restart", "depends_on",
}  # fmt: skip
LOOPBACK: Final = "127.0.0.1"


def as_container(service: Mapping[str, Any], *, image: str, host_ports: Mapping[int, int]) -> dict[str, Any]:
    """Arguments for ``docker.containers.create``; ``host_ports`` replaces each published port's number on the host."""
    strange = set(service) - FIELDS
    if strange:
        raise NotUnderstood(f"service: {', '.join(sorted(strange))}")
    restart = service.get("restart", "no")
    return {
        "image": image,
        "command": service.get("command"),
        "environment": dict(service.get("environment", {})),
        "ports": dict(_published(entry, host_ports) for entry in service.get("ports", ())),
        "read_only": service.get("read_only", False),
        "tmpfs": dict.fromkeys(service.get("tmpfs", ()), ""),
        "user": service.get("user"),
        "cap_drop": service.get("cap_drop"),
        "security_opt": service.get("security_opt"),
        **({"restart_policy": {"Name": restart}} if restart != "no" else {}),
    }


def grace_s(service: Mapping[str, Any]) -> int:
    """How long a service may take to stop."""
    found = re.fullmatch(r"(\d+)s", service.get("stop_grace_period", "10s"))
    if found is None:
        raise NotUnderstood(f"stop_grace_period {service['stop_grace_period']}")
    return int(found[1])


def properties_of(environment: Mapping[str, str]) -> dict[str, str]:
    """A broker's configuration: ``KAFKA_LOG_DIRS`` is ``log.dirs``, three underscores are a dash, two are one."""
    out = {}
    for name, value in environment.items():
        if not name.startswith("KAFKA_"):
            raise NotUnderstood(f"environment {name}")
        pieces = re.split(r"(_+)", name.removeprefix("KAFKA_").lower())
        out["".join({"_": ".", "__": "_", "___": "-"}.get(piece, piece) for piece in pieces)] = value
    return out


def _published(entry: str, host_ports: Mapping[int, int]) -> tuple[str, tuple[str, int]]:
    found = re.fullmatch(rf"{re.escape(LOOPBACK)}:(\d+):(\d+)", entry)
    if found is None:
        raise NotUnderstood(f"port {entry}: only a port of the loopback is published here")
    return f"{found[2]}/tcp", (LOOPBACK, host_ports[int(found[1])])
