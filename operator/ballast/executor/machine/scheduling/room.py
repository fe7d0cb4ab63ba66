"""Bytes that have yet to reach each disk: those of the run's moves and those of other people's, between brokers and log dirs.

Free space is as old as the reading that told it, up to a minute.  So what has yet to come is counted from that very reading: the
size of a copy less what the reading shows of it.  A copy that began since counts whole, one that has grown since counts by what
the reading lacks of it, one that ended before it counts for nothing: each byte once, however often a disk is read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from ballast.core.cluster import UNKNOWN, TopicPartition
from ballast.core.plan import Move, Place
from ballast.executor.machine.observation import Disks, Picture
from ballast.executor.machine.run import MoveRun, Run
from ballast.executor.machine.stages import Ended, HoldsThrottle, Planned, Relocating
from ballast.ports.cluster import Reassignment


@dataclass(frozen=True, slots=True)
class BytesToArrive:
    """The bytes that have yet to be copied to disks."""

    bytes: Counter[Place] = field(default_factory=Counter)
    """By broker, and by each log dir that is known to take it."""
    unsized: dict[int, TopicPartition] = field(default_factory=dict)
    """Brokers to which a copy of unknown size is on its way, and one such partition: how much they can still take is unknown."""

    def add(self, name: TopicPartition, broker: int, size: int, there: Mapping[Place, int]) -> None:
        """A copy onto this broker; ``there`` says what the reading shows of it in each place that it fills."""
        if size == UNKNOWN:
            self.unsized.setdefault(broker, name)
            return
        for place, shown in there.items():
            self.bytes[place] += max(0, size - shown)


def only_log_dirs(move: Move) -> bool:
    """The brokers stay, log dirs change."""
    return move.old == move.new and move.log_dirs is not None


def bytes_to_arrive(run: Run, picture: Picture) -> BytesToArrive:
    """What moves of this run, foreign reassignments and copies between log dirs have yet to copy."""
    out = BytesToArrive()
    _add_own_moves(out, run, picture)
    begun = {n for n, m in run.moves.items() if not isinstance(m.stage, Planned)}
    going_on = {n for n in begun if not isinstance(run.moves[n].stage, Ended)}
    listed = ((name, r) for name, r in picture.reassignments.items() if name not in going_on)
    _add_reassignments(out, listed, picture.sizes, picture.disks)
    for name, (r, listed_s) in picture.ended.items():
        if name not in begun:
            unread = [b for b in r.adding if picture.disks.read_before(b, listed_s)]
            _add_reassignments(
                out, [(name, Reassignment(r.replicas, tuple(unread), r.removing))], picture.sizes, picture.disks
            )
    _add_other_dir_copies(out, run.moves, picture.disks)
    return out


def bytes_to_arrive_of_others(
    listed: Mapping[TopicPartition, Reassignment], sizes: Mapping[TopicPartition, int], disks: Disks
) -> BytesToArrive:
    """What reassignments in progress, and copies between log dirs, have yet to copy, none of which is ours."""
    out = BytesToArrive()
    _add_reassignments(out, listed.items(), sizes, disks)
    _add_other_dir_copies(out, {}, disks)
    return out


def size_of(m: MoveRun, picture: Picture) -> int:
    """Bytes of one replica, by the plan or by the last that is known, whichever is more; ``UNKNOWN`` where neither told."""
    told = [m.move.size_bytes, picture.sizes.get(m.move.name, UNKNOWN)]
    writing = len(m.move.named_dirs if only_log_dirs(m.move) else m.move.adding)
    # Once replicas change their log dirs as well, the total counts both copies.
    if m.total_bytes is not None and writing and (only_log_dirs(m.move) or not isinstance(m.stage, Relocating)):
        told.append(m.total_bytes // writing)
    return max(told)


def _add_own_moves(out: BytesToArrive, run: Run, picture: Picture) -> None:
    for name, m in run.moves.items():
        if isinstance(m.stage, Planned) or (isinstance(m.stage, Ended) and name in picture.reassignments):
            continue
        held = isinstance(m.stage, HoldsThrottle)
        if not held and m.entered_s < picture.disks.full_s:
            continue
        size = size_of(m, picture)
        for broker, there in _shown_bytes_by_broker(m, picture.disks):
            if held or picture.disks.read_before(broker, m.entered_s):
                out.add(name, broker, size, there)


def _shown_bytes_by_broker(m: MoveRun, disks: Disks) -> Iterator[tuple[int, dict[Place, int]]]:
    """For each broker that the move copies to, the bytes that the reading shows of the copy in each place."""
    move = m.move
    if isinstance(m.stage, Relocating) or only_log_dirs(move):
        # The copy takes room beside the replica until it has taken its place.
        for broker, path in move.named_dirs.items():
            shown = disks.sizes_by_dir(move.name, broker).get(path, 0)
            yield broker, {broker: shown, (broker, path): shown}
        return
    for broker in move.adding:
        yield broker, _shown_bytes(move.name, broker, disks, move.named_dirs.get(broker))


def _shown_bytes(name: TopicPartition, broker: int, disks: Disks, named: str | None = None) -> dict[Place, int]:
    """The bytes that the reading shows of a copy on this broker: in all, and in the log dir that it is or is to be in."""
    shown = disks.sizes_by_dir(name, broker)
    paths = shown.keys() if named is None else {named}
    return {broker: sum(shown.values()), **{(broker, path): shown.get(path, 0) for path in paths}}


def _add_reassignments(
    out: BytesToArrive,
    listed: Iterable[tuple[TopicPartition, Reassignment]],
    sizes: Mapping[TopicPartition, int],
    disks: Disks,
) -> None:
    for name, r in listed:
        for broker in r.adding:
            out.add(name, broker, sizes.get(name, UNKNOWN), _shown_bytes(name, broker, disks))


def _add_other_dir_copies(out: BytesToArrive, moves: Mapping[TopicPartition, MoveRun], disks: Disks) -> None:
    """Copies between the log dirs of a broker that no move of the run asks for; the replica stays until they have ended."""
    for copy in disks.dir_copies:
        m = moves.get(copy.name)
        if m is None or m.move.named_dirs.get(copy.broker) != copy.path:
            places: tuple[Place, ...] = (copy.broker, (copy.broker, copy.path)) if copy.path else (copy.broker,)
            out.add(copy.name, copy.broker, copy.size_bytes, dict.fromkeys(places, copy.shown_bytes))
