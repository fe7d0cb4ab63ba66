"""Free ports on the loopback, held so that no two clusters get the same."""

from __future__ import annotations

import random
import socket
from typing import Final

from ballast.errors import Unavailable

LOW: Final = 15_000
HIGH: Final = 32_000
"""Below the range from which Linux takes the local ends of outgoing connections (32768 and up), so that a chosen port is
not lost to another process's client between the choice and the bind."""


def hold_ports(count: int) -> list[socket.socket]:
    """Sockets bound to distinct free ports, none of which listens; a port is held while any process has its socket open.

    A server that sets SO_REUSEADDR, as servers do, may listen on a held port; it is not given out again.  A broker that finds
    its port taken ends only after others were told of it: what answers there then may end them too (KAFKA-4493).
    """
    held: list[socket.socket] = []
    for port in random.SystemRandom().sample(range(LOW, HIGH), k=HIGH - LOW):
        if len(held) == count:
            break
        holder = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            holder.bind(("127.0.0.1", port))
        except OSError:
            holder.close()
            continue
        # Not before the bind, which would let it share a port that another holds.
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.append(holder)
    if len(held) < count:
        for holder in held:
            holder.close()
        raise Unavailable(f"Of the ports {LOW} to {HIGH - 1} on the loopback fewer than {count} are free.")
    return held


def port_of(holder: socket.socket) -> int:
    """The port that a socket is bound to."""
    return int(holder.getsockname()[1])
