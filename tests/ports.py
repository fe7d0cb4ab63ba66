"""Ports for the servers of tests."""

from __future__ import annotations

import socket
from typing import Final

from ballast.sandbox.ports import hold_ports, port_of

HELD: Final[list[socket.socket]] = []


def free_ports(count: int) -> list[int]:
    """Free ports of the loopback; no sandbox and no other test gets them until this process ends."""
    holders = hold_ports(count)
    HELD.extend(holders)
    return [port_of(holder) for holder in holders]
