"""What a look at the cluster means for each move: the half of the machine that believes the cluster.

Two sources are weighed: the controller's list of reassignments, which is exact, and metadata, which may lag behind it.  A
move has ended only when both say so; while they disagree nothing is concluded until ``policy.submit_grace_s`` has passed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ballast.core.cluster import UNKNOWN, TopicPartition
from ballast.executor.machine.notes import MoveNote, note
from ballast.executor.machine.observation import Picture, target
from ballast.executor.machine.relocation import brokers_seen_with_copy, count_log_dir_bytes, find_lost_copy
from ballast.executor.machine.run import ElectionStage, MoveRun, Now, Phase, Run, with_moves
from ballast.executor.machine.stages import (
    Cancelling,
    Copying,
    Ended,
    Failed,
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
from ballast.executor.machine.stalls import is_broken, stall_cause
from ballast.executor.machine.time_limit import mark, overdue
from ballast.executor.machine.transitions import elect_to, move_to
from ballast.ports.cluster import Outcome, PartitionState


@dataclass(frozen=True, slots=True)
class _View:
    """One partition in one look."""

    run: Run
    picture: Picture
    state: PartitionState
    now: Now


def observe(run: Run, picture: Picture, now: Now) -> Run:
    """The run after this look; no effect is decided here."""
    if run.rates_of_others != picture.rates_of_others:
        run = replace(run, rates_of_others=picture.rates_of_others)
    changed: dict[TopicPartition, MoveRun] = {}
    for name, m in run.moves.items():
        if isinstance(m.stage, Ended):
            continue
        looked_at = name in picture.names
        seen = _observe_move(run, m, picture, now) if looked_at else _observe_waiting(m, picture, now)
        if seen is not m:
            changed[name] = seen
    return _observe_elections(with_moves(run, changed), now)


def _observe_waiting(m: MoveRun, picture: Picture, now: Now) -> MoveRun:
    """A move that waits is looked at with the whole cluster only: is its topic still the same?"""
    state = picture.state
    row = None if state is None else state.index.get(m.move.name)
    if state is None or row is None:
        return m
    found = state.topics[int(state.partitions.topic[row])].topic_id
    if found is None or found == m.topic_id:
        return m
    return replace(m, topic_id=found) if m.topic_id is None else _fail_recreated(m, found, now)


def _observe_move(run: Run, m: MoveRun, picture: Picture, now: Now) -> MoveRun:
    name = m.move.name
    state = picture.partitions.get(name)
    if state is None and name not in picture.reassignments:
        return _fail_deleted(run, m, now)
    if m.down_since_s is not None:
        m = replace(m, down_since_s=None)
    if state is not None and state.topic_id is not None:
        if m.topic_id is None:
            m = replace(m, topic_id=state.topic_id)
        elif m.topic_id != state.topic_id:
            return _fail_recreated(m, state.topic_id, now)
    seen = _judge(m, _View(run, picture, state or PartitionState(-1, (), ()), now))
    if type(seen.stage) is not type(m.stage):
        return seen
    seen = _progress(run, seen, picture, now)
    match seen.stage:
        case Moving() | Stalled() as stage:
            return _note_stall(run, seen, stage, picture, now)
        case Relocating() as stage:
            return _note_slow_dir_copy(run, seen, stage, picture, now)
    return seen


def _judge(m: MoveRun, view: _View) -> MoveRun:
    seen = m
    match m.stage:
        case Planned() | Throttled():
            seen = _judge_waiting(m, view)
        case Submitted():
            seen = _judge_submitted(m, view)
        case Moving() | Stalled() as stage:
            seen = _judge_moving(m, stage, view)
        case Cancelling() as stage:
            seen = _judge_cancelling(m, stage, view)
        case Restoring() as stage:
            seen = _judge_restoring(m, stage, view)
        case Relocating() as stage:
            seen = _judge_relocating(m, stage, view)
        case Unthrottled():
            seen = _judge_unthrottled(m, view)
    return seen


def _fail_deleted(run: Run, m: MoveRun, now: Now) -> MoveRun:
    """A partition that neither list knows: deleted, unless metadata merely lags."""
    if m.down_since_s is None:
        return replace(m, down_since_s=now.s)
    if now.s - m.down_since_s < min(run.policy.submit_grace_s, 5.0):
        return m
    return move_to(m, Failed("deleted"), now, note("deleted", partition=str(m.move.name)))


def _fail_recreated(m: MoveRun, topic_id: str, now: Now) -> MoveRun:
    """Another topic has the name: its replicas and its moves are not this run's."""
    why = note("topic-recreated", topic=m.move.topic, was=m.topic_id, now=topic_id)
    return move_to(m, Failed("topic-recreated"), now, why)


def _listed(m: MoveRun, picture: Picture) -> bool | None:
    """Is our move in the cluster's list? None when another move of the same partition is."""
    listed = picture.reassignments.get(m.move.name)
    if listed is None:
        return False
    return True if set(target(listed)) == set(m.move.new) else None


def _fail_overridden(m: MoveRun, picture: Picture, now: Now) -> MoveRun:
    other = target(picture.reassignments[m.move.name])
    return move_to(m, Failed("overridden"), now, _replicas_note(m, "overridden", other))


def _replicas_note(m: MoveRun, code: str, replicas: tuple[int, ...]) -> MoveNote:
    """A note on the replicas of its partition."""
    return note(code, partition=str(m.move.name), replicas=replicas)


def _judge_waiting(m: MoveRun, view: _View) -> MoveRun:
    """Planned or throttled: the very same move may be in progress already."""
    if _listed(m, view.picture) and m.move.old != m.move.new:
        return move_to(
            m, Moving(replicas_after_cancel=_read_replicas_after_cancel(m, view)), view.now, note("followed")
        )
    return m


def _judge_submitted(m: MoveRun, view: _View) -> MoveRun:
    listed = _listed(m, view.picture)
    if listed is None:
        return _fail_overridden(m, view.picture, view.now)
    if listed:
        return _judge_begun(m, view)
    if view.state.replicas == m.move.new:
        return move_to(m, Moved(), view.now)
    if view.now.s - m.entered_s < view.run.policy.submit_grace_s:
        return m
    return _end_cancelled(m, view) or _end_or_submit_again(m, view)


def _end_or_submit_again(m: MoveRun, view: _View) -> MoveRun:
    """The cluster never showed what was submitted."""
    if m.attempts < view.run.policy.max_attempts:
        return move_to(m, Planned(), view.now, m.note or note("not-shown"))
    # Only an answer is noted on a move that was submitted.
    why = m.note or note("never-shown", partition=str(m.move.name), attempts=m.attempts)
    return move_to(m, Failed("not-taken" if m.note is None else "rejected"), view.now, why)


def _judge_begun(m: MoveRun, view: _View) -> MoveRun:
    """Look once more after a submission: did it start from the list that was planned for?

    Another process may have changed that between our last look and the send; a request without the flag of KIP-860 then changes the
    replica count as well.  Only a submission that this process knows to be its own is cancelled.  Before KIP-455 the list does
    not tell what a move began with.
    """
    state, replicas_after_cancel = view.picture.state, _read_replicas_after_cancel(m, view)
    told = state is not None and "reassign" in state.api and not m.unconfirmed
    if not told or set(replicas_after_cancel) in (set(m.move.old), set(m.move.new)):
        return move_to(m, Moving(replicas_after_cancel=replicas_after_cancel), view.now)
    why = _replicas_note(m, "assignment-changed-during-submit", tuple(sorted(set(replicas_after_cancel))))
    return move_to(m, Moving(replicas_after_cancel=replicas_after_cancel, raced=True), view.now, why)


def _judge_moving(m: MoveRun, stage: Moving | Stalled, view: _View) -> MoveRun:
    listed = _listed(m, view.picture)
    if listed is None:
        return _fail_overridden(m, view.picture, view.now)
    if listed:
        return _judge_listed(m, stage, view)
    if view.state.replicas == m.move.new:
        return move_to(m, Moved(), view.now)
    if stage.unlisted_since_s is None:
        return replace(m, stage=replace(stage, unlisted_since_s=view.now.s))
    if view.now.s - stage.unlisted_since_s < view.run.policy.submit_grace_s:
        return m
    why = _replicas_note(m, "not-moving", view.state.replicas)
    return _end_cancelled(m, view) or move_to(m, Failed("cancelled-externally"), view.now, why)


def _end_cancelled(m: MoveRun, view: _View) -> MoveRun | None:
    """The end of a move that another run of Ballast has cancelled, and put back in its old order where it could; None of any other."""
    if not m.cancelled_by or set(view.state.replicas) != set(m.move.old):
        return None
    if view.state.replicas == m.move.old:
        return move_to(m, RolledBack("rolled-back"), view.now, note("cancelled-by", by=m.cancelled_by))
    return move_to(m, Failed("rejected"), view.now, _other_order(m, view, None))


def _judge_listed(m: MoveRun, stage: Moving | Stalled, view: _View) -> MoveRun:
    if m.cancelled_by:
        # It is in progress: the cancel that was written down did not happen, and another user's is not that one.
        m = replace(m, cancelled_by="")
    replicas_after_cancel = _read_replicas_after_cancel(m, view)
    if replicas_after_cancel == stage.replicas_after_cancel and stage.unlisted_since_s is None:
        return m
    return replace(m, stage=replace(stage, replicas_after_cancel=replicas_after_cancel, unlisted_since_s=None))


def _read_replicas_after_cancel(m: MoveRun, view: _View) -> tuple[int, ...]:
    """The replicas that a cancel would leave: the union without what is being added."""
    listed = view.picture.reassignments[m.move.name]
    return tuple(b for b in listed.replicas if b not in listed.adding)


def _judge_cancelling(m: MoveRun, stage: Cancelling, view: _View) -> MoveRun:
    """Back as soon as nothing can contradict it; after ``submit_grace_s`` where something could.

    Two things could.  A submission that got no answer may arrive after the cancel and start the move again (``unconfirmed``): then
    the list is watched for the whole grace.  And metadata that lags may show the list from *before* the move while the cancel
    has left the same brokers in another order: so the old list is believed at once only where the controller's own list said
    that the cancel leaves just that.  With every request answered, neither is possible, and there is no wait.
    """
    listed = _listed(m, view.picture)
    if listed is None:
        return _fail_overridden(m, view.picture, view.now)
    waited = view.now.s - m.entered_s >= view.run.policy.submit_grace_s
    if listed:
        # The cancel was lost or refused this time: back to moving, from where it is decided anew.
        again = Moving(replicas_after_cancel=stage.replicas_after_cancel, raced=stage.raced)
        return move_to(m, again, view.now, note("cancel-without-effect")) if waited else m
    if stage.raced:
        return move_to(m, Failed("modified-externally"), view.now, m.note)
    certain = stage.acknowledged and not m.unconfirmed and stage.replicas_after_cancel == m.move.old
    if view.state.replicas == m.move.old and (waited or certain):
        return roll_back(view.run, m, view.now)
    if view.state.replicas == m.move.new and waited:
        return move_to(m, Moved(), view.now, note("arrived-before-cancel"))
    # The old brokers in another order, or the union that metadata still shows: decide.restore acts on the former.
    return m


def roll_back(run: Run, m: MoveRun, now: Now) -> MoveRun:
    """As before the run: because a person cancelled it, or else because its time was up; then its cause is kept."""
    if run.phase is Phase.CANCELLING:
        return move_to(m, RolledBack("rolled-back"), now)
    return move_to(m, RolledBack("timed-out"), now, m.note)


def _judge_restoring(m: MoveRun, stage: Restoring, view: _View) -> MoveRun:
    """Restored as soon as nothing can contradict it; what begins meanwhile is followed, or another's."""
    listed = view.picture.reassignments.get(m.move.name)
    # On clusters with ZooKeeper the old order itself is listed until the controller has taken it.
    if listed is not None and set(target(listed)) != set(m.move.old):
        if not _listed(m, view.picture):
            return _fail_overridden(m, view.picture, view.now)
        # A submission without an answer came after the cancel.
        return move_to(
            m,
            Moving(replicas_after_cancel=_read_replicas_after_cancel(m, view)),
            view.now,
            note("reassignment-reappeared"),
        )
    # A submission that may still arrive would start the move again: then the list is watched here as well.
    quiet = not m.unconfirmed or view.now.s - m.entered_s >= view.run.policy.submit_grace_s
    if quiet and listed is None and view.state.replicas == m.move.old:
        return roll_back(view.run, m, view.now)
    there = set(view.state.replicas) == set(m.move.old)
    tries = there and m.attempts < view.run.policy.max_attempts
    early = stage.retry_at_s > view.now.s or view.now.s - m.entered_s < view.run.policy.submit_grace_s * 2
    if tries or early or listed is not None:
        return m
    if there:
        return move_to(m, Failed("rejected"), view.now, _other_order(m, view, _refusal(m)))
    partition, replicas, wanted = str(m.move.name), view.state.replicas, m.move.old
    why = note("changed-after-cancel", partition=partition, replicas=replicas, wanted=wanted)
    return move_to(m, Failed("modified-externally"), view.now, why)


def _other_order(m: MoveRun, view: _View, answer: Outcome | None) -> MoveNote:
    """Its old replicas are there, in another order than before, and what the cluster said against that."""
    replicas, wanted = view.state.replicas, m.move.old
    return note("other-order", partition=str(m.move.name), replicas=replicas, wanted=wanted, answer=answer)


def _refusal(m: MoveRun) -> Outcome | None:
    """What the cluster answered last to this process."""
    answer = None if m.note is None else m.note.values.get("answer")
    return answer if isinstance(answer, Outcome) else None


def _judge_unthrottled(m: MoveRun, view: _View) -> MoveRun:
    listed = m.move.name in view.picture.reassignments
    if listed or view.state.replicas != m.move.new:
        if not listed and view.now.s - m.entered_s < view.run.policy.submit_grace_s:
            # Another broker may have answered, whose metadata is older than what the move was seen to arrive by.
            return m
        why = _replicas_note(m, "changed-after-arrival", view.state.replicas)
        return move_to(m, Failed("modified-externally"), view.now, why)
    lacking = [b for b in m.move.adding if b not in view.state.isr]
    if not lacking:
        return move_to(m, Verified(), view.now)
    if view.now.s - m.entered_s < view.run.policy.stall_after_s:
        return m
    why = note("fell-out-of-sync", partition=str(m.move.name), broker=lacking[0])
    return move_to(m, Failed("out-of-sync"), view.now, why)


def _judge_relocating(m: MoveRun, stage: Relocating, view: _View) -> MoveRun:
    if view.picture.logs is None:
        return m
    if not find_misplaced(m, view.picture):
        # What a broker that is down or unreachable holds is not known, and so not right.
        unknown = m.move.named_dirs.keys() - view.picture.logs.keys()
        return m if unknown else move_to(m, Moved(), view.now)
    ours = stage.given_up or view.run.phase is Phase.CANCELLING
    stopped = None if ours else find_lost_copy(m, stage, view.picture)
    if stopped is not None:
        return move_to(m, Failed("log-dir"), view.now, note("copy-gone", broker=stopped))
    seen_on = brokers_seen_with_copy(m, stage, view.picture)
    return m if seen_on == stage.seen_on else replace(m, stage=replace(stage, seen_on=seen_on))


def find_misplaced(m: MoveRun, picture: Picture) -> dict[int, str]:
    """Brokers whose replica is not (only) in the log dir asked for; brokers that did not answer are left out."""
    out = {}
    for broker, wanted in zip(m.move.new, m.move.log_dirs or (), strict=False):
        logs = (picture.logs or {}).get(broker)
        if wanted == "any" or logs is None:
            continue
        places = {r.log_dir for r in logs.replicas.get(m.move.name, ()) if not r.is_future}
        if places != {wanted}:
            out[broker] = wanted
    return out


def _progress(run: Run, m: MoveRun, picture: Picture, now: Now) -> MoveRun:
    """Bytes at the destinations against the leader's present size."""
    stage = m.stage
    if picture.logs is None or not isinstance(stage, Copying | Cancelling):
        return m
    copied, total = _count_copied(m, picture)
    if (copied, total) == (m.copied_bytes, m.total_bytes):
        return m
    grown = copied > m.copied_bytes
    read = replace(m, copied_bytes=copied, total_bytes=total)
    if isinstance(stage, Cancelling):
        return read
    stood = now.s - stage.grown_at_s >= run.policy.stall_after_s
    went_on = replace(stage, grown_at_s=now.s) if grown else stage
    return replace(read, stage=mark(read, went_on, now, anew=grown and stood))


def _count_copied(m: MoveRun, picture: Picture) -> tuple[int, int | None]:
    """Bytes at their destinations, and bytes that belong there; None where no broker tells how many."""
    if isinstance(m.stage, Relocating) or not m.move.adding:
        # What has come from other brokers has arrived; what belongs in other log dirs comes on top of it.
        size = max(picture.sizes.get(m.move.name, UNKNOWN), m.move.size_bytes)
        figures = count_log_dir_bytes(m, picture)
        if figures is None or (m.move.adding and size == UNKNOWN):
            return m.copied_bytes, m.total_bytes
        arrived = size * len(m.move.adding) if m.move.adding else 0
        return arrived + figures[0], arrived + figures[1]
    logs = picture.logs or {}
    if any(b not in logs for b in m.move.adding):
        # What a broker that does not answer holds is not known, which is not nothing.
        return m.copied_bytes, m.total_bytes
    places = [logs[b].replicas.get(m.move.name, ()) for b in m.move.adding]
    size = max(picture.sizes.get(m.move.name, UNKNOWN), m.move.size_bytes)
    total = m.total_bytes if size == UNKNOWN else size * len(m.move.adding)
    return sum(r.size_bytes for of in places for r in of), total


def _note_stall(run: Run, m: MoveRun, stage: Moving | Stalled, picture: Picture, now: Now) -> MoveRun:
    """Named as stalled when nothing has arrived for too long or too little in its time; as moving again when neither is so.

    Judged when something new is known of its destinations: they were read, or one is down and cannot be.
    What is plainly broken is named as soon as the cluster has had time to show the move.
    """
    broken = is_broken(m, picture)
    if picture.logs is None and not broken:
        return m
    state = picture.partitions.get(m.move.name)
    late = overdue(run, m, stage, state.leader if state is not None else UNKNOWN, now)
    idle = now.s - stage.grown_at_s >= run.policy.stall_after_s
    if isinstance(stage, Moving):
        if not (idle or late or (broken and now.s - m.entered_s >= run.policy.submit_grace_s)):
            return m
        cause = stall_cause(run, m, picture, too_slow=None if idle else late)
        return move_to(m, stage.stall(cause.code), now, cause)
    if not (broken or late or idle) and stage.grown_at_s > m.entered_s:
        return move_to(m, stage.recover(now.s), now)
    cause = stall_cause(run, m, picture, too_slow=None if idle else late)
    # The figures in the sentence change with every reading; only another cause is news that belongs in the journal.
    return m if cause.code == stage.cause else replace(m, stage=replace(stage, cause=cause.code), note=cause)


def _note_slow_dir_copy(run: Run, m: MoveRun, stage: Relocating, picture: Picture, now: Now) -> MoveRun:
    """``_note_stall`` for copies between log dirs, which have no stage of their own for it; what was given up stays so."""
    unread = picture.logs is None and not picture.alive.isdisjoint(m.move.named_dirs)
    if unread or stage.given_up or run.phase is Phase.CANCELLING:
        return m
    late = overdue(run, m, stage, UNKNOWN, now)
    idle = now.s - stage.grown_at_s >= run.policy.stall_after_s
    if not (late or idle):
        return replace(m, stage=replace(stage, cause=""), note=None) if stage.cause else m
    cause = stall_cause(run, m, picture, too_slow=None if idle else late)
    if cause.code == stage.cause:
        return m
    named_s = stage.named_s if stage.cause else now.s
    return replace(m, stage=replace(stage, cause=cause.code, named_s=named_s), note=cause)


def _observe_elections(run: Run, now: Now) -> Run:
    """Elections whose answer was lost are asked for again: an election is idempotent."""
    changed = {}
    for name, e in run.elections.items():
        if e.stage is ElectionStage.REQUESTED and now.s >= e.retry_at_s:
            enough = e.attempts >= run.policy.max_attempts
            why = e.note or note("election-unanswered")
            changed[name] = elect_to(e, ElectionStage.FAILED if enough else ElectionStage.WAITING, why)
        elif e.stage is ElectionStage.WAITING and run.phase is Phase.CANCELLING:
            changed[name] = elect_to(e, ElectionStage.FAILED, note("election-cancelled"))
    return replace(run, elections={**run.elections, **changed}) if changed else run
