"""Free ports on the loopback."""

from __future__ import annotations

import random
import socket
from typing import Final

LOW: Final = 15_000
HIGH: Final = 32_000
"""Below the range from which Linux takes the local ends of outgoing connections (32768 and up), so that a chosen port is
not lost to another process's client between the choice and the bind."""


def free_ports(count: int) -> list[int]:
    """Distinct ports on which nothing listens now; a caller that loses one to another process asks again."""
    ports: list[int] = []
    for port in random.SystemRandom().sample(range(LOW, HIGH), k=HIGH - LOW):
        if len(ports) == count:
            break
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        ports.append(port)
    return ports
