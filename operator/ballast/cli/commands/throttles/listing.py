"""``ballast throttles list``: what is set, who needs it, what is stale; clean it up."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ballast.cli.cluster_options import ClusterOptions, cluster_options
from ballast.cli.option_types import BROKERS
from ballast.cli.run_options import confirm, lock_options
from ballast.cli.tables import Column, console, human_many, output_option, print_json, print_line, render_table
from ballast.core.wording import human_brokers

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from ballast.cli.documents.cluster import Throttle
    from ballast.core.cluster import ClusterState
    from ballast.core.named_brokers import NamedBrokers
    from ballast.core.throttles.stale import FoundThrottle
    from ballast.wiring.cluster import OpenCluster


def judge(opened: OpenCluster, journal: str | None) -> Sequence[FoundThrottle]:
    """Every throttle setting with who needs it, empty lists too; an unreadable journal counts as empty and is said.

    Brokers and topics that did not tell their configs are named: what stands there is not among the settings.
    """
    from ballast.core.throttles.stale import all_settings
    from ballast.errors import Unavailable
    from ballast.wiring.throttles import HeldSettings, held_settings

    try:
        held = held_settings(opened, journal)
    except Unavailable as silence:
        print_line(
            f"The journal does not answer ({silence.message}); what Ballast itself has set cannot be told apart."
        )
        held = HeldSettings(frozenset(), frozenset())
    state = opened.cluster.snapshot()
    for sentence in list_unread(state):
        print_line(sentence)
    return all_settings(state, held.runs, held.set_by_hand)


def list_unread(state: ClusterState) -> list[str]:
    """Where throttle settings may stand that could not be read."""
    from ballast.core.cluster import CONFIGS

    told = [
        f"{g.subject} did not report its configs: throttles there are not known ({g.reason})."
        for g in state.gaps
        if g.missing == CONFIGS
    ]
    down = [b.id for b in state.brokers if not b.alive]
    return [*told, f"Down: {human_brokers(down)}; rates set there are not known."] if down else told


@click.command("list")
@click.option(
    "--clean",
    is_flag=True,
    help="Remove stale throttles, throttles that Ballast has not yet removed, and those set with ballast throttles set.",
)
@click.option(
    "--topic", "topics", multiple=True, metavar="NAME", help="With --clean: only this topic's lists; may be repeated."
)
@click.option("--brokers", type=BROKERS, help="With --clean: these brokers' rates as well.")
@click.option("--yes", "-y", is_flag=True, help="With --clean: do not ask.")
@lock_options
@output_option("Throttles", "ThrottlesRemoved")
@cluster_options
def list_throttles(
    *,
    clean: bool,
    topics: tuple[str, ...],
    brokers: NamedBrokers | None,
    yes: bool,
    journal: str | None,
    lock_wait: float,
    take_over: bool,
    output: str,
    cluster: ClusterOptions,
) -> int:
    """List every throttle that is set, and what needs it; with --clean remove those that are no longer needed.

    Each is shown with the proof that it is no longer needed, and checked again right before it is removed. A rate on a broker may be
    a person's own: it is removed only if a stale list or --brokers names its broker. Throttles set with ballast throttles set
    are removed too, and previous values are restored.
    """
    if not clean and (topics or brokers or yes):
        raise click.UsageError("--topic, --brokers and --yes go with --clean.")
    with cluster.open() as opened:
        if clean:
            return _clean(
                opened,
                topics,
                _ids(opened, brokers),
                yes=yes,
                journal=journal,
                lock_wait_s=lock_wait,
                take_over=take_over,
                output=output,
            )
        found = [s for s in judge(opened, journal) if s.value]
    if output == "json":
        from ballast.cli.documents.cluster import Throttles

        print_json(Throttles(throttles=[_document(s) for s in found]))
        return 0
    if not found:
        print_line("No throttle is set.")
        return 0
    columns = [Column("resource", "left"), Column("setting", "left"), Column("value", "left", 1), Column("why", "left")]
    rows = [[s.resource, s.setting.key, _short(s.value), s.why] for s in found]
    out = console()
    out.print(render_table(columns, rows, out.width))
    if any(s.stale for s in found):
        print_line("Remove the stale ones with: ballast throttles --clean")
    return 0


def _document(s: FoundThrottle) -> Throttle:
    from ballast.cli.documents.cluster import Throttle

    return Throttle(
        resource_type=s.setting.kind,
        resource_name=s.setting.name,
        key=s.setting.key,
        value=s.value,
        stale=s.stale,
        set_by_ballast=s.in_ledger,
        set_by_hand=s.set_by_hand,
        detail=s.why,
    )


def broker_ids(opened: OpenCluster) -> Collection[int]:
    """Of the brokers that the cluster has."""
    return opened.cluster.snapshot(log_dirs=False, configs=False).broker_index


def _ids(opened: OpenCluster, named: NamedBrokers | None) -> Collection[int]:
    if named is None:
        return ()
    return named.among(broker_ids(opened) if named.patterns else ())


def _short(value: str) -> str:
    if not value:
        return "(empty)"
    return value if len(value) <= 40 else f"{value[:37]}…"


def _clean(
    opened: OpenCluster,
    topics: tuple[str, ...],
    brokers: Collection[int],
    *,
    yes: bool,
    journal: str | None,
    lock_wait_s: float,
    take_over: bool,
    output: str,
) -> int:
    from ballast.errors import Incomplete
    from ballast.executor.journal.ledger import list_unrestored
    from ballast.ports.journal import find_restart, restart_record
    from ballast.wiring.runs import is_settled, open_writer
    from ballast.wiring.throttles import as_stale, read_set_by_hand, removable, restore, select_settings

    ids = [str(b) for b in brokers]

    def going(found: Sequence[FoundThrottle]) -> list[FoundThrottle]:
        set_by_hand = select_settings([s.setting for s in found if s.set_by_hand], topics, ids)
        return [*removable(found, topics=topics, brokers=brokers), *(s for s in found if s.setting in set_by_hand)]

    if is_settled(opened, journal):
        found = judge(opened, journal)
        if not going(found):
            # Nothing is written, so no lock is wanted: it would make a journal on a cluster that has none.
            _tell_what_stays(found, ())
            return _tell_what_went((), output)
    with open_writer(
        opened,
        command="ballast throttles --clean",
        journal=journal,
        lock_wait_s=lock_wait_s,
        take_over=take_over,
    ) as writer:
        if writer.driver.open_runs():
            print_line("A run is still open; its throttles are removed when it ends (ballast runs resume).")
        else:
            for setting in list_unrestored(writer.driver.restore_throttles()):
                print_line(f"Throttle not yet removed: {setting}")
        found = judge(opened, journal)
        gone = going(found)
        _tell_what_stays(found, gone)
        for s in gone:
            print_line(f"{s.setting} = {_short(s.value)}: {s.why}.")
        if gone:
            confirm(f"Remove {human_many(len(gone), 'setting')}?", yes=yes)
            # A person may have thought about it for minutes, and another process may have begun a move.
            again = going(judge(opened, journal))
            for s in gone:
                if s not in again:
                    print_line(f"{s.setting} stays: its value has changed.")
            gone = [s for s in gone if s in again]
        set_by_hand = read_set_by_hand(writer)
        lines = as_stale(gone) | {s.setting: set_by_hand[s.setting] for s in gone if s.setting in set_by_hand}
        failures = restore(writer, lines) if lines else []
        if not failures and find_restart(writer.journal.read()) is not None:
            writer.journal.append([restart_record(None)])
            print_line("The journal that was begun again counts as whole from now on.")
    if failures:
        raise Incomplete(f"{human_many(len(failures), 'setting')} could not be removed: {failures[0]}.")
    return _tell_what_went(gone, output)


def _tell_what_stays(found: Sequence[FoundThrottle], gone: Sequence[FoundThrottle]) -> None:
    for s in found:
        if s.stale and s not in gone and s.setting.kind == "broker":
            print_line(
                f"{s.setting} = {s.value} stays: it may be a person's own. Say --brokers {s.setting.name} to remove it."
            )


def _tell_what_went(gone: Sequence[FoundThrottle], output: str) -> int:
    if output == "json":
        from ballast.cli.documents.cluster import ThrottlesRemoved

        print_json(ThrottlesRemoved(removed=[_document(s) for s in gone]))
    print_line(f"Removed {human_many(len(gone), 'setting')}." if gone else "No stale throttles.")
    return 0
