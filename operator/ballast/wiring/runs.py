"""Puts a run together: the open cluster, its journal with the lock, and the driver between them."""

from __future__ import annotations

import logging
import secrets
import threading
import time
import uuid
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from typing import Final

from ballast.adapters.clock import SystemClock
from ballast.core.cluster import ClusterState
from ballast.core.plan import Plan
from ballast.core.wording import ShowLine
from ballast.errors import BallastError, Fenced, Refused, UsageError
from ballast.executor.driver.driver import Driver
from ballast.executor.driver.events import Listener, RunResult
from ballast.executor.driver.inbound import Gauge
from ballast.executor.driver.pace import Pace, measurable, pace_of, with_growth
from ballast.executor.journal.answers import RequestAnswer
from ballast.executor.journal.history import History, find_unreadable_open_runs, load_summaries
from ballast.executor.journal.notes import RunNote
from ballast.executor.journal.pause import is_paused
from ballast.executor.journal.records import Unreadable, load_open_runs, read_runs, run_ids
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.executor.machine.rollback import rollback_plan
from ballast.executor.machine.run import Now, Run, new_run
from ballast.ports.cluster import ClusterReader
from ballast.ports.journal import Holder, Journal, Request, find_restart
from ballast.ports.time import Clock
from ballast.wiring.cluster import OpenCluster
from ballast.wiring.journal import journal_of, journal_to_look_at, this_process

logger = logging.getLogger("ballast.runs")

LEAVES_WITHIN_S: Final = 15.0
"""How long releasing the lock may delay the end of the process."""
ABANDONED_WITHIN_S: Final = 1.0
"""The same where a person no longer waits: a journal that answers takes less, and another one's lease lapses by itself."""


@dataclass(frozen=True, slots=True)
class Writer:
    """This process as the cluster's one writer."""

    opened: OpenCluster
    journal: Journal
    driver: Driver
    clock: Clock

    def apply(self, plan: Plan, policy: ExecutionPolicy, *, run_id: str, unclean: bool = False) -> RunResult:
        """Execute a plan, and roll it back when a person asked for that on the way."""
        return self.driver.roll_back_if_asked(self.driver.execute(plan, policy, run_id=run_id, unclean=unclean))

    def resume(self, run: Run) -> RunResult:
        """Go on with a run that was left."""
        return self.driver.roll_back_if_asked(self.driver.resume(run))

    def rollback(self, run: Run, reason: str = "") -> RunResult:
        """Put back what a run that has ended did, under the policy that it had; refused where that is not known whole."""
        if run.unknown_settings:
            raise Refused(
                f"Run {run.id} had settings that this version does not know: {', '.join(run.unknown_settings)}. "
                "Its rollback would not keep to them.",
                hint="Roll it back with the Ballast version that executed it, or a newer one.",
            )
        plan = rollback_plan(run)
        if reason:
            plan = replace(plan, intent=f"{plan.intent}: {reason}")
        return self.driver.execute(plan, run.policy, run_id=new_run_id(), rollback_of=run.id)


def new_run_id() -> str:
    """Sorts by time, short enough to type, never twice the same."""
    return time.strftime("%m%d-%H%M%S", time.gmtime()) + "-" + secrets.token_hex(2)


@contextmanager
def open_writer(
    opened: OpenCluster,
    *,
    command: str,
    listener: Listener | None = None,
    journal: str | None = None,
    lock_wait_s: float = 20.0,
    take_over: bool = False,
    is_follower: bool = False,
    on_line: ShowLine | None = None,
) -> Iterator[Writer]:
    """Become the writer for as long as the block lasts; raises ``LockHeld`` naming who is.

    ``on_line`` hears whose lock it is that is waited for, before the wait.

    ``take_over`` asks the holder to release the lock first: a daemon does within seconds, leaves its run as it is, and will acquire the lock again.
    """
    clock = SystemClock()
    log = journal_of(opened, journal)
    try:
        me = this_process(command, is_follower=is_follower)
        request_id = request_release(log, me.description, wait_s=lock_wait_s) if take_over else None
        if on_line is not None and lock_wait_s > 0 and (holder := _known_holder(log)) is not None:
            on_line(f"Waiting up to {lock_wait_s:g} s for the lock of this cluster, which {holder.description} holds.")
        log.acquire(me, wait_s=lock_wait_s)
        if request_id is not None:
            _answer_own(log, request_id)
        records = log.read()
        if listener is not None and find_restart(records) is not None:
            listener.on_event(RunNote("journal-recreated-empty"))
        if on_line is not None and is_paused(records):
            on_line("Ballast is paused on the page; this command goes on all the same.")
    except BaseException:
        log.close()
        raise
    driver = Driver(opened.cluster, log, clock, listener, server=opened.bootstrap_server)
    try:
        yield Writer(opened, log, driver, clock)
    finally:
        _release(log, me, within_s=ABANDONED_WITHIN_S if driver.abandoned else LEAVES_WITHIN_S)


def request_release(log: Journal, by: str, *, wait_s: float) -> str | None:
    """Ask the holder to leave the lock to this process, which waits so long for it; the request's id, None where no process holds it."""
    if log.holder() is None:
        return None
    request_id = uuid.uuid4().hex
    log.request(Request(request_id, "take-over", by, time.time_ns() // 1_000_000, {"wait_s": wait_s}))
    return request_id


def _known_holder(log: Journal) -> Holder | None:
    """Who holds the lock; what keeps that from being read is told when the lock is taken."""
    try:
        return log.holder()
    except BallastError:
        return None


def _answer_own(log: Journal, request_id: str) -> None:
    """Answer our own request where the holder was gone and read none: else the next holder would release the lock for no process."""
    if any(request.id == request_id and request.answer is None for request in log.requests()):
        log.answer(request_id, str(RequestAnswer("lock-free")))


def _release(log: Journal, holder: Holder, *, within_s: float) -> None:
    """Give the lock up and let the connections go, in bounded time: a journal that cannot be reached ends the lease by itself."""

    def leave() -> None:
        try:
            log.release()
        except Fenced:
            pass  # It is another process's already.
        except BallastError as failure:
            tell(failure.message)
        finally:
            log.close()

    def tell(why: str) -> None:
        logger.warning("The lock of this cluster was not released and lapses after %g s: %s", holder.lease_s, why)

    # In a thread that ends with the process: a client that waits for its time-out must not delay the process's end.
    leaving = threading.Thread(target=leave, name="ballast-leave", daemon=True)
    leaving.start()
    leaving.join(within_s)
    if leaving.is_alive():
        tell("the journal did not answer in time.")


def foreseen_pace(cluster: ClusterReader, state: ClusterState, plan: Plan, policy: ExecutionPolicy) -> Pace:
    """The rates that a run of this plan would begin with now: measured as a run measures, and nothing is changed."""
    clock = SystemClock()
    run = new_run("foreseen", plan, policy, _now())
    if policy.measure_s > 0:
        names = [m.name for m in plan.moves if m.adding]
        gauge = Gauge.begin(cluster, clock, state, measurable(policy, state, names))
        run = with_growth(run, state, gauge.bytes_per_s(policy.measure_s))
    return pace_of(run, state)


def find_run(log: Journal, run_id: str) -> Run:
    """The run with this id, or the only one that begins with it; raises ``UsageError``, or ``Refused`` where it cannot be read."""
    runs, skipped = read_runs(log.read(), _now())
    found = _run_named(run_id, [*runs, *skipped])
    refuse_unreadable({i: why for i, why in skipped.items() if i == found})
    return runs[found]


def find_run_id(opened: OpenCluster, run_id: str, journal: str | None) -> str:
    """The id of the run of ``find_run``, which may be one that cannot be read; looking takes no lock."""
    with closing(journal_to_look_at(opened, journal)) as log:
        records = log.read()
        return _run_named(run_id, run_ids(records, ended=False) | run_ids(records, ended=True))


def _run_named(run_id: str, runs: Collection[str]) -> str:
    found = [run_id] if run_id in runs else [i for i in runs if i.startswith(run_id)]
    if len(found) != 1:
        word = "There is no run" if not found else "More than one run begins with"
        raise UsageError(f"{word} {run_id}.", hint="ballast runs shows them.")
    return found[0]


def find_known_run(log: Journal, run_id: str) -> Run:
    """The run with just this id, which the journal had when it was read before; raises ``Refused`` where it has it no more."""
    runs, skipped = read_runs(log.read(), _now())
    refuse_unreadable({i: why for i, why in skipped.items() if i == run_id})
    if (run := runs.get(run_id)) is None:
        raise Refused(
            f"Run {run_id} is not in the journal any more: it has expired, or the journal was recreated.",
            hint="ballast runs shows what there is.",
        )
    return run


def read_open_runs(log: Journal) -> tuple[list[Run], dict[str, Unreadable]]:
    """The runs that have not ended, oldest first, and why others of them cannot be read."""
    records = log.read()
    left = load_open_runs(records, _now())
    return left, find_unreadable_open_runs(records, left)


def refuse_unreadable(skipped: Mapping[str, Unreadable]) -> None:
    """Raise ``Refused`` where there is a run that cannot be read."""
    if skipped:
        raise Refused(" ".join(unreadable_lines(skipped)))


def unreadable_lines(skipped: Mapping[str, Unreadable]) -> list[str]:
    """Why runs cannot be read, a sentence each."""
    return [f"Run {run_id} cannot be read: {why}" for run_id, why in skipped.items()]


def summaries_of(log: Journal) -> History:
    """Every run in the journal in numbers, oldest first, and what cannot be read of it."""
    return load_summaries(log.read(), _now())


def _now() -> Now:
    clock = SystemClock()
    return Now(clock.now_ms(), clock.monotonic_s())
