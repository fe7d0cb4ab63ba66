"""Which moves start now: guards, caps and the throttle's arithmetic, from the run and one look at the cluster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Final

from ballast.core import guards
from ballast.core.cluster import UNKNOWN, ClusterState, TopicPartition
from ballast.core.guards import Verdict, verdict
from ballast.core.plan import Move, Place
from ballast.core.throttles import RateShortfall, brokers_involved, shortfall
from ballast.executor.machine.notes import note
from ballast.executor.machine.observation import Picture, target
from ballast.executor.machine.run import MoveRun, Now, Phase, Run, Status, with_moves
from ballast.executor.machine.scheduling import batches
from ballast.executor.machine.scheduling.room import bytes_to_arrive, only_log_dirs, size_of
from ballast.executor.machine.scheduling.speeds import broker_rates, max_rate
from ballast.executor.machine.stages import (
    Failed,
    HoldsThrottle,
    Planned,
    Submitted,
    Throttled,
    Verified,
)
from ballast.executor.machine.transitions import Effect, EffectKind, move_to
from ballast.ports.journal import STANDS_ON

FULL_SHARE: Final = 0.85
"""A disk fuller than this is relieved before anything else is done."""


def chunks(
    run: Run, targets: Mapping[TopicPartition, tuple[int, ...] | None]
) -> Iterator[dict[TopicPartition, tuple[int, ...] | None]]:
    """Pieces that the controller takes in one request."""
    items = iter(targets.items())
    while chunk := dict(islice(items, run.policy.submit_chunk)):
        yield chunk


def start(run: Run, picture: Picture, now: Now, effects: list[Effect]) -> Run:
    """Judge waiting moves and start those that guards and caps let through."""
    state = picture.state
    waiting = [m for m in run.moves.values() if isinstance(m.stage, Planned) and m.stage.retry_at_s <= now.s]
    if run.phase is not Phase.RUNNING or state is None or not waiting:
        return run
    active = run.moves_in(HoldsThrottle)
    if run.policy.one_batch_at_a_time and active:
        return run
    if run.policy.one_batch_at_a_time and picture.reassignments:
        return _refuse(run, waiting, _in_the_way(waiting, picture), active, now)
    more = bytes_to_arrive(run, picture)
    room = guards.rooms(state, more.bytes, run.policy.disk_reserve_fraction)
    behind = refuse_out_of_turn(run, picture, state, room)

    def choose(ready: list[MoveRun]) -> list[MoveRun]:
        turn = select_next(ready, active)
        return _choose(run, ready=turn, active=active, state=state, picture=picture, room=room)

    def judge(run: Run, moves: list[MoveRun]) -> tuple[Run, dict[TopicPartition, Verdict]]:
        return _judge(run, moves, picture=picture, state=state, room=room, unsized=more.unsized)

    # Judging ten thousand moves at each look to start a dozen would be waste: those that would start are judged, and all
    # the others only when one of these is refused.
    chosen = choose([m for m in waiting if m.move.name not in behind])
    if not chosen and active and not run.verdicts:
        return run
    run, verdicts = judge(run, chosen)
    if verdicts or not chosen:
        run, verdicts = judge(run, waiting)
        verdicts = behind | verdicts
        run = _refuse(run, waiting, verdicts, active, now)
        chosen = choose([m for m in waiting if m.move.name not in verdicts])
    else:
        run = _refuse(run, chosen, {}, active, now)
    return _begin(run, chosen, now, effects)


def select_next(ready: list[MoveRun], active: list[MoveRun]) -> list[MoveRun]:
    """The moves whose turn it is: those of the journal's own topics only when no other can start or is on its way.

    Until then all that the run learns of the others is written where nothing is changing.  A move that has stalled may stand
    still for days and holds nothing up.
    """
    others = [m for m in ready if m.move.topic not in STANDS_ON]
    busy = any(m.move.topic not in STANDS_ON and m.cause is None for m in active)
    return others if others or busy else ready


def _in_the_way(waiting: list[MoveRun], picture: Picture) -> dict[TopicPartition, Verdict]:
    """Where only one batch may be in progress, a foreign one holds up every move of ours; it is named and waited for."""
    foreign = min(picture.reassignments)
    busy = verdict("another-batch", foreign, partition=foreign, others=len(picture.reassignments) - 1)
    return dict.fromkeys((m.move.name for m in waiting), busy)


def _begin(run: Run, chosen: list[MoveRun], now: Now, effects: list[Effect]) -> Run:
    changed: dict[TopicPartition, MoveRun] = {}
    for m in chosen:
        held = run.policy.throttled and bool(m.move.adding)
        if held or only_log_dirs(m.move):
            changed[m.move.name] = move_to(m, Throttled(), now)
        else:
            changed[m.move.name] = replace(move_to(m, Submitted(), now), attempts=m.attempts + 1)
    run = with_moves(run, changed)
    direct = [m for m in changed.values() if isinstance(m.stage, Submitted)]
    effects.extend(preset(direct))
    effects.extend(submit(run, direct))
    return run


def _judge(
    run: Run,
    moves: list[MoveRun],
    *,
    picture: Picture,
    state: ClusterState,
    room: Mapping[Place, int],
    unsized: Mapping[int, TopicPartition],
) -> tuple[Run, dict[TopicPartition, Verdict]]:
    """Guards, the controller's fresh list of moves, and the throttle's arithmetic."""
    verdicts = guards.judge(
        [m.move for m in moves],
        state,
        ours={m.move.name: m.move for m in run.open_moves},
        room=room,
        unsized=unsized,
        sizes=picture.sizes,
        under_replicated_neighbours=run.policy.guard_under_replicated_neighbours,
        allow_unknown_disk_space=run.policy.unknown_disk_space == "allow",
        allow_replicas_below_min_isr=run.policy.replicas_below_min_isr == "allow",
    )
    for m in moves:
        listed = picture.reassignments.get(m.move.name)
        foreign = guards.in_flight(m.move, target(listed)) if listed is not None else None
        if foreign is not None:
            verdicts[m.move.name] = foreign
        elif m.move.name not in verdicts and (theirs := _under_their_rate(run, m.move, state)) is not None:
            verdicts[m.move.name] = theirs
    return _too_slow(run, moves, state, verdicts)


def _under_their_rate(run: Run, move: Move, state: ClusterState) -> Verdict | None:
    """A broker of this move throttles foreign reassignments: setting our rate there, or copying beside them, would slow them."""
    policy = run.policy
    if not policy.throttled or policy.keep_existing_rates or policy.override_rates_of_others:
        return None
    busy = sorted(brokers_involved([move]) & run.rates_of_others.keys())
    if not busy or guards.repairs(move, state, state.index[move.name]):
        return None
    rate = run.rates_of_others[busy[0]]
    return verdict("foreign-throttle", busy[0], broker=busy[0], rate_bytes_per_s=rate, partition=move.name)


def _too_slow(
    run: Run, waiting: list[MoveRun], state: ClusterState, verdicts: Mapping[TopicPartition, Verdict]
) -> tuple[Run, dict[TopicPartition, Verdict]]:
    """Refuse, or raise, a rate that could not even keep up with what producers write."""
    out = dict(verdicts)
    if not run.policy.throttled or not run.inbound:
        return run, out
    rates = broker_rates(run, brokers_involved(m.move for m in waiting))
    if not run.policy.override_rates_of_others:
        rates |= {b: rate for b, rate in run.rates_of_others.items() if b in rates}
    raised = dict(run.rates)
    for m in waiting:
        inbound = run.inbound.get(m.move.name, 0.0)
        if m.move.name in out or inbound <= 0:
            continue
        leader = int(state.partitions.leader[state.index[m.move.name]])
        while (lack := shortfall(m.move, leader, inbound, rates)) is not None:
            if (refusal := _not_raised(run, lack)) is not None:
                out[m.move.name] = refusal
                break
            rates[lack.broker] = raised[lack.broker] = lack.needed_bytes_per_s
    return (replace(run, rates=raised) if raised != run.rates else run), out


def _not_raised(run: Run, lack: RateShortfall) -> Verdict | None:
    """Why this rate is not raised to what the move needs; None where it is."""
    low = partial(verdict, "throttle-too-low", lack.name, lack=lack)
    if lack.broker in run.rates_of_others and not run.policy.override_rates_of_others:
        return low(cause="foreign")
    most = max_rate(run, lack.broker)
    follows = run.policy.follows(lack.broker)
    if follows and lack.needed_bytes_per_s > most:
        return low(cause="headroom", max_bytes_per_s=most)
    return None if follows or run.policy.raise_throttle else low()


def _refuse(
    run: Run, waiting: list[MoveRun], verdicts: Mapping[TopicPartition, Verdict], active: list[MoveRun], now: Now
) -> Run:
    """End the moves that are over, keep the other verdicts for people, and give up at the guard timeout."""
    changed = {}
    for m in waiting:
        found = verdicts.get(m.move.name)
        if found is not None and found.ends:
            ended = Verified if found.code == "already-there" else Failed
            changed[m.move.name] = move_to(m, ended(found.code), now, note("guard", verdict=found))
    held = tuple(dict.fromkeys(v for v in verdicts.values() if not v.ends))
    stuck = bool(held) and not active and all(m.move.name in verdicts for m in waiting)
    since = (run.refused_since_s if run.refused_since_s is not None else now.s) if stuck else None
    run = replace(with_moves(run, changed), verdicts=held, refused_since_s=since)
    timeout_s = run.policy.guard_timeout_s
    if since is not None and timeout_s is not None and now.s - since >= timeout_s:
        told = {
            m.move.name: replace(m, note=note("guard-for-too-long", verdict=verdicts[m.move.name]))
            for m in waiting
            if m.move.name in verdicts and m.move.name not in changed
        }
        return replace(with_moves(run, told), phase=Phase.CANCELLING, status=Status.REFUSED)
    return run


def _choose(
    run: Run,
    *,
    ready: list[MoveRun],
    active: list[MoveRun],
    state: ClusterState,
    picture: Picture,
    room: Mapping[Place, int],
) -> list[MoveRun]:
    policy = run.policy
    free = [m for m in ready if not m.move.adding and not only_log_dirs(m.move)]
    free_active = sum(1 for m in active if not m.move.adding)
    chosen = free[: max(0, policy.no_copy_batch - free_active)]
    if policy.one_batch_at_a_time and chosen:
        return _within_json(chosen, policy.batch_json_bytes)
    heavy = [m for m in ready if m.move.adding or only_log_dirs(m.move)]
    if not heavy:
        return chosen
    caps = batches.Caps(
        moves_in_per_broker=policy.moves_in_per_broker,
        moves_out_per_broker=policy.moves_out_per_broker,
        moves_at_once=policy.moves_at_once,
        bytes_at_once=policy.bytes_at_once,
        json_bytes=policy.batch_json_bytes if policy.one_batch_at_a_time else None,
    )

    def load(m: MoveRun) -> batches.Load:
        row = state.index.get(m.move.name)
        leader = int(state.partitions.leader[row]) if row is not None else -1
        known = picture.sizes.get(m.move.name, UNKNOWN)
        size = max(m.move.size_bytes, known, 0)
        copies = len(m.move.adding or m.move.named_dirs)
        left = size * copies if m.total_bytes is None else m.left_bytes
        unknown = m.total_bytes is None and copies > 0 and max(m.move.size_bytes, known) < 0
        return batches.Load(m.move, leader, left, run.inbound.get(m.move.name, 0.0), unknown)

    picked = batches.choose(
        [load(m) for m in heavy],
        [load(m) for m in active if m.move.adding],
        caps,
        rates=broker_rates(run, brokers_involved(m.move for m in (*heavy, *active))),
        room=room,
        full=_full(state),
    )
    return [*chosen, *(run.moves[m.name] for m in picked)]


def _within_json(moves: list[MoveRun], limit: int) -> list[MoveRun]:
    out: list[MoveRun] = []
    used = 60
    for m in moves:
        used += batches.json_bytes(m.move)
        if used > limit and out:
            break
        out.append(m)
    return out


def _full(state: ClusterState) -> frozenset[int]:
    return frozenset(
        b.id
        for b in state.brokers
        if b.capacity_bytes > 0 and b.usable_bytes >= 0 and 1 - b.usable_bytes / b.capacity_bytes > FULL_SHARE
    )


def submit(run: Run, moves: Iterable[MoveRun]) -> Iterator[Effect]:
    """Submissions in chunks, moves that change the replica count apart from the rest."""
    listed = list(moves)
    may_change = run.policy.replication_factor_change == "allow"
    for changes_count in (False, True):
        targets: dict[TopicPartition, tuple[int, ...] | None] = {
            m.move.name: m.move.new for m in listed if m.move.changes_replication_factor is changes_count
        }
        for chunk in chunks(run, targets):
            yield Effect(EffectKind.SUBMIT, targets=chunk, allow_replication_factor_change=changes_count and may_change)


def preset(moves: Iterable[MoveRun]) -> list[Effect]:
    """Tell destinations which log dir a replica is to be created in, before it is created."""
    wanted = {
        (m.move.name, broker): path
        for m in moves
        for broker, path in zip(m.move.new, m.move.log_dirs or (), strict=False)
        if path != "any" and broker in m.move.adding
    }
    return [Effect(EffectKind.ALTER_LOG_DIRS, log_dirs=wanted)] if wanted else []


def refuse_out_of_turn(
    run: Run, picture: Picture, state: ClusterState, room: Mapping[Place, int]
) -> dict[TopicPartition, Verdict]:
    """In a run in order, the waiting moves that would take room that waiting moves before them need.

    What is left fits beside them all, however many of it start at once.  So no two moves ever wait for each other: the first that
    waits has its room as soon as those before it have ended, whatever has gone before its turn.  Repairs never wait for others.
    """
    out: dict[TopicPartition, Verdict] = {}
    needed: dict[Place, int] = {}
    for m in run.moves_in(Planned) if run.in_order else ():
        size = max(size_of(m, picture), 0)
        for broker, place in ((b, place) for b in m.move.adding for place in m.move.places(b)):
            if place not in room:
                continue
            needed[place] = needed.get(place, 0) + size
            if size <= room[place] < needed[place] and size and not _repairs(m.move, state):
                out[m.move.name] = verdict("space-reserved", broker, broker=broker, partition=m.move.name)
    return out


def _repairs(move: Move, state: ClusterState) -> bool:
    row = state.index.get(move.name)
    return row is not None and guards.repairs(move, state, row)
