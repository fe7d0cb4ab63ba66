"""Who ``ballast runs`` says holds the lock, and when it says that its lease has expired."""

from __future__ import annotations

import pytest

from ballast.cli.commands.runs import holder_line
from ballast.ports.journal import CLOCKS_DIFFER_S, Holder
from ballast.ports.journal_lease import is_lease_expired

HOLDER = Holder(id="a", description="ada@laptop (ballast apply)", since_ms=1_000, doing="run r: test", lease_s=15)
NOW_MS = 10_000_000
ENOUGH_S = HOLDER.lease_s + CLOCKS_DIFFER_S


@pytest.mark.parametrize(
    ("silent_s", "expired"), [(-60, False), (0, False), (ENOUGH_S, False), (ENOUGH_S + 1, True), (None, None)]
)
def test_a_lease_has_expired_when_no_difference_of_clocks_explains_its_age(
    silent_s: float | None,
    *,
    expired: bool | None,
) -> None:
    """A process that lives renews it within seconds; where no time is known nothing is said of it."""
    renewed_ms = None if silent_s is None else NOW_MS - int(silent_s * 1000)
    assert is_lease_expired(HOLDER, renewed_ms, NOW_MS) is expired
    said = holder_line(HOLDER, renewed_ms, NOW_MS)
    assert said.startswith("ada@laptop (ballast apply) ")
    assert ("has held the lock since" in said) is not (expired is True)
    assert ("its lease has expired: it was last renewed at" in said) is (expired is True)
    assert ("gets it within 15 s" in said) is (expired is True)
