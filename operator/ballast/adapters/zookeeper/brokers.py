"""The addresses of brokers as they stand in ZooKeeper's ``/brokers/ids``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from ballast.errors import Unavailable, UsageError

_ENDPOINT: Final = re.compile(r"(?P<listener>[^:/]+)://(?P<host>.*):(?P<port>\d+)")


def find_brokers(registrations: Mapping[int, Any], protocol: str) -> str:
    """The endpoints of this security protocol, as ``--bootstrap-server`` takes them: each broker's first one first."""
    if not registrations:
        raise Unavailable(
            "No broker is registered in ZooKeeper's /brokers/ids.", hint="See whether the cluster's brokers run."
        )
    of_brokers = [list(_endpoints(registrations[broker])) for broker in sorted(registrations)]
    usable = [[address for spoken, address in endpoints if spoken == protocol] for endpoints in of_brokers]
    most = max(len(addresses) for addresses in usable)
    ordered = [addresses[at] for at in range(most) for addresses in usable if at < len(addresses)]
    if not ordered:
        spoken = sorted({protocol for endpoints in of_brokers for protocol, _ in endpoints})
        raise UsageError(
            f"The brokers in ZooKeeper have no {protocol} listener, only {', '.join(spoken)}.",
            hint="Set security.protocol in the client properties (--command-config).",
        )
    return ",".join(ordered)


def _endpoints(registration: Any) -> Iterator[tuple[str, str]]:
    """Security protocol and address of each listener; brokers before 0.10.2 name listeners after protocols."""
    protocols = registration.get("listener_security_protocol_map", {})
    for endpoint in registration.get("endpoints", ()):
        match = _ENDPOINT.fullmatch(endpoint)
        if match is not None:
            listener = match["listener"]
            yield protocols.get(listener, listener), f"{match['host']}:{match['port']}"
