"""``throttle: auto``: the rate follows what the moves use and how bystanders fare.

Where it starts is ``core.throttles.pace``'s affair.  Where the link's capacity is stated it never goes over a broker's headroom, which is
measured anew with every whole reading of the cluster; it never goes under what producers write to the moves in progress.  Judged at every reading of log dirs, from what one look shows: how fast each broker's copies grew since the last reading, whether
a partition that is not ours fell out of sync, whether replicas that are not ours fall further behind.  When bystanders suffer
the rates halve at once; while a broker's copies use most of their rate it grows by a quarter; otherwise it stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from ballast.core.cluster import UNKNOWN, TopicPartition
from ballast.core.cluster.log_ends import Replica, lag
from ballast.core.guards import unhealthy_partitions
from ballast.core.throttles import follow
from ballast.executor.machine.observation import Picture
from ballast.executor.machine.run import AutoReading, Now, Run
from ballast.executor.machine.scheduling.speeds import broker_rates, max_rate, measure_traffic, min_rate, needed_rates
from ballast.executor.machine.stages import InFlight

LAG_GROWTH: Final = 2_000
"""Messages by which bystanders' lag must grow, besides doubling, before they count as suffering."""


def follow_cluster(run: Run, picture: Picture, now: Now) -> Run:
    """The run with rates for the time until the next reading; unchanged when there was no reading."""
    if not run.policy.auto:
        return run
    if picture.state is not None:
        run = run if picture.growth is None else measure_traffic(run, picture.state, picture.growth)
        run = replace(run, needed=needed_rates(run, picture.state))
    if picture.logs is None:
        return run
    last = run.auto
    reading = AutoReading(now.s, _arrived_bytes(run), _lags(run, picture), len(_unhealthy(run, picture)))
    if last is None or reading.at_s <= last.at_s:
        return replace(run, auto=reading)
    suffer = reading.unhealthy > last.unhealthy or falls_behind(last.lags, reading.lags)
    rates = {**run.rates, **_destinations(run, last, reading, suffer=suffer)}
    return replace(run, rates={**rates, **_sources(run, rates, reading)}, auto=reading)


def _destinations(run: Run, last: AutoReading, reading: AutoReading, *, suffer: bool) -> dict[int, int]:
    now_at = broker_rates(run, reading.arrived)
    out = {}
    for broker, arrived in reading.arrived.items():
        if not run.policy.follows(broker):
            continue
        out[broker] = follow(
            now_at[broker],
            used_bytes_per_s=max(0, arrived - last.arrived.get(broker, arrived)) / (reading.at_s - last.at_s),
            bystanders_suffer=suffer,
            minimum=min_rate(run, broker),
            maximum=max_rate(run, broker),
        )
    return out


def _sources(run: Run, rates: dict[int, int], reading: AutoReading) -> dict[int, int]:
    """A source that is no destination follows the fastest destination, so that it is not the tighter end."""
    top = max((rates[b] for b in reading.arrived if b in rates), default=None)
    if top is None:
        return {}
    sources = {b for m in run.moves_in(InFlight) if m.move.adding for b in m.move.old}
    return {b: min(top, max_rate(run, b)) for b in sources - reading.arrived.keys() if run.policy.follows(b)}


def _arrived_bytes(run: Run) -> dict[int, int]:
    """Bytes that have arrived at each destination, over all moves of the run."""
    out: dict[int, int] = {}
    for m in run.moves.values():
        for b in m.move.adding:
            share = m.copied_bytes // len(m.move.adding)
            out[b] = out.get(b, 0) + share
    busy = {b for m in run.moves_in(InFlight) for b in m.move.adding}
    return {b: n for b, n in out.items() if b in busy}


def _lags(run: Run, picture: Picture) -> dict[Replica, int]:
    """Messages that each follower of other partitions is behind its leader, where both told their log end."""
    if picture.ends is None or picture.state is None:
        return {}
    ours = {m.move.name for m in run.moves_in(InFlight)}
    state = picture.state
    leader = state.partitions.leader
    out = {}
    for broker, told in picture.ends.items():
        for name in told.keys() - ours:
            row = state.index.get(name)
            behind = UNKNOWN if row is None else lag(picture.ends, int(leader[row]), broker, name)
            if behind != UNKNOWN:
                out[name, broker] = behind
    return out


def falls_behind(before: Mapping[Replica, int], after: Mapping[Replica, int]) -> bool:
    """Is the sum of those that were read both times more than twice what it was, and more by ``LAG_GROWTH``?"""
    both = before.keys() & after.keys()
    return sum(after[r] for r in both) > 2 * sum(before[r] for r in both) + LAG_GROWTH


def _unhealthy(run: Run, picture: Picture) -> list[TopicPartition]:
    """Partitions that are under-replicated and not ours."""
    if picture.state is None:
        return []
    found = unhealthy_partitions(picture.state, {n: m.move for n, m in run.moves.items()})
    return [n for n in found.isr if n not in run.moves]
