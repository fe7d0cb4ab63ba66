"""``ballast throttles``: what is set, who needs it, what was left behind; clean it up, or set one by hand."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ballast.cli.cluster_options import ClusterOptions, cluster_options
from ballast.cli.default_command import GroupWithDefault
from ballast.cli.run_options import Rate, confirm, lock_options, taking_over
from ballast.cli.run_screen import say
from ballast.cli.tables import Column, console, human_many, output_option, print_json, render_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ballast.core.leftovers import Standing
    from ballast.wiring.cluster import OpenCluster


@click.group(cls=GroupWithDefault, default="list")
def throttles() -> None:
    """List replication throttles (list, meant when nothing is named), clean up with --clean, or set one by hand."""


def judged(opened: OpenCluster, journal: str | None) -> Sequence[Standing]:
    """Every throttle setting with who needs it, empty lists too; an unreadable journal counts as empty and is said."""
    from ballast.core.leftovers import all_settings
    from ballast.errors import Unavailable
    from ballast.wiring.throttles import held_settings

    try:
        held = held_settings(opened, journal)
    except Unavailable as silence:
        say(f"The journal does not answer ({silence.message}); what Ballast itself has set cannot be told apart.")
        held = frozenset()
    return all_settings(opened.cluster.snapshot(), held)


@throttles.command("list")
@click.option("--clean", is_flag=True, help="Take away what was left behind, and what Ballast itself still owes.")
@click.option("--topic", "topics", multiple=True, help="With --clean: only this topic's lists; may be repeated.")
@click.option(
    "--broker", "brokers", type=int, multiple=True, help="With --clean: this broker's rates as well; may be repeated."
)
@click.option("--yes", "-y", is_flag=True, help="With --clean: do not ask.")
@lock_options
@output_option
@cluster_options
def list_throttles(
    *,
    clean: bool,
    topics: tuple[str, ...],
    brokers: tuple[int, ...],
    yes: bool,
    journal: str | None,
    lock_wait: float,
    output: str,
    cluster: ClusterOptions,
) -> int:
    """List every throttle setting that stands, and who needs it; with --clean take away those that nobody needs.

    Each is shown with the proof that nobody needs it, and judged once more right before it goes. A rate on a broker may be a
    person's own: it goes when a list that was left behind names its broker, or when --broker does.
    """
    if not clean and (topics or brokers or yes):
        raise click.UsageError("--topic, --broker and --yes go with --clean.")
    with cluster.open() as opened:
        if clean:
            return _clean(opened, topics, brokers, yes=yes, journal=journal, lock_wait_s=lock_wait, output=output)
        found = [s for s in judged(opened, journal) if s.value]
    if output == "json":
        print_json({"version": 1, "throttles": [_json(s) for s in found]})
        return 0
    if not found:
        say("No throttle is set.")
        return 0
    columns = [Column("on", "left"), Column("setting", "left"), Column("value", "left", 1), Column("why", "left")]
    rows = [[s.resource, s.setting.key, _short(s.value), s.why] for s in found]
    out = console()
    out.print(render_table(columns, rows, out.width))
    if any(s.stale for s in found):
        say("Take the stale ones away with: ballast throttles --clean")
    return 0


def _json(s: Standing) -> dict[str, object]:
    return {
        "kind": s.setting.kind,
        "name": s.setting.name,
        "key": s.setting.key,
        "value": s.value,
        "stale": s.stale,
        "held_by_ballast": s.held,
        "why": s.why,
    }


def _short(value: str) -> str:
    if not value:
        return "(empty)"
    return value if len(value) <= 40 else f"{value[:37]}…"


def _clean(
    opened: OpenCluster,
    topics: tuple[str, ...],
    brokers: tuple[int, ...],
    *,
    yes: bool,
    journal: str | None,
    lock_wait_s: float,
    output: str,
) -> int:
    from ballast.errors import Incomplete
    from ballast.executor.ledger import still_owed
    from ballast.wiring.runs import hand, is_settled
    from ballast.wiring.throttles import change, removable

    if is_settled(opened, journal):
        found = judged(opened, journal)
        if not removable(found, topics=topics, brokers=brokers):
            # Nothing is written, so no lock is wanted: it would make a journal on a cluster that has none.
            _tell_what_stays(found, ())
            return _tell_what_went((), output)
    with hand(
        opened, command="ballast throttles --clean", journal=journal, lock_wait_s=lock_wait_s, take_over=taking_over()
    ) as own:
        if own.driver.open_runs():
            say("A run is still open; its throttles are taken back when it ends (ballast runs resume).")
        else:
            for debt in still_owed(own.driver.pay_debts()):
                say(f"Still owed: {debt}")
        found = judged(opened, journal)
        gone = removable(found, topics=topics, brokers=brokers)
        _tell_what_stays(found, gone)
        for s in gone:
            say(f"{s.setting} = {_short(s.value)}: {s.why}.")
        if gone:
            confirm(f"Remove {human_many(len(gone), 'setting')}?", yes=yes)
            # A person may have thought about it for minutes, and somebody else may have begun a move.
            again = removable(judged(opened, journal), topics=topics, brokers=brokers)
            for s in gone:
                if s not in again:
                    say(f"{s.setting} stays: it is not what it was a moment ago.")
            gone = [s for s in gone if s in again]
        failures = change(own, dict.fromkeys((s.setting for s in gone), None)) if gone else []
    if failures:
        raise Incomplete(f"{human_many(len(failures), 'setting')} could not be removed: {failures[0]}.")
    return _tell_what_went(gone, output)


def _tell_what_stays(found: Sequence[Standing], gone: Sequence[Standing]) -> None:
    for s in found:
        if s.stale and s not in gone and s.setting.kind == "broker":
            say(f"{s.setting} = {s.value} stays: it may be a person's own. Say --broker {s.setting.name} to remove it.")


def _tell_what_went(gone: Sequence[Standing], output: str) -> int:
    if output == "json":
        print_json({"version": 1, "removed": [_json(s) for s in gone]})
    say(f"Removed {human_many(len(gone), 'setting')}." if gone else "Nothing was left behind.")
    return 0


@throttles.command("set")
@click.option("--rate", type=Rate(), required=True, help="Bytes per second, as 50MB.")
@click.option("--broker", "brokers", type=int, multiple=True, help="On this broker; all alive ones without it.")
@click.option("--topic", "topics", multiple=True, help="Throttle the replicas of this topic; may be repeated.")
@click.option(
    "--moves-of",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Throttle the moves of this reassignment JSON instead of whole topics.",
)
@lock_options
@cluster_options
def set_throttle(
    *,
    rate: int,
    brokers: tuple[int, ...],
    topics: tuple[str, ...],
    moves_of: Path | None,
    journal: str | None,
    lock_wait: float,
    cluster: ClusterOptions,
) -> int:
    """Set a throttle by hand, in the same four settings; it stays until it is taken away by hand."""
    from ballast.core.stock_json import parse_reassignment
    from ballast.core.stock_plan import plan_of_entries
    from ballast.core.throttles import (
        EVERYTHING,
        FOLLOWER_RATE,
        LEADER_RATE,
        LISTS,
        Setting,
        brokers_involved,
        entries,
    )
    from ballast.errors import Incomplete, UsageError
    from ballast.wiring.runs import hand
    from ballast.wiring.throttles import change

    if not topics and moves_of is None:
        raise UsageError("A rate alone throttles nothing.", hint="Give --topic NAME or --moves-of FILE as well.")
    with (
        cluster.open() as opened,
        hand(
            opened, command="ballast throttles set", journal=journal, lock_wait_s=lock_wait, take_over=taking_over()
        ) as own,
    ):
        state = opened.cluster.snapshot()
        missing = [t for t in topics if t not in state.topic_index]
        if missing:
            raise UsageError(f"Topic {missing[0]} does not exist.")
        values: dict[Setting, str | None] = {Setting("topic", t, k): EVERYTHING for t in topics for k in LISTS}
        on = set(brokers) or set(state.alive)
        if moves_of is not None:
            text = moves_of.read_text(encoding="utf-8")
            moves = plan_of_entries(parse_reassignment(text, source=str(moves_of)), state).moves
            values |= {s: ",".join(sorted(e)) for s, e in entries(moves).items()}
            on = set(brokers) or set(brokers_involved(moves))
        for broker in sorted(on):
            values |= {Setting("broker", str(broker), key): str(rate) for key in (LEADER_RATE, FOLLOWER_RATE)}
        failures = change(own, values)
    if failures:
        raise Incomplete(f"{human_many(len(failures), 'setting')} could not be set: {failures[0]}.")
    say(
        f"Set {human_many(len(values), 'setting')}. Take them away with: ballast throttles --clean, or in the same settings by hand."
    )
    return 0
