"""The name that a Host header gives."""

from __future__ import annotations

import pytest

from ballast.daemon.web.hosts import host_of


@pytest.mark.parametrize(
    ("header", "name"), [("[::1]:80", "::1"), ("A.example.:80", "a.example"), ("", ""), (" b:1 ", "b")]
)
def test_the_name_in_a_host_header(header: str, name: str) -> None:
    """Without its port, in lower case."""
    assert host_of(header) == name
