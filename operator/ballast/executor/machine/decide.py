"""What to do next: the half of the machine that chooses effects, from the run and one look at the cluster.

Order of concern: put back what was cancelled, cancel what must be, start what may start, keep the throttle true to what is in
flight, run elections.  Nothing here waits: what cannot be done now is decided again at the next look.
"""

from __future__ import annotations

from dataclasses import replace

from ballast.core import guards
from ballast.core.cluster import UNKNOWN, TopicPartition
from ballast.core.cluster.min_isr import min_isr_of
from ballast.core.throttles import (
    FOLLOWER_RATE,
    LEADER_RATE,
    LOG_DIR_RATE,
    DesiredThrottles,
    Setting,
    brokers_involved,
    entries,
)
from ballast.executor.machine.notes import MoveNote, note
from ballast.executor.machine.observation import Picture
from ballast.executor.machine.observe import find_misplaced
from ballast.executor.machine.relocation import is_given_up, stop_copies
from ballast.executor.machine.run import (
    ElectionRun,
    ElectionStage,
    MoveRun,
    Now,
    Phase,
    Run,
    Status,
    with_moves,
)
from ballast.executor.machine.scheduling.room import only_log_dirs
from ballast.executor.machine.scheduling.schedule import chunks, preset, start, submit
from ballast.executor.machine.scheduling.speeds import broker_rates
from ballast.executor.machine.stages import (
    Cancelling,
    Ended,
    Failed,
    HoldsThrottle,
    Moved,
    Moving,
    Planned,
    Relocating,
    Restoring,
    RolledBack,
    Stalled,
    Submitted,
    Throttled,
    Unthrottled,
    Verified,
)
from ballast.executor.machine.transitions import Effect, EffectKind, elect_to, move_to
from ballast.ports.cluster import PartitionState

RESEND_S = 5.0
"""A free change that was journaled and does not show is sent again after this long."""

Step = tuple[Run, tuple[Effect, ...]]


def decide(run: Run, picture: Picture, now: Now) -> Step:
    """The run with its next transitions entered, and the effects that execute them."""
    effects: list[Effect] = []
    run = _restore(run, picture, now, effects)
    run = _cancel(run, picture, now, effects)
    run = start(run, picture, now, effects)
    run = _place(run, picture, now, effects)
    run = throttle(run, picture.alive, now, effects)
    run = _elect(run, now, effects)
    return _end(run, now), tuple(effects)


def _restore(run: Run, picture: Picture, now: Now, effects: list[Effect]) -> Run:
    """A cancel may leave the old brokers in another order (and so another preferred leader): put it back, it is free."""
    changed = {}
    for name, m in run.moves.items():
        if not isinstance(m.stage, Cancelling | Restoring) or name in picture.reassignments:
            continue
        state = picture.partitions.get(name)
        if state is None or state.replicas == m.move.old or set(state.replicas) != set(m.move.old):
            continue
        asked = Restoring(retry_at_s=now.s + RESEND_S)
        if isinstance(m.stage, Cancelling):
            changed[name] = replace(move_to(m, asked, now, m.note), attempts=1)
        elif m.stage.retry_at_s <= now.s and m.attempts < run.policy.max_attempts:
            # Intended and perhaps never sent: a process that died in between leaves it to the next one.
            changed[name] = replace(m, attempts=m.attempts + 1, stage=asked)
    targets = {name: m.move.old for name, m in changed.items()}
    effects.extend(Effect(EffectKind.RESTORE, targets=c) for c in chunks(run, targets))
    return with_moves(run, changed)


def _cancel(run: Run, picture: Picture, now: Now, effects: list[Effect]) -> Run:
    changed: dict[TopicPartition, MoveRun] = {}
    targets: dict[TopicPartition, tuple[int, ...] | None] = {}
    for name, m in run.moves.items():
        stage = m.stage
        if run.phase is Phase.CANCELLING and isinstance(stage, Planned | Throttled):
            outcome = "refused" if run.status is Status.REFUSED else "not-started"
            changed[name] = move_to(m, RolledBack(outcome), now, m.note)
        elif isinstance(stage, Moving | Stalled) and _wants_cancel(run, m, stage, now):
            state = picture.partitions.get(name)
            if stage.cancel_at_s > now.s or name not in picture.reassignments or state is None:
                continue
            back = stage.replicas_after_cancel or m.move.old
            why = _why_not_cancel(name, back, state, picture)
            if why is None:
                changed[name] = move_to(m, Cancelling(stage.replicas_after_cancel, stage.raced), now, m.note)
                targets[name] = None
            else:
                changed[name] = replace(m, note=why) if m.note != why else m
    effects.extend(Effect(EffectKind.CANCEL, targets=c) for c in chunks(run, targets))
    return with_moves(run, changed)


def _why_not_cancel(
    name: TopicPartition, back: tuple[int, ...], state: PartitionState, picture: Picture
) -> MoveNote | None:
    """Why the move is not cancelled now: the old replicas would have no leader, or refuse writes that are taken; None where it may be."""
    if not guards.cancel_is_safe(back, state.isr, picture.alive):
        return note("cancel-unsafe", replicas=back)
    needed = UNKNOWN if picture.state is None else min_isr_of(picture.state, name, len(back))
    if guards.cancel_stops_writes(back, state.isr, needed):
        in_sync = sum(b in state.isr for b in back)
        return note("cancel-below-min-isr", replicas=back, in_sync=in_sync, min_isr=needed)
    return None


def _wants_cancel(run: Run, m: MoveRun, stage: Moving | Stalled, now: Now) -> bool:
    if run.phase is Phase.CANCELLING or stage.raced:
        return True
    patience = run.policy.cancel_stalled_after_s
    return isinstance(stage, Stalled) and patience is not None and now.s - m.entered_s >= patience


def submit_throttled(run: Run, now: Now) -> Step:
    """Once their throttle stands: submit the moves that waited for it."""
    changed: dict[TopicPartition, MoveRun] = {}
    standing = run.applied or {}
    places: dict[tuple[TopicPartition, int], str] = {}
    for m in run.moves_in(Throttled):
        name = m.move.name
        if only_log_dirs(m.move):
            changed[name] = replace(move_to(m, Relocating(), now), attempts=m.attempts + 1)
            places.update(
                {(name, b): path for b, path in zip(m.move.new, m.move.log_dirs or (), strict=False) if path != "any"}
            )
        elif all(wanted <= standing.get(s, frozenset()) for s, wanted in entries([m.move]).items()):
            changed[name] = replace(move_to(m, Submitted(), now), attempts=m.attempts + 1)
    run = with_moves(run, changed)
    submitted = [m for m in changed.values() if isinstance(m.stage, Submitted)]
    effects = [*preset(submitted), *submit(run, submitted)]
    if places:
        effects.insert(0, Effect(EffectKind.ALTER_LOG_DIRS, log_dirs=places))
    return run, tuple(effects)


def _place(run: Run, picture: Picture, now: Now, effects: list[Effect]) -> Run:
    """Arrived on the right brokers, but not in the log dirs asked for; or asked for, and perhaps never sent."""
    changed: dict[TopicPartition, MoveRun] = {}
    places: dict[tuple[TopicPartition, int], str] = {}
    for name, m in run.moves.items():
        if m.move.log_dirs is None:
            continue
        match m.stage:
            case Relocating() as stage if run.phase is Phase.CANCELLING:
                changed[name] = stop_copies(m, replace(stage, given_up=False), picture, now, places)
            case Relocating() as stage if is_given_up(run, stage, now):
                changed[name] = stop_copies(m, replace(stage, given_up=True), picture, now, places)
            case Relocating(retry_at_s=at_s) if at_s > now.s:
                continue
            case Relocating() | Moved(in_log_dirs=False):
                changed[name] = _direct(run, m, picture, now, places)
    if places:
        effects.append(Effect(EffectKind.ALTER_LOG_DIRS, log_dirs=places))
    return with_moves(run, changed)


def _direct(run: Run, m: MoveRun, picture: Picture, now: Now, places: dict[tuple[TopicPartition, int], str]) -> MoveRun:
    """The move on its way into the log dirs asked for, with the orders that it takes in ``places``."""
    asked = m.move.named_dirs
    if picture.logs is None and not picture.alive.isdisjoint(asked):
        return m
    wrong, begun = find_misplaced(m, picture), isinstance(m.stage, Relocating)
    if begun:
        wrong = {b: path for b, path in wrong.items() if not _on_its_way(m, picture, b, path)}
    # What a broker that is down or unreachable holds is not known: it is waited for, by name, as for a copy.
    unknown = asked.keys() - (picture.logs or {}).keys()
    if not wrong and (begun or not unknown):
        return m if begun else replace(m, stage=Moved(in_log_dirs=True))
    if run.phase is Phase.CANCELLING:
        return move_to(m, Failed("log-dir"), now, note("log-dirs-cancelled"))
    if wrong and m.attempts > run.policy.max_attempts:
        broker, path = next(iter(wrong.items()))
        why = note("not-in-log-dir", broker=broker, path=path, attempts=m.attempts)
        return move_to(m, Failed("log-dir"), now, why)
    placed = m if begun else move_to(m, Relocating(), now)
    if not wrong or not isinstance(placed.stage, Relocating):
        return placed
    places.update({(m.move.name, b): path for b, path in wrong.items()})
    return replace(placed, attempts=m.attempts + 1, stage=replace(placed.stage, retry_at_s=now.s + RESEND_S))


def _on_its_way(m: MoveRun, picture: Picture, broker: int, path: str) -> bool:
    """The broker is copying the replica to that log dir."""
    logs = (picture.logs or {}).get(broker)
    return logs is not None and any(r.is_future and r.log_dir == path for r in logs.replicas.get(m.move.name, ()))


def wanted_throttle(run: Run, alive: frozenset[int]) -> DesiredThrottles:
    """The settings that are to stand while these moves are in progress.

    Rates stay on a broker between two moves of one run, so that they are not set and deleted for each; entries do not.
    A down broker cannot be told a rate: it is left out unless its rate stands already.
    """
    holding = [m.move for m in run.moves_in(HoldsThrottle)]
    desired: dict[Setting, frozenset[str]] = {}
    if run.policy.throttled:
        desired |= entries(holding)
        involved = brokers_involved(holding)
        waiting = brokers_involved(m.move for m in run.moves_in(Planned))
        # Where moves of others run under their rate, it stays: what of ours must go on there shares it.
        theirs = set() if run.policy.override_rates_of_others else run.rates_of_others.keys()
        for broker, rate in broker_rates(run, involved | waiting).items():
            for key in (LEADER_RATE, FOLLOWER_RATE):
                setting = Setting("broker", str(broker), key)
                stands = setting in (run.applied or {})
                if stands or (broker in alive and broker in involved and broker not in theirs):
                    desired[setting] = frozenset({str(rate)})
    if run.policy.log_dir_throttle_bytes_per_s is not None:
        value = frozenset({str(run.policy.log_dir_throttle_bytes_per_s)})
        for move in holding:
            if move.log_dirs is not None:
                desired |= {Setting("broker", str(b), LOG_DIR_RATE): value for b in move.new if b in alive}
    return desired


def throttle(run: Run, alive: frozenset[int], now: Now, effects: list[Effect]) -> Run:
    """Bring the throttle in line with what is in progress; moves that have arrived leave it."""
    changed = {}
    for m in run.moves.values():
        if isinstance(m.stage, Moved) and (m.move.log_dirs is None or m.stage.in_log_dirs):
            ours = run.policy.throttled and m.move.adding
            changed[m.move.name] = move_to(m, Unthrottled() if ours else Verified(), now)
    run = with_moves(run, changed)
    desired = wanted_throttle(run, alive)
    if desired != run.applied:
        before = run.applied or {}
        adds = any(wanted - before.get(s, frozenset()) for s, wanted in desired.items())
        if adds or run.applied is not None or _may_hold(run):
            effects.append(Effect(EffectKind.THROTTLE if adds else EffectKind.UNTHROTTLE, desired=desired))
            return run
        run = replace(run, applied=desired)
    if any(isinstance(m.stage, Throttled) for m in run.moves.values()):
        run, more = submit_throttled(run, now)
        effects.extend(more)
    return run


def _may_hold(run: Run) -> bool:
    """After a restart only the ledger knows what stands; an effect with all desired throttles settles it."""
    throttled = run.policy.throttled and any(m.move.adding for m in run.moves.values())
    return throttled or run.policy.log_dir_throttle_bytes_per_s is not None


def _elect(run: Run, now: Now, effects: list[Effect]) -> Run:
    if run.phase is not Phase.RUNNING:
        return run
    asked = sum(1 for e in run.elections.values() if e.stage is ElectionStage.REQUESTED)
    changed: dict[TopicPartition, ElectionRun] = {}
    for name, e in run.elections.items():
        if asked + len(changed) >= run.policy.election_batch:
            break
        m = run.moves.get(name)
        if e.stage is ElectionStage.WAITING and e.retry_at_s <= now.s and (m is None or isinstance(m.stage, Ended)):
            changed[name] = elect_to(e, ElectionStage.REQUESTED, retry_at_s=now.s + run.policy.submit_grace_s)
    if changed:
        effects.append(Effect(EffectKind.ELECT, names=tuple(changed), unclean=run.unclean))
        return replace(run, elections={**run.elections, **changed})
    return run


def _end(run: Run, now: Now) -> Run:
    """The run is over when nothing is open and none of its throttle is wanted or known to stand."""
    open_elections = any(e.stage in {ElectionStage.WAITING, ElectionStage.REQUESTED} for e in run.elections.values())
    if run.ended or open_elections or run.applied or any(True for _ in run.open_moves):
        return run
    if run.applied is None and _may_hold(run):
        return run
    status = run.status
    if status is Status.OPEN:
        good = all(isinstance(m.stage, Verified) for m in run.moves.values())
        completed = all(e.stage is ElectionStage.COMPLETED for e in run.elections.values())
        status = (
            Status.CANCELLED
            if run.phase is Phase.CANCELLING
            else Status.DONE
            if good and completed
            else Status.INCOMPLETE
        )
    return replace(run, phase=Phase.ENDED, status=status, ended_ms=now.ms, verdicts=())
