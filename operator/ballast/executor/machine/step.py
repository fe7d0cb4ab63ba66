"""The pure state machine of a run: ``(run, event, now) -> (run, effects)``.

``TRANSITIONS`` (in ``transitions``, shown here again) is the one table of what may follow what.  The machine knows no
clock, no port and no client: the driver tells it what was seen (``Observed``), what came of an effect (``Performed``, or
``Unanswered`` when that cannot be known), and what a person wants (``CommandRequested``); it answers with the next run and the effects to
perform, in order.  The invariant that makes a crash harmless at any point: a transition with an effect is entered, and
journaled, before the effect is sent, and every stage in which an effect may have been sent is resolved by looking at the
cluster, never by memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from ballast.core.cluster import TopicPartition
from ballast.core.throttles import Setting
from ballast.executor.machine.auto import follow_cluster
from ballast.executor.machine.decide import Step, decide, submit_throttled
from ballast.executor.machine.notes import note
from ballast.executor.machine.observation import Needs, Picture
from ballast.executor.machine.observe import observe
from ballast.executor.machine.run import ElectionStage, MoveRun, Now, Phase, Run, with_moves
from ballast.executor.machine.scheduling.speeds import measure_late
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
    Stage,
    Submitted,
    Throttled,
)
from ballast.executor.machine.transitions import (
    ELECTION_TRANSITIONS,
    OUTCOMES,
    TRANSITIONS,
    Effect,
    EffectKind,
    elect_to,
    move_to,
)
from ballast.ports.cluster import Outcome

RETRY_S: Final = 2.0
"""First wait before a refused step is tried again; doubles with each attempt."""

HOPELESS: Final = frozenset(
    {
        "INVALID_REPLICA_ASSIGNMENT",
        "INVALID_REPLICATION_FACTOR",
        "INVALID_REQUEST",
        "TOPIC_AUTHORIZATION_FAILED",
        "CLUSTER_AUTHORIZATION_FAILED",
        "UNSUPPORTED_VERSION",
        "POLICY_VIOLATION",
        "LOG_DIR_NOT_FOUND",
        "INELIGIBLE_REPLICA",
    }
)
"""Kafka's errors that trying again does not cure."""
HOPELESS_AGAIN_S: Final = 300.0
"""A cancel that cannot be cured by asking again is asked for this much later all the same: a right may be granted meanwhile."""
CHANGED_MEANWHILE: Final = "CHANGED_MEANWHILE"
"""Ours, for what was not sent since it is no longer as it was judged."""
NOT_BEGUN: Final = frozenset({CHANGED_MEANWHILE, "REASSIGNMENT_IN_PROGRESS"})
"""What says that a move was not begun, and may be tried again; after any other failure it may have been."""
GONE: Final = frozenset({"UNKNOWN_TOPIC_OR_PARTITION", "UNKNOWN_TOPIC_ID"})


class Command(StrEnum):
    """What a person can ask of a run in progress."""

    CANCEL = "cancel"
    ROLLBACK = "rollback"
    PAUSE = "pause"
    RESUME = "resume"


@dataclass(frozen=True, slots=True)
class Observed:
    """A look at the cluster."""

    picture: Picture


@dataclass(frozen=True, slots=True)
class Performed:
    """The cluster answered an effect."""

    effect: Effect
    outcomes: Mapping[TopicPartition, Outcome] = field(default_factory=dict)
    """Per partition; for PLACE, the first failure of each partition."""
    failed: Mapping[Setting, Outcome] = field(default_factory=dict)
    """THROTTLE and UNTHROTTLE: the settings that could not be changed."""


@dataclass(frozen=True, slots=True)
class Unanswered:
    """An effect was sent and no answer came: it may or may not have happened."""

    effect: Effect
    reason: str


@dataclass(frozen=True, slots=True)
class CommandRequested:
    """A person, or the policy, wants something of the run."""

    command: Command
    by: str = ""
    """Who asked, and why where they said so."""


Event = Observed | Performed | Unanswered | CommandRequested


def step(run: Run, event: Event, now: Now) -> Step:
    """The next run and the effects to perform, in order."""
    if run.ended:
        return run, ()
    match event:
        case Observed(picture):
            seen = measure_late(observe(run, picture, now), picture.growth or {})
            return decide(follow_cluster(seen, picture, now), picture, now)
        case Performed(effect, outcomes, failed):
            return _perform(run, effect, outcomes, failed, now)
        case Unanswered(effect):
            return _leave_unanswered(run, effect, now), ()
        case CommandRequested(command, by):
            return _ask(run, command, by), ()


def needs(run: Run) -> Needs:
    """What the next look has to cover for this run to go on."""
    watched = {n for n, m in run.moves.items() if not isinstance(m.stage, Planned | Ended)}
    logs = {
        b
        for m in run.moves.values()
        if isinstance(m.stage, HoldsThrottle)
        or (isinstance(m.stage, Moved) and m.move.log_dirs is not None)
        # A move that waits for room begins as soon as there is some.
        or (isinstance(m.stage, Planned) and run.in_order)
        # Where log dirs are asked for, every replica's place counts, not only the new ones'.
        for b in (m.move.new if m.move.log_dirs is not None else m.move.adding or m.move.new)
    }
    return Needs(frozenset(watched), frozenset(logs))


def _ask(run: Run, command: Command, by: str) -> Run:
    if command in {Command.CANCEL, Command.ROLLBACK} and not run.stopped_by:
        run = replace(run, stopped_by=by)
    if run.phase is Phase.CANCELLING:
        return replace(run, rollback_when_cancelled=run.rollback_when_cancelled or command is Command.ROLLBACK)
    match command:
        case Command.CANCEL:
            return replace(run, phase=Phase.CANCELLING)
        case Command.ROLLBACK:
            return replace(run, phase=Phase.CANCELLING, rollback_when_cancelled=True)
        case Command.PAUSE:
            return replace(run, phase=Phase.PAUSED, verdicts=(), refused_since_s=None)
        case Command.RESUME:
            return replace(run, phase=Phase.RUNNING)


def _perform(
    run: Run,
    effect: Effect,
    outcomes: Mapping[TopicPartition, Outcome],
    failed: Mapping[Setting, Outcome],
    now: Now,
) -> Step:
    match effect.kind:
        case EffectKind.THROTTLE | EffectKind.UNTHROTTLE:
            return _throttle(run, effect, failed, now)
        case EffectKind.ELECT:
            return _elect(run, effect, outcomes, now), ()
        case _:
            known = {n: (run.moves[n], outcome) for n, outcome in outcomes.items() if n in run.moves}
            changed = {
                n: _answer(run, effect.kind, m, outcome, now) for n, (m, outcome) in known.items() if not outcome.ok
            }
            if effect.kind is EffectKind.CANCEL:
                changed |= {n: _acknowledge(m) for n, (m, outcome) in known.items() if outcome.ok}
            return with_moves(run, changed), ()


def _acknowledge(m: MoveRun) -> MoveRun:
    return replace(m, stage=replace(m.stage, acknowledged=True)) if isinstance(m.stage, Cancelling) else m


def _answer(run: Run, kind: EffectKind, m: MoveRun, outcome: Outcome, now: Now) -> MoveRun:
    """The cluster said no to one partition."""
    said = note("answer", answer=outcome)
    hopeless = outcome.code in HOPELESS or m.attempts >= run.policy.max_attempts
    again = now.s + RETRY_S * 2 ** max(m.attempts - 1, 0)
    match kind, m.stage:
        case EffectKind.SUBMIT, Submitted() if outcome.code not in GONE | HOPELESS | NOT_BEGUN:
            # It may have been taken all the same: the next looks say how.
            m = replace(m, unconfirmed=True, note=said)
        case EffectKind.SUBMIT, Submitted() if outcome.code in GONE or hopeless:
            return move_to(m, Failed("deleted" if outcome.code in GONE else "rejected"), now, said)
        case EffectKind.SUBMIT, Submitted():
            return move_to(m, Planned(retry_at_s=again), now, said)
        case EffectKind.CANCEL, Cancelling() as stage if outcome.code in HOPELESS | {CHANGED_MEANWHILE}:
            # With any other code it may have ended, or been cancelled all the same: the next looks say how.
            later = now.s + HOPELESS_AGAIN_S if outcome.code in HOPELESS else again
            on = Moving(replicas_after_cancel=stage.replicas_after_cancel, raced=stage.raced, cancel_at_s=later)
            return move_to(m, on, now, note("cancel-refused", answer=outcome))
        case EffectKind.RESTORE, Restoring():
            return replace(m, note=note("order-refused", answer=outcome))
        case EffectKind.ALTER_LOG_DIRS, Relocating():
            return move_to(m, Failed("log-dir"), now, said) if hopeless else replace(m, note=said)
    return m


def _throttle(run: Run, effect: Effect, failed: Mapping[Setting, Outcome], now: Now) -> Step:
    """Moves whose throttle stands are submitted at once; those whose throttle could not be set go back and wait."""
    run = replace(run, applied={s: v for s, v in effect.desired.items() if s not in failed})
    topics = {s.name: o for s, o in failed.items() if s.kind == "topic" and effect.desired.get(s)}
    brokers = {int(s.name): o for s, o in failed.items() if s.kind == "broker" and effect.desired.get(s)}
    changed: dict[TopicPartition, MoveRun] = {}
    for m in run.moves_in(Throttled):
        hit = topics.get(m.move.topic) or next((brokers[b] for b in m.move.adding if b in brokers), None)
        if hit is not None:
            changed[m.move.name] = _not_throttled(run, m, hit, now)
    return submit_throttled(with_moves(run, changed), now)


def _not_throttled(run: Run, m: MoveRun, hit: Outcome, now: Now) -> MoveRun:
    said = note("throttle-refused", answer=hit)
    attempts = m.attempts + 1
    if attempts >= run.policy.max_attempts:
        return replace(move_to(m, Failed("throttle-not-set"), now, said), attempts=attempts)
    back = Planned(retry_at_s=now.s + RETRY_S * 2**m.attempts)
    return replace(move_to(m, back, now, said), attempts=attempts)


def _elect(run: Run, effect: Effect, outcomes: Mapping[TopicPartition, Outcome], now: Now) -> Run:
    changed = {}
    for name in effect.names:
        e = run.elections[name]
        outcome = outcomes.get(name)
        if e.stage is not ElectionStage.REQUESTED or outcome is None:
            continue
        said = note("answer", answer=outcome)
        if outcome.ok:
            changed[name] = elect_to(e, ElectionStage.COMPLETED)
        elif outcome.code in GONE | HOPELESS or e.attempts >= run.policy.max_attempts:
            changed[name] = elect_to(e, ElectionStage.FAILED, said)
        else:
            wait = now.s + RETRY_S * 2 ** max(e.attempts - 1, 0)
            changed[name] = elect_to(e, ElectionStage.WAITING, said, retry_at_s=wait)
    return replace(run, elections={**run.elections, **changed}) if changed else run


def _leave_unanswered(run: Run, effect: Effect, now: Now) -> Run:
    """It is unknown whether it happened: throttles are settled anew, all else is left to the next look."""
    match effect.kind:
        case EffectKind.THROTTLE | EffectKind.UNTHROTTLE:
            # Moves that waited for it are judged again: how long the cluster will not answer is unknown.
            back = {m.move.name: move_to(m, Planned(), now, m.note) for m in run.moves_in(Throttled)}
            return with_moves(replace(run, applied=None), back)
        case EffectKind.SUBMIT:
            return with_moves(run, {n: replace(run.moves[n], unconfirmed=True) for n in effect.targets})
        case EffectKind.RESTORE:
            # Silence is no refusal, and does not count as one: the old order is asked for until the cluster answers.
            unheard = {n: m for n in effect.targets if isinstance((m := run.moves[n]).stage, Restoring)}
            anew = Restoring(retry_at_s=now.s)
            again = {n: replace(m, attempts=max(0, m.attempts - 1), stage=anew) for n, m in unheard.items()}
            return with_moves(run, again)
        case _:
            return run


__all__ = [
    "ELECTION_TRANSITIONS",
    "OUTCOMES",
    "TRANSITIONS",
    "Command",
    "CommandRequested",
    "Effect",
    "EffectKind",
    "Event",
    "Observed",
    "Performed",
    "Run",
    "Stage",
    "Unanswered",
    "needs",
    "step",
]
