"""What the journal tells a daemon that carries out runs, stands by while another does, or only observes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ballast.core.wording import human_many
from ballast.daemon.acting.decisions import decisions_in
from ballast.daemon.acting.run_views import books_of
from ballast.daemon.context.scene import Scene
from ballast.daemon.context.view import Role
from ballast.daemon.process.lock import tell_loss
from ballast.errors import AuthorizationFailed, JournalLost
from ballast.ports.journal import Journal, Record


def read_books(scene: Scene) -> str:
    """History, debts, and which partitions somebody with our journal is moving."""
    if scene.letters is None:
        return "There is no journal."
    try:
        records = _read(scene, scene.letters)
    except AuthorizationFailed as denied:
        if scene.policy.writes:
            raise
        # To observe takes no right on the journal: without it there is no history, and the page says why.
        scene.board.publish(history_problem=str(denied))
        return f"Past runs are not known: {denied}"
    if scene.board.view.lock.journal_readable is False:
        scene.board.publish(lock=replace(scene.board.view.lock, journal_readable=True))
    books = scene.memory.books = books_of(records, scene.clock, scene.memory.parsed)
    scene.memory.decisions = decisions_in(records)
    scene.board.publish(
        history=books.history,
        history_skipped=tuple(books.skipped.items()),
        history_problem="",
        throttle_debts=len(books.debts),
    )
    if adopted := _adopt(scene):
        return f"Run {adopted} was open in the journal with nobody to carry it out; this process goes on with it."
    owed = f" {human_many(len(books.debts), 'throttle')} still to be taken back." if books.debts else ""
    skipped = f" {human_many(len(books.skipped), 'other')} cannot be read." if books.skipped else ""
    return f"{human_many(len(books.history), 'run')} ended so far.{skipped}{owed}"


def _read(scene: Scene, letters: Journal) -> Sequence[Record]:
    try:
        return letters.read()
    except JournalLost as lost:
        if scene.policy.writes and scene.board.view.role is not Role.LEADER:
            tell_loss(scene, lost)
            raise
    # The holder of the lock makes it again and tells that; this handle reads what stands there from now on.
    return letters.read()


def _adopt(scene: Scene) -> str | None:
    """An open run that nobody carries out is taken up by the one that acts, however it came to be left."""
    hands, left = scene.hands, scene.memory.books.open
    idle = scene.board.view.role is Role.LEADER and not scene.give_way
    if hands is None or not idle or hands.current() is not None or left is None:
        return None
    scene.take_up(left.id)
    return hands.adopt()


def show_run(scene: Scene) -> str:
    """Publish how far the run in flight has come; elsewhere what the journal tells of the one that another carries out."""
    run = scene.hands.current() if scene.hands else None
    if run is not None and (why := scene.held_by_mode()):
        run = replace(run, sentence=f"{run.sentence}; no further move begins, since {why}")
    role = scene.board.view.role
    elsewhere = scene.memory.books.open if role is not Role.LEADER and run is None else None
    if elsewhere and role is Role.OBSERVER:
        elsewhere = replace(elsewhere, sentence="Open in the journal: a process in mode approve or auto takes it up")
    if (run, elsewhere) != (scene.board.view.run, scene.board.view.run_elsewhere):
        scene.board.publish(run=run, run_elsewhere=elsewhere)
    if elsewhere and role is Role.OBSERVER:
        return f"Run {elsewhere.id} is open in the journal; observe mode leaves it as it is."
    if elsewhere:
        return f"Run {elsewhere.id} is carried out by {scene.board.view.lock.holder or 'another process'}."
    return f"Run {run.id}: {run.sentence}." if run else "Nothing is being carried out."
