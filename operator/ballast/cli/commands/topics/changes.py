"""``ballast topics create`` and ``ballast topics add-partitions``: the placement is shown, then made, replica by replica as shown."""

from __future__ import annotations

import itertools
import secrets
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from ballast.cli.cluster_options import ClusterOptions, cluster_options
from ballast.cli.option_types import PLACEMENT, PLACEMENT_HELP
from ballast.cli.tables import output_option, print_line
from ballast.core.wording import human_many, human_replicas
from ballast.errors import UsageError

if TYPE_CHECKING:
    from ballast.core.cluster import Broker, ClusterState
    from ballast.core.placement import Assignment, RackMode
    from ballast.core.placement.placer import Algorithm
    from ballast.ports.cluster import Cluster

F = TypeVar("F", bound=Callable[..., int])
SHOWN_PARTITIONS = 20
ID_AND_RACK = 2


@dataclass(frozen=True, slots=True)
class Placed:
    """A placement and where it comes from."""

    assignment: Assignment
    origin: str = "manual"
    """Kafka's algorithm, or ``manual``."""
    seed: int | None = None
    """None where nothing was drawn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """How to place, as both commands take it."""

    replica_assignment: str | None
    disable_rack_aware: bool
    placement: str
    seed: int | None
    start: int | None
    shift: int | None
    brokers_file: Path | None
    snapshot: Path | None
    dry_run: bool
    yes: bool
    output: str

    @property
    def rack_aware(self) -> RackMode:
        """The mode of ``assign_replicas``."""
        return "disabled" if self.disable_rack_aware else "enforced"

    def check(self) -> None:
        """Refuse what contradicts itself."""
        if self.start is None and self.shift is not None:
            raise UsageError("A shift alone fixes nothing.", hint="Give --start as well.")
        if self.start is not None and (
            self.placement in {"kraft", "naive"} or self.seed is not None or self.replica_assignment
        ):
            raise UsageError(
                "--start and --shift fix the classic placement: others have none, and nothing is drawn or placed by hand."
            )
        if self.brokers_file is not None and self.snapshot is not None:
            raise UsageError("--brokers-file and --snapshot exclude each other.", hint="Give one of them.")

    @property
    def offline(self) -> bool:
        """Is there no cluster that could be changed?"""
        return self.brokers_file is not None or self.snapshot is not None

    def algorithm(self, state: ClusterState) -> Algorithm:
        """As told, or what the cluster's controller would use."""
        from ballast.core.placement.placer import choose_algorithm

        return choose_algorithm(self.placement, state, start=self.start)

    def draw_seed(self) -> int:
        """As told, or a fresh one, which the output names."""
        return self.seed if self.seed is not None else secrets.randbits(47)


def placement_options(command: F) -> F:
    """Add what both commands have in common."""
    for option in (
        click.option("--yes", "-y", is_flag=True, help="Do not ask."),
        click.option("--dry-run", is_flag=True, help="Show the placement and change nothing."),
        click.option("--seed", type=int, help="Repeat a placement that was shown with this seed."),
        click.option(
            "--start", type=click.IntRange(0), help="Position of the first replica of partition 0; classic placement."
        ),
        click.option("--shift", type=click.IntRange(0), help="Replica shift (nextReplicaShift).  [default: the start]"),
        click.option(
            "--brokers-file",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            metavar="FILE",
            help="Show the placement on the brokers of this file (a line for each: ID, or ID RACK); no cluster is asked.",
        ),
        click.option(
            "--snapshot",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            metavar="FILE",
            help="Show the placement on the cluster in this file (from ballast snapshot); no cluster is asked.",
        ),
        click.option(
            "--placement",
            type=PLACEMENT,
            default="auto",
            show_default=True,
            help=PLACEMENT_HELP,
        ),
        click.option("--disable-rack-aware", is_flag=True, help="Place as if there were no racks."),
        click.option(
            "--replica-assignment",
            metavar="0:1:2,1:2:0,…",
            help="Place by hand: partitions separated by commas, brokers by colons, preferred leaders first.",
        ),
    ):
        command = option(command)
    return command


@click.command("create")
@click.argument("name")
@click.option("--partitions", type=int, help="Number of partitions.")
@click.option("--replication-factor", type=int, help="Replicas of each partition.")
@click.option(
    "--topic-config", "entries", multiple=True, metavar="KEY=VALUE", help="Config of the topic; may be repeated."
)
@placement_options
@output_option("TopicPlacement")
@cluster_options
def create(
    *,
    name: str,
    partitions: int | None,
    replication_factor: int | None,
    entries: tuple[str, ...],
    cluster: ClusterOptions,
    **given: str | bool | int | None,
) -> int:
    """Create topic NAME with an explicit placement: by Kafka's own algorithm, or by hand with --replica-assignment."""
    from ballast.core.cluster.drain import refuse_drained
    from ballast.core.cluster.topic_names import check_new_topic
    from ballast.core.placement import check_manual, parse_manual
    from ballast.core.placement.java_random import JavaRandom
    from ballast.core.placement.placer import place

    wanted = Wanted(**given)  # type: ignore[arg-type]
    wanted.check()
    configs = dict(map(_entry, entries))
    by_hand = wanted.replica_assignment is not None
    if by_hand == (partitions is not None or replication_factor is not None):
        raise UsageError("Give either --partitions and --replication-factor, or --replica-assignment.")
    with _source(cluster, wanted) as (state, target, drained):
        if name in state.topic_index:
            raise UsageError(f"Topic {name} exists.", hint=f"More partitions: ballast topics add-partitions {name}.")
        check_new_topic(name, state.topic_index)
        if wanted.replica_assignment is not None:
            placed = Placed(parse_manual(wanted.replica_assignment))
            check_manual(placed.assignment, _usable_ids(state))
            refuse_drained(
                itertools.chain(*placed.assignment.values()), drained, "A replica is to go to", "Leave it out"
            )
        elif partitions is None or replication_factor is None:
            raise UsageError("--partitions and --replication-factor go together.")
        else:
            algorithm, seed = wanted.algorithm(state), wanted.draw_seed()
            usable, racks = _usable(state, drained), wanted.rack_aware
            if wanted.start is not None:
                placed = Placed(_place_fixed(wanted, usable, partitions, replication_factor), algorithm)
            else:
                rng = JavaRandom(seed)
                found = place(algorithm, usable, partitions, replication_factor, rng, rack_aware=racks)
                placed = Placed(found, algorithm, None if algorithm == "naive" else seed)
        made = placed.assignment
        question = f"Create {name} with {human_many(len(made), 'partition')} of {human_many(len(made[0]), 'replica')}?"
        act = partial(target.create_topic, name, made, configs) if target is not None else None
        return _show_and_act(wanted, state, name, placed, question=question, act=act)


@click.command("add-partitions")
@click.argument("name")
@click.option("--partitions", type=int, required=True, help="Number of partitions, those that the topic has included.")
@click.option(
    "--existing", metavar="4:2,2:5,…", help="With --brokers-file: the lists of the partitions that the topic has."
)
@placement_options
@output_option("TopicPlacement")
@cluster_options
def add_partitions(
    *, name: str, partitions: int, existing: str | None, cluster: ClusterOptions, **given: str | bool | int | None
) -> int:
    """Add partitions to topic NAME; the existing ones stay as they are.

    With --replica-assignment list all partitions, the existing ones first; these are skipped, as kafka-topics does.
    """
    from ballast.core.cluster.drain import refuse_drained
    from ballast.core.placement import check_expansion, check_manual_expansion, parse_manual
    from ballast.core.placement.java_random import JavaRandom
    from ballast.core.placement.placer import expand

    wanted = Wanted(**given)  # type: ignore[arg-type]
    wanted.check()
    if (existing is not None) != (wanted.brokers_file is not None):
        raise UsageError("--existing and --brokers-file go together: a file of brokers knows no topic.")
    with _source(cluster, wanted) as (state, target, drained):
        present = parse_manual(existing) if existing is not None else _present(name, state)
        if wanted.replica_assignment is not None:
            manual = parse_manual(wanted.replica_assignment)
            placed = Placed(check_manual_expansion(present, partitions, manual, _usable_ids(state)))
            refuse_drained(
                itertools.chain(*placed.assignment.values()), drained, "A replica is to go to", "Leave it out"
            )
        elif wanted.start is not None:
            added, factor = check_expansion(present, partitions), len(present[0])
            placed = Placed(_place_fixed(wanted, _usable(state, drained), added, factor, first=len(present)), "classic")
        else:
            algorithm, seed = wanted.algorithm(state), wanted.draw_seed()
            rng = JavaRandom(seed)
            usable = _usable(state, drained)
            found = expand(algorithm, usable, present, partitions, rng, rack_aware=wanted.rack_aware)
            placed = Placed(found, algorithm, seed if algorithm == "kraft" else None)
        question = f"Add {human_many(len(placed.assignment), 'partition')} to the {len(present)} of {name}?"
        more = placed.assignment
        act = partial(target.create_partitions, name, partitions, more) if target is not None else None
        return _show_and_act(wanted, state, name, placed, question=question, act=act)


@contextmanager
def _source(cluster: ClusterOptions, wanted: Wanted) -> Iterator[tuple[ClusterState, Cluster | None, frozenset[int]]]:
    """The brokers and topics to place by, the cluster that can be changed, and which of its brokers are drained.

    No cluster, and none drained, where they come from a file.
    """
    if wanted.brokers_file is not None:
        yield _brokers_of(wanted.brokers_file), None, frozenset()
    elif wanted.snapshot is not None:
        from ballast.cli.commands.snapshot import read_snapshot

        yield read_snapshot(wanted.snapshot).state, None, frozenset()
    else:
        from ballast.app.journal_reading import read_drained

        with cluster.open() as opened:
            state = opened.cluster.snapshot(configs=False)
            balance = cluster.settings().balance.with_drained(read_drained(opened, state, print_line))
            yield state, opened.cluster, balance.draining


def _brokers_of(file: Path) -> ClusterState:
    """A line for each broker, its id and perhaps its rack; ``#`` begins a remark."""
    from ballast.core.cluster import Broker, build

    brokers = []
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        words = line.split("#", 1)[0].split()
        if not words:
            continue
        if not (words[0].isascii() and words[0].isdigit()) or len(words) > ID_AND_RACK:
            raise UsageError(f"Line {number} of {file.name} is not ID or ID RACK: {line.strip()!r}.")
        brokers.append(Broker(int(words[0]), host="", rack=words[1] if len(words) == ID_AND_RACK else None))
    if not brokers:
        raise UsageError(f"{file.name} names no broker.", hint="Write a line for each: its id, and perhaps its rack.")
    return build("", tuple(sorted(brokers, key=lambda b: b.id)), (), [])


def _present(name: str, state: ClusterState) -> Assignment:
    _check_topic(name, state)
    rows = (state.partitions.topic == state.topic_index[name]).nonzero()[0].tolist()
    return {int(state.partitions.number[row]): state.target(row) for row in rows}


def _place_fixed(wanted: Wanted, brokers: list[Broker], partitions: int, factor: int, *, first: int = 0) -> Assignment:
    """The classic placement from a start and a shift that were given."""
    from ballast.core.placement import assign_replicas

    return assign_replicas(
        brokers,
        partitions,
        factor,
        start_index=wanted.start,
        replica_shift=wanted.shift,
        start_partition=first,
        rack_aware=wanted.rack_aware,
    )


def _entry(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise UsageError(f"--topic-config takes KEY=VALUE, and {text!r} is not that.")
    return key.strip(), value.strip()


def _check_topic(name: str, state: ClusterState) -> None:
    state.require_topics((name,), hint=f"Create it: ballast topics create {name}.")
    if state.topics[state.topic_index[name]].deleting:
        raise UsageError(f"Topic {name} is being deleted.")


def _usable(state: ClusterState, drained: Collection[int] = ()) -> list[Broker]:
    """Brokers that are alive and take new replicas."""
    return [b for b in state.brokers if b.alive and not b.cordoned and b.id not in drained]


def _usable_ids(state: ClusterState) -> frozenset[int]:
    return frozenset(b.id for b in _usable(state))


def _show_and_act(
    wanted: Wanted, state: ClusterState, name: str, placed: Placed, *, question: str, act: Callable[[], None] | None
) -> int:
    if wanted.output == "json":
        _print_document(name, placed, dry_run=wanted.dry_run or act is None)
    else:
        _draw(state, placed.assignment)
    if placed.origin != "manual":
        again = f"; --seed {placed.seed} gives the same again" if placed.seed is not None else ""
        click.echo(f"ballast: placed by the {placed.origin} algorithm{again}.", err=True)
    if wanted.dry_run or act is None:
        return 0
    # Without a person at the terminal there is no answer: the command itself is the decision.
    if sys.stdin.isatty() and not wanted.yes and not click.confirm(question, err=True):
        raise click.Abort
    act()
    click.echo(f"ballast: done, {name} is placed as shown.", err=True)
    return 0


def _print_document(name: str, placed: Placed, *, dry_run: bool) -> None:
    from ballast.cli.documents.cluster import NewPartition, TopicPlacement
    from ballast.cli.tables import print_json

    print_json(
        TopicPlacement(
            topic=name,
            partitions=[NewPartition(partition=n, replicas=list(r)) for n, r in sorted(placed.assignment.items())],
            algorithm=placed.origin,
            seed=placed.seed,
            dry_run=dry_run,
        )
    )


def _draw(state: ClusterState, assignment: Assignment) -> None:
    """The new partitions, the first few if there are many, and what each broker gets."""
    from collections import Counter

    from ballast.cli.tables import Column, console, human_count, render_table

    screen = console()
    racks = {b.id: b.rack for b in state.brokers}
    rows = [
        [str(number), human_replicas(replicas), " ".join(str(racks.get(b) or "-") for b in replicas)]
        for number, replicas in sorted(assignment.items())
    ]
    columns = [Column("PARTITION"), Column("REPLICAS", "left"), Column("RACKS", "left", rank=1)]
    screen.print(render_table(columns, rows[:SHOWN_PARTITIONS], screen.width))
    if len(rows) > SHOWN_PARTITIONS:
        screen.print(f"… and {len(rows) - SHOWN_PARTITIONS:,} more partitions (--output json shows all)")
    replicas = Counter(b for r in assignment.values() for b in r)
    leaders = Counter(r[0] for r in assignment.values())
    summary = [
        [str(b.id), str(b.rack or "-"), human_count(replicas[b.id]), human_count(leaders[b.id])]
        for b in state.brokers
        if b.alive
    ]
    screen.print()
    screen.print(
        render_table(
            [Column("BROKER"), Column("RACK", "left"), Column("NEW REPLICAS"), Column("PREFERRED LEADER OF")],
            summary,
            screen.width,
        )
    )
