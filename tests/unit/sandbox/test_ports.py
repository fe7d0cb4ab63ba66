"""Free ports on the loopback."""

from __future__ import annotations

import socket
from contextlib import ExitStack

import pytest

from ballast.errors import Unavailable
from ballast.sandbox import ports
from ballast.sandbox.ports import HIGH, LOW, hold_ports, port_of


def test_ports_are_distinct_and_outside_the_range_of_outgoing_connections() -> None:
    """No client may take a chosen port by accident."""
    with ExitStack() as stack:
        held = [port_of(stack.enter_context(holder)) for holder in hold_ports(20)]
    assert len(set(held)) == 20
    assert all(LOW <= port < HIGH for port in held)


def test_a_held_port_is_not_given_out_again_and_its_server_may_come_and_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two clusters that start at once, or one that starts while the other's broker is down, never meet at a port."""
    (holder,) = hold_ports(1)
    port = port_of(holder)
    monkeypatch.setattr(ports, "LOW", port)
    monkeypatch.setattr(ports, "HIGH", port + 1)
    with pytest.raises(Unavailable, match="fewer than 1 are free"):
        hold_ports(1)
    for _ in range(2):
        server = socket.create_server(("127.0.0.1", port))
        with server, socket.create_connection(("127.0.0.1", port)), pytest.raises(Unavailable):
            hold_ports(1)
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port))
    holder.close()
    with ExitStack() as stack:
        assert [port_of(stack.enter_context(other)) for other in hold_ports(1)] == [port]
