"""``ballast reassign --verify``: how each partition of the file stands, and the throttles that are left when all is done."""

from __future__ import annotations

from ballast.app.reassign.session import COMMAND, ReassignOptions, ReassignSession
from ballast.app.throttles import clear_stale, stale_on
from ballast.core.plan import ANY_LOG_DIR
from ballast.core.stock import report
from ballast.core.stock.files import ReassignmentEntry
from ballast.errors import Fenced, LockHeld
from ballast.wiring.cluster import OpenCluster
from ballast.wiring.runs import open_writer


def verify(session: ReassignSession, options: ReassignOptions) -> int:
    """Say how each partition stands; when all is done, take away what any tool's throttle has left."""
    cluster, entries = session.opened.cluster, options.entries
    moving = cluster.reassignments()
    current = {name: state.replicas for name, state in cluster.partitions([e.name for e in entries]).items()}
    session.answer(report.status({e.name: e.replicas for e in entries}, current, moving))
    dirs = dir_moves(session.opened, entries)
    session.answer(report.dir_status(dirs))
    if not moving and not any(d.active for d in dirs) and not options.preserve_throttles:
        remove_throttles(session, entries, everybodys=options.clear_throttles)
    return 0


def remove_throttles(session: ReassignSession, entries: tuple[ReassignmentEntry, ...], *, everybodys: bool) -> None:
    """Finish what Ballast left open, which removes its throttles; what others have set goes only where that was asked for.

    A rate that stands when the ledger is empty may be the very one that the ledger has just given back to a person.

    A follower that is just starting may take the lock first, or from this process: then the follower finishes.
    """
    topics = {e.topic for e in entries}
    if everybodys:
        brokers = {b.id for b in session.opened.cluster.snapshot(log_dirs=False, configs=False).brokers}
        session.answer(report.throttle_removal_message(brokers | {b for e in entries for b in e.replicas}, topics))
    try:
        with open_writer(session.opened, command=f"{COMMAND} --verify", lock_wait_s=0) as writer:
            for run in writer.driver.open_runs():
                writer.resume(run)
            writer.driver.restore_throttles()
            if everybodys:
                for line in clear_stale(writer, topics):
                    session.show_line(line)
            else:
                for found in stale_on(writer, topics):
                    session.show_line(
                        f"{found.setting} = {found.value or '(empty)'} stays: it is not Ballast's; --clear-throttles removes it."
                    )
    except (LockHeld, Fenced) as held:
        session.show_line(f"{held.message} The process that holds the lock removes Ballast's throttles.")
        if everybodys:
            session.show_line(
                "Throttles that others have set may still stand: give the command again when that process has ended."
            )


def dir_moves(opened: OpenCluster, entries: tuple[ReassignmentEntry, ...]) -> list[report.DirMove]:
    """Every replica of the file that names a log dir, and where it is."""
    wanted = [
        (e.name, broker, path)
        for e in entries
        for broker, path in zip(e.replicas, e.log_dirs or (), strict=False)
        if path != ANY_LOG_DIR
    ]
    logs = opened.cluster.log_dirs({broker for _, broker, _ in wanted}) if wanted else {}
    out = []
    for name, broker, path in wanted:
        places = logs[broker].replicas.get(name, ()) if broker in logs else ()
        current = next((p.log_dir for p in places if not p.is_future), None)
        future = next((p.log_dir for p in places if p.is_future), None)
        out.append(report.DirMove(name, broker, path, current, future, known=broker in logs))
    return out
