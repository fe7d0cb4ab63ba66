"""Free ports on the loopback."""

from __future__ import annotations

from ballast.sandbox.ports import HIGH, LOW, free_ports


def test_ports_are_distinct_and_outside_the_range_of_outgoing_connections() -> None:
    """No client may take a chosen port by accident."""
    ports = free_ports(20)
    assert len(set(ports)) == 20
    assert all(LOW <= port < HIGH for port in ports)
