"""Settings that are each fine and contradict each other: refused with both names, before anything goes by them."""

from __future__ import annotations

from collections.abc import Iterator

from ballast.ports.journal_lease import RENEW_AT
from ballast.settings.model import Settings


def contradictions(settings: Settings) -> Iterator[tuple[str, str, str]]:
    """Two names, and in one sentence what cannot be."""
    every, journal, web = settings.intervals, settings.journal, settings.web
    if every.lock_s > journal.lease_s * RENEW_AT:
        yield (
            "intervals.lock_s",
            "journal.lease_s",
            f"the lock is renewed every {every.lock_s:g} s and lost after {journal.lease_s:g} s, of which a third is the most",
        )
    if settings.caution.max_snapshot_age_s <= every.observe_s:
        yield (
            "caution.max_snapshot_age_s",
            "intervals.observe_s",
            f"a reading every {every.observe_s:g} s is too old after {settings.caution.max_snapshot_age_s:g} s",
        )
    if settings.stop.drain and settings.stop.grace_s <= LEAVING_S:
        yield (
            "stop.drain",
            "stop.grace_s",
            f"of {settings.stop.grace_s:g} s none is left to wait for moves: {LEAVING_S:g} s are kept for leaving in order",
        )
    if web.probes_port and web.probes_port == web.port:
        yield "web.probes_port", "web.port", "each needs a port of its own; leave web.probes_port empty to share one"


LEAVING_S = 10.0
"""What the daemon keeps of ``stop.grace_s`` for itself."""
