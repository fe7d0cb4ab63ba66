"""What to do next: the half of the machine that chooses effects, from the run and one look at the cluster.

Order of concern: put back what was cancelled, cancel what must be, start what may start, keep the throttle true to what is in
flight, hold elections.  Nothing here waits: what cannot be done now is decided again at the next look.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice

from ballast.core import batches, guards
from ballast.core.cluster import ClusterState, TopicPartition
from ballast.core.guards import Verdict
from ballast.core.plan import Move
from ballast.core.throttles import (
    FOLLOWER_RATE,
    LEADER_RATE,
    LOG_DIR_RATE,
    Aim,
    Setting,
    brokers_involved,
    entries,
    shortfall,
)
from ballast.executor.absorb import misplaced
from ballast.executor.observation import Picture
from ballast.executor.run import (
    FINAL,
    HOLDS_THROTTLE,
    ElectionRun,
    ElectionStage,
    MoveRun,
    Now,
    Phase,
    Run,
    Stage,
    Status,
    with_moves,
)
from ballast.executor.transitions import Effect, EffectKind, elect_to, move_to

FULL_SHARE = 0.85
"""A disk fuller than this is relieved before anything else is done."""

RESEND_S = 5.0
"""A free change that was journaled and does not show is sent again after this long."""

LOG_DIRS_RIGHT = "Every replica is in the log dir asked for."
"""Set once, from a look at the log dirs; until then a move that names log dirs does not count as arrived."""

Step = tuple[Run, tuple[Effect, ...]]


def decide(run: Run, picture: Picture, now: Now) -> Step:
    """The run with its next transitions entered, and the effects that carry them out."""
    effects: list[Effect] = []
    run = _restore(run, picture, now, effects)
    run = _cancel(run, picture, now, effects)
    run = _start(run, picture, now, effects)
    run = _place(run, picture, now, effects)
    run = throttle(run, picture.alive, now, effects)
    run = _elect(run, now, effects)
    return _end(run, now), tuple(effects)


def _chunks(
    run: Run, targets: Mapping[TopicPartition, tuple[int, ...] | None]
) -> Iterator[dict[TopicPartition, tuple[int, ...] | None]]:
    items = iter(targets.items())
    while chunk := dict(islice(items, run.policy.submit_chunk)):
        yield chunk


def _restore(run: Run, picture: Picture, now: Now, effects: list[Effect]) -> Run:
    """A cancel may leave the old brokers in another order (and so another preferred leader): put it back, it is free."""
    changed = {}
    for name, m in run.moves.items():
        state = picture.partitions.get(name)
        if m.stage not in {Stage.CANCELLING, Stage.RESTORING} or state is None or name in picture.reassignments:
            continue
        if state.replicas != m.move.old and set(state.replicas) == set(m.move.old):
            if m.stage is Stage.CANCELLING:
                changed[name] = replace(move_to(m, Stage.RESTORING, now), retry_at_s=now.s + RESEND_S)
            elif m.retry_at_s <= now.s:
                # Intended and perhaps never sent: a process that died in between leaves it to the next one.
                changed[name] = replace(m, retry_at_s=now.s + RESEND_S)
    targets = {name: m.move.old for name, m in changed.items()}
    effects.extend(Effect(EffectKind.RESTORE, targets=c) for c in _chunks(run, targets))
    return with_moves(run, changed)


def _cancel(run: Run, picture: Picture, now: Now, effects: list[Effect]) -> Run:
    changed: dict[TopicPartition, MoveRun] = {}
    targets: dict[TopicPartition, tuple[int, ...] | None] = {}
    for name, m in run.moves.items():
        if run.phase is Phase.CANCELLING and m.stage in {Stage.PLANNED, Stage.THROTTLED}:
            outcome = "refused" if run.status is Status.REFUSED else "not-started"
            changed[name] = move_to(m, Stage.ROLLED_BACK, now, outcome=outcome, detail=m.detail)
        elif m.stage in {Stage.MOVING, Stage.STALLED} and _wants_cancel(run, m, now):
            state = picture.partitions.get(name)
            if m.retry_at_s > now.s or name not in picture.reassignments or state is None:
                continue
            if guards.cancel_is_safe(m.move.old, state.isr, picture.alive):
                changed[name] = replace(move_to(m, Stage.CANCELLING, now), retry_at_s=now.s + 5.0)
                targets[name] = None
            else:
                why = f"It is not cancelled: none of its old replicas {list(m.move.old)} is alive and in sync."
                changed[name] = replace(m, detail=why) if m.detail != why else m
    effects.extend(Effect(EffectKind.CANCEL, targets=c) for c in _chunks(run, targets))
    return with_moves(run, changed)


def _wants_cancel(run: Run, m: MoveRun, now: Now) -> bool:
    if run.phase is Phase.CANCELLING:
        return True
    patience = run.policy.cancel_stalled_after_s
    return m.stage is Stage.STALLED and patience is not None and now.s - m.entered_s >= patience


def _start(run: Run, picture: Picture, now: Now, effects: list[Effect]) -> Run:
    """Judge the waiting moves and start those that guards and caps let through."""
    state = picture.state
    waiting = [m for m in run.moves.values() if m.stage is Stage.PLANNED and m.retry_at_s <= now.s]
    if run.phase is not Phase.RUNNING or state is None or not waiting:
        return run
    active = [m for m in run.moves.values() if m.stage in HOLDS_THROTTLE]
    if run.policy.one_batch_at_a_time and (active or picture.reassignments):
        return run
    judgement = guards.judge(
        [m.move for m in waiting],
        state,
        ours={m.move.name: m.move for m in run.open_moves},
        incoming=_incoming(active),
        reserve_share=run.policy.disk_reserve_share,
        sick_neighbours=run.policy.guard_sick_neighbours,
    )
    run, verdicts = _too_slow(run, waiting, state, judgement.verdicts)
    run = _refuse(run, waiting, verdicts, active, now)
    ready = [m for m in waiting if m.move.name not in verdicts]
    chosen = _choose(run, ready=ready, active=active, state=state, picture=picture, room=judgement.room)
    changed: dict[TopicPartition, MoveRun] = {}
    for m in chosen:
        stage = Stage.THROTTLED if run.policy.throttled and m.move.adding else Stage.SUBMITTED
        if _only_log_dirs(m.move):
            stage = Stage.THROTTLED
        begun = move_to(m, stage, now)
        changed[m.move.name] = replace(begun, attempts=m.attempts + 1) if stage is Stage.SUBMITTED else begun
    run = with_moves(run, changed)
    direct = [m for m in changed.values() if m.stage is Stage.SUBMITTED]
    effects.extend(_preset(direct))
    effects.extend(submit(run, direct))
    return run


def _only_log_dirs(move: Move) -> bool:
    return move.old == move.new and move.log_dirs is not None


def _incoming(active: Iterable[MoveRun]) -> dict[int, int]:
    out: dict[int, int] = {}
    for m in active:
        for b in m.move.adding:
            out[b] = out.get(b, 0) + m.left_bytes // len(m.move.adding)
    return out


def broker_rates(run: Run, brokers: Iterable[int]) -> dict[int, int]:
    """The throttle of each broker, as this run sets it now."""
    rates = {b: run.rates.get(b, run.policy.rate(b)) for b in brokers}
    return {b: r for b, r in rates.items() if r is not None}


def _too_slow(
    run: Run, waiting: list[MoveRun], state: ClusterState, verdicts: Mapping[TopicPartition, Verdict]
) -> tuple[Run, dict[TopicPartition, Verdict]]:
    """Refuse, or raise, a rate that could not even keep up with what producers write."""
    out = dict(verdicts)
    if not run.policy.throttled or not run.inbound:
        return run, out
    rates = broker_rates(run, brokers_involved(m.move for m in waiting))
    raised = dict(run.rates)
    for m in waiting:
        inbound = run.inbound.get(m.move.name, 0.0)
        if m.move.name in out or inbound <= 0:
            continue
        leader = int(state.partitions.leader[state.index[m.move.name]])
        while (lack := shortfall(m.move, leader, inbound, rates)) is not None:
            if not (run.policy.raise_throttle or run.policy.throttle_auto):
                out[m.move.name] = Verdict(
                    "throttle-too-low", str(m.move.name), f"{lack}.", "Give a higher --throttle, or --raise-throttle."
                )
                break
            rates[lack.broker] = raised[lack.broker] = lack.needed_bytes_per_s
    return (replace(run, rates=raised) if raised != run.rates else run), out


def _refuse(
    run: Run, waiting: list[MoveRun], verdicts: Mapping[TopicPartition, Verdict], active: list[MoveRun], now: Now
) -> Run:
    """End the moves that are over, keep the other verdicts for people, and give up when patience has run out."""
    changed = {}
    for m in waiting:
        verdict = verdicts.get(m.move.name)
        if verdict is not None and verdict.ends:
            stage = Stage.VERIFIED if verdict.code == "already-there" else Stage.FAILED
            changed[m.move.name] = move_to(m, stage, now, outcome=verdict.code, detail=verdict.detail)
    held = tuple(dict.fromkeys(v for v in verdicts.values() if not v.ends))
    stuck = bool(held) and not active and all(m.move.name in verdicts for m in waiting)
    since = (run.refused_since_s if run.refused_since_s is not None else now.s) if stuck else None
    run = replace(with_moves(run, changed), verdicts=held, refused_since_s=since)
    patience = run.policy.refusal_patience_s
    if since is not None and patience is not None and now.s - since >= patience:
        details = {
            m.move.name: replace(m, detail=str(verdicts[m.move.name]))
            for m in waiting
            if m.move.name in verdicts and m.move.name not in changed
        }
        return replace(with_moves(run, details), phase=Phase.CANCELLING, status=Status.REFUSED)
    return run


def _choose(
    run: Run,
    *,
    ready: list[MoveRun],
    active: list[MoveRun],
    state: ClusterState,
    picture: Picture,
    room: Mapping[int, int],
) -> list[MoveRun]:
    policy = run.policy
    free = [m for m in ready if not m.move.adding and not _only_log_dirs(m.move)]
    free_active = sum(1 for m in active if not m.move.adding)
    chosen = free[: max(0, policy.free_batch - free_active)]
    if policy.one_batch_at_a_time and chosen:
        return _within_json(chosen, policy.batch_json_bytes)
    heavy = [m for m in ready if m.move.adding or _only_log_dirs(m.move)]
    if not heavy:
        return chosen
    caps = batches.Caps(
        moves_in_per_broker=policy.moves_in_per_broker,
        moves_out_per_broker=policy.moves_out_per_broker,
        moves_in_cluster=policy.moves_in_cluster,
        bytes_in_flight=policy.bytes_in_flight,
        json_bytes=policy.batch_json_bytes if policy.one_batch_at_a_time else None,
    )

    def load(m: MoveRun) -> batches.Load:
        row = state.index.get(m.move.name)
        leader = int(state.partitions.leader[row]) if row is not None else -1
        size = max(m.move.size_bytes, picture.sizes.get(m.move.name, 0), 0)
        left = m.left_bytes if m.total_bytes else size * len(m.move.adding)
        return batches.Load(m.move, leader, left, run.inbound.get(m.move.name, 0.0))

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
    for changes_count in (False, True):
        targets: dict[TopicPartition, tuple[int, ...] | None] = {
            m.move.name: m.move.new for m in listed if m.move.changes_replication_factor is changes_count
        }
        for chunk in _chunks(run, targets):
            yield Effect(EffectKind.SUBMIT, targets=chunk, allow_replication_factor_change=changes_count)


def _preset(moves: Iterable[MoveRun]) -> list[Effect]:
    """Tell destinations which log dir a replica is to be created in, before it is created."""
    wanted = {
        (m.move.name, broker): path
        for m in moves
        for broker, path in zip(m.move.new, m.move.log_dirs or (), strict=False)
        if path != "any" and broker in m.move.adding
    }
    return [Effect(EffectKind.PLACE, log_dirs=wanted)] if wanted else []


def submit_throttled(run: Run, now: Now) -> Step:
    """Once their throttle stands: submit the moves that waited for it."""
    changed: dict[TopicPartition, MoveRun] = {}
    standing = run.applied or {}
    places: dict[tuple[TopicPartition, int], str] = {}
    for name, m in run.moves.items():
        if m.stage is not Stage.THROTTLED:
            continue
        if _only_log_dirs(m.move):
            changed[name] = replace(move_to(m, Stage.RELOCATING, now), attempts=m.attempts + 1)
            places.update(
                {(name, b): path for b, path in zip(m.move.new, m.move.log_dirs or (), strict=False) if path != "any"}
            )
        elif all(wanted <= standing.get(s, frozenset()) for s, wanted in entries([m.move]).items()):
            changed[name] = replace(move_to(m, Stage.SUBMITTED, now), attempts=m.attempts + 1)
    run = with_moves(run, changed)
    submitted = [m for m in changed.values() if m.stage is Stage.SUBMITTED]
    effects = [*_preset(submitted), *submit(run, submitted)]
    if places:
        effects.insert(0, Effect(EffectKind.PLACE, log_dirs=places))
    return run, tuple(effects)


def _place(run: Run, picture: Picture, now: Now, effects: list[Effect]) -> Run:
    """Arrived on the right brokers, but not in the log dirs asked for; or asked for, and perhaps never sent."""
    changed: dict[TopicPartition, MoveRun] = {}
    places: dict[tuple[TopicPartition, int], str] = {}
    for name, m in run.moves.items():
        if m.move.log_dirs is None or picture.logs is None or m.retry_at_s > now.s:
            continue
        if m.stage not in {Stage.MOVED, Stage.RELOCATING}:
            continue
        wrong = misplaced(m, picture)
        if m.stage is Stage.RELOCATING:
            wrong = {b: path for b, path in wrong.items() if not _on_its_way(m, picture, b, path)}
        if not wrong:
            if m.stage is Stage.MOVED and m.detail != LOG_DIRS_RIGHT and all(b in picture.logs for b in m.move.new):
                changed[name] = replace(m, detail=LOG_DIRS_RIGHT)
            continue
        if m.attempts > run.policy.max_attempts:
            broker, path = next(iter(wrong.items()))
            detail = f"The replica on broker {broker} is not in {path} after {m.attempts} attempts."
            changed[name] = move_to(m, Stage.FAILED, now, outcome="log-dir", detail=detail)
            continue
        placed = move_to(m, Stage.RELOCATING, now) if m.stage is Stage.MOVED else m
        changed[name] = replace(placed, attempts=m.attempts + 1, retry_at_s=now.s + RESEND_S)
        places.update({(name, b): path for b, path in wrong.items()})
    if places:
        effects.append(Effect(EffectKind.PLACE, log_dirs=places))
    return with_moves(run, changed)


def _on_its_way(m: MoveRun, picture: Picture, broker: int, path: str) -> bool:
    """The broker is copying the replica to that log dir."""
    logs = (picture.logs or {}).get(broker)
    return logs is not None and any(r.is_future and r.log_dir == path for r in logs.replicas.get(m.move.name, ()))


def wanted_throttle(run: Run, alive: frozenset[int]) -> Aim:
    """The settings that are to stand while these moves are in flight.

    Rates stay on a broker between two moves of one run, so that they are not set and deleted for each; entries do not.
    A dead broker cannot be told a rate: it is left out unless its rate stands already.
    """
    holding = [m.move for m in run.moves.values() if m.stage in HOLDS_THROTTLE]
    aim: dict[Setting, frozenset[str]] = {}
    if run.policy.throttled:
        aim |= entries(holding)
        involved = brokers_involved(holding)
        waiting = brokers_involved(m.move for m in run.moves.values() if m.stage is Stage.PLANNED)
        for broker, rate in broker_rates(run, involved | waiting).items():
            for key in (LEADER_RATE, FOLLOWER_RATE):
                setting = Setting("broker", str(broker), key)
                stands = setting in (run.applied or {})
                if stands or (broker in alive and broker in involved):
                    aim[setting] = frozenset({str(rate)})
    if run.policy.log_dir_throttle_bytes_per_s is not None:
        value = frozenset({str(run.policy.log_dir_throttle_bytes_per_s)})
        for move in holding:
            if move.log_dirs is not None:
                aim |= {Setting("broker", str(b), LOG_DIR_RATE): value for b in move.new if b in alive}
    return aim


def throttle(run: Run, alive: frozenset[int], now: Now, effects: list[Effect]) -> Run:
    """Bring the throttle in line with what is in flight; moves that have arrived leave it."""
    arrived = {name: m for name, m in run.moves.items() if m.stage is Stage.MOVED and _log_dirs_settled(m)}
    ours = {n: m for n, m in arrived.items() if run.policy.throttled and m.move.adding}
    changed = {n: move_to(m, Stage.UNTHROTTLED if n in ours else Stage.VERIFIED, now) for n, m in arrived.items()}
    run = with_moves(run, changed)
    aim = wanted_throttle(run, alive)
    if aim != run.applied:
        before = run.applied or {}
        adds = any(wanted - before.get(s, frozenset()) for s, wanted in aim.items())
        if adds or run.applied is not None or _may_hold(run):
            effects.append(Effect(EffectKind.THROTTLE if adds else EffectKind.UNTHROTTLE, aim=aim))
            return run
        run = replace(run, applied=aim)
    if any(m.stage is Stage.THROTTLED for m in run.moves.values()):
        run, more = submit_throttled(run, now)
        effects.extend(more)
    return run


def _log_dirs_settled(m: MoveRun) -> bool:
    return m.move.log_dirs is None or m.detail == LOG_DIRS_RIGHT


def _may_hold(run: Run) -> bool:
    """After a restart only the ledger knows what stands; an effect with the whole aim settles it."""
    return run.policy.throttled or run.policy.log_dir_throttle_bytes_per_s is not None


def _elect(run: Run, now: Now, effects: list[Effect]) -> Run:
    if run.phase is not Phase.RUNNING:
        return run
    asked = sum(1 for e in run.elections.values() if e.stage is ElectionStage.ASKED)
    changed: dict[TopicPartition, ElectionRun] = {}
    for name, e in run.elections.items():
        if asked + len(changed) >= run.policy.election_batch:
            break
        m = run.moves.get(name)
        if e.stage is ElectionStage.WAITING and e.retry_at_s <= now.s and (m is None or m.stage in FINAL):
            changed[name] = elect_to(e, ElectionStage.ASKED, retry_at_s=now.s + run.policy.submit_grace_s)
    if changed:
        effects.append(Effect(EffectKind.ELECT, names=tuple(changed), unclean=run.unclean))
        return replace(run, elections={**run.elections, **changed})
    return run


def _end(run: Run, now: Now) -> Run:
    """The run is over when nothing is open and none of its throttle is wanted or known to stand."""
    open_elections = any(e.stage in {ElectionStage.WAITING, ElectionStage.ASKED} for e in run.elections.values())
    if run.ended or open_elections or run.applied or any(True for _ in run.open_moves):
        return run
    if run.applied is None and _may_hold(run):
        return run
    status = run.status
    if status is Status.OPEN:
        good = all(m.stage is Stage.VERIFIED for m in run.moves.values())
        held = all(e.stage is ElectionStage.HELD for e in run.elections.values())
        status = (
            Status.CANCELLED if run.phase is Phase.CANCELLING else Status.DONE if good and held else Status.INCOMPLETE
        )
    return replace(run, phase=Phase.ENDED, status=status, ended_ms=now.ms, verdicts=())
