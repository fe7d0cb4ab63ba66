"""Every number and picture of docs/placement.md and docs/leadership.md, made by the code that they describe.

    python bench/docs_figures.py            print the figures
    python bench/docs_figures.py --write    put them into the documents and redraw docs/pictures/

A figure stands in a document between ``<!-- figure: name -->`` and ``<!-- end -->``.  A test holds the documents to this.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import permutations
from pathlib import Path
from random import Random
from typing import Final

import numpy as np

from ballast.core.cluster import Broker, PartitionRow, Topic, build
from ballast.core.leadership import imbalance
from ballast.core.leadership.reorder import balance_counts, balance_weights, choices, reorder_moves
from ballast.core.leadership.skew import preferred_skew
from ballast.core.placement import (
    Assignment,
    BrokerMetadata,
    assign_replicas,
    expand_replicas,
    expansion_start,
    rack_alternated,
)
from ballast.core.placement.colocation import colocation
from ballast.core.placement.java_random import JavaRandom
from ballast.core.placement.kraft import place_kraft
from ballast.core.placement.naive import naive_layout

DOCS: Final = Path(__file__).resolve().parent.parent / "docs"
DOCUMENTS: Final = ("placement.md", "leadership.md")
ROLES: Final = ("preferred leader", "first follower", "second follower")
INK: Final = ("#1f4e79", "#5b9bd5", "#bdd7ee")
RACK_INK: Final = ("#c55a11", "#548235", "#7030a0")


def plain(count: int) -> list[BrokerMetadata]:
    """Brokers without racks."""
    return [BrokerMetadata(i) for i in range(count)]


def two_racks() -> list[BrokerMetadata]:
    """Brokers 0, 1, 2 in rack a and 3, 4, 5 in rack b."""
    return [BrokerMetadata(i, "ab"[i // 3]) for i in range(6)]


def rows_of(assignment: Assignment) -> str:
    """One partition a line."""
    return "\n".join(f"p{number:<3} {' '.join(map(str, replicas))}" for number, replicas in assignment.items())


def walk_table() -> str:
    """Who holds what in which role: five brokers, ten partitions, start 0, shift 0."""
    placed = assign_replicas(plain(5), 10, 3, start_index=0, replica_shift=0)
    lines = ["                  " + "".join(f"broker {b}   " for b in range(5)).rstrip()]
    for at, role in enumerate(ROLES):
        held = [" ".join(f"p{p}" for p, r in placed.items() if r[at] == b) for b in range(5)]
        lines.append(f"{role:<18}" + "".join(f"{h:<11}" for h in held).rstrip())
    return "\n".join(lines)


def racks_walk() -> str:
    """The alternated list and what comes of it."""
    brokers = two_racks()
    order = rack_alternated({b.id: str(b.rack) for b in brokers})
    placed = assign_replicas(brokers, 6, 3, start_index=3, replica_shift=0)
    return f"alternated list   {' '.join(map(str, order))}\nstart 3, shift 0:\n{rows_of(placed)}"


def naive_piles() -> str:
    """A hundred topics of four partitions on twelve brokers: where their leaders are."""
    brokers, rng = plain(12), Random(1)
    layouts: dict[str, list[Assignment]] = {
        "naive": [naive_layout(brokers, 4, 3) for _ in range(100)],
        "Kafka": [assign_replicas(brokers, 4, 3, rng=rng) for _ in range(100)],
    }
    lines = ["100 topics of 4 partitions on 12 brokers", "        partition 0 leads on    leaders per broker"]
    for name, topics in layouts.items():
        first = Counter(t[0][0] for t in topics)
        leaders = Counter(r[0] for t in topics for r in t.values())
        where = f"{len(first)} broker{'s' if len(first) > 1 else ''}"
        lines.append(f"{name:<8}{where:<24}{min(leaders[b] for b in range(12))} to {max(leaders.values())}")
    return "\n".join(lines)


def naive_sets() -> str:
    """Seventy-two partitions on twelve brokers: how many replica lists and sets there are, and who steps in."""
    brokers = plain(12)
    layouts = {
        "naive": naive_layout(brokers, 72, 3),
        "Kafka": assign_replicas(brokers, 72, 3, start_index=0, replica_shift=0),
    }
    lines = [
        "72 partitions on 12 brokers",
        "        different lists   different sets   broker 0 dies: its leaders go to",
    ]
    for name, placed in layouts.items():
        lists, sets = len(set(placed.values())), len({frozenset(r) for r in placed.values()})
        heirs = Counter(r[1] for r in placed.values() if r[0] == 0)
        who = f"{len(heirs)} broker{'s' if len(heirs) > 1 else ''}, at most {max(heirs.values())} each"
        lines.append(f"{name:<8}{lists:<18}{sets:<17}{who}")
    return "\n".join(lines)


def kafkas_72() -> Assignment:
    """72 partitions of three on twelve brokers by Kafka's classic algorithm."""
    return assign_replicas(plain(12), 72, 3, start_index=0, replica_shift=0)


def naive_72() -> Assignment:
    """The same in the naive layout."""
    return naive_layout(plain(12), 72, 3)


def losses() -> str:
    """What the loss of one broker and of two does to both."""
    lines = [
        "72 partitions on 12 brokers",
        "        one broker lost: its leaders go to     two lost: partitions that lose two replicas",
    ]
    for name, placed in (("Kafka", kafkas_72()), ("naive", naive_72())):
        found = colocation(list(placed.values()), range(12))
        heirs = f"{found.min_brokers_taking_over} brokers or more" if found.min_brokers_taking_over > 1 else "1 broker"
        one = f"{heirs}, at most {found.max_leaders_taken_over} each"
        lines.append(
            f"{name:<8}{one:<39}{found.max_partitions_shared_by_pair} for the worst two, {found.mean_partitions_shared_by_pair:g} on average"
        )
    return "\n".join(lines)


def naive_equal() -> str:
    """For which starts and shifts the naive layout is Kafka's."""
    lines = []
    for partitions in (5, 6, 10):
        naive = naive_layout(plain(5), partitions, 3)
        equal = [
            f"start {start} shift {shift}"
            for start in range(5)
            for shift in range(4)
            if assign_replicas(plain(5), partitions, 3, start_index=start, replica_shift=shift) == naive
        ]
        lines.append(f"5 brokers, {partitions:>2} partitions: {', '.join(equal) or 'none'}")
    one = assign_replicas(plain(5), 3, 3, start_index=0, replica_shift=1)
    lines.append("\nstart 0, shift 1 leaves a gap between the leader and its first follower:\n" + rows_of(one))
    return "\n".join(lines)


def expansion() -> str:
    """Where new partitions start, and why that may surprise."""
    brokers = two_racks()
    existing: Assignment = {0: (4, 2), 1: (2, 5)}
    start = expansion_start(brokers, 4)
    order = rack_alternated({b.id: str(b.rack) for b in brokers})
    grown = expand_replicas(brokers, existing, 5)
    return (
        f"present\n{rows_of(existing)}\n"
        f"partition 0 begins with broker 4, which is at position {start} by id;\n"
        f"position {start} of the alternated list {' '.join(map(str, order))} is broker {order[start]}\n"
        f"added\n{rows_of(grown)}"
    )


def kraft_sample() -> str:
    """One sample of KRaft's placer, and another."""
    brokers = [BrokerMetadata(i, "abc"[i // 2]) for i in range(6)]
    racks = {b.id: b.rack for b in brokers}
    lines = []
    for seed in (7, 1_000_000_007):
        placed = place_kraft(brokers, 4, 3, JavaRandom(seed))
        rows = "   ".join(" ".join(f"{racks[b]}{b}" for b in r) for r in placed.values())
        lines.append(f"seed {seed:<11} {rows}")
    return "\n".join(lines)


def neighbouring_seeds() -> str:
    """First draws of java.util.Random from seeds next to each other."""
    below = {n: " ".join(str(JavaRandom(seed).next_int(n)) for seed in range(12)) for n in (8, 12)}
    return "\n".join(f"seeds 0 to 11, a number below {n:>2}:   {drawn}" for n, drawn in below.items())


def ratio_example() -> str:
    """Three brokers, one of them restarted."""
    rows = [PartitionRow("t", i, 2 if i < 3 else 1, (1, 2), (1, 2)) for i in range(20)]
    rows += [PartitionRow("t", 20 + i, 3 if i < 2 else 2, (2, 3), (2, 3)) for i in range(20)]
    rows += [PartitionRow("t", 40 + i, 3, (3, 1), (3, 1)) for i in range(20)]
    state = build("c", tuple(Broker(b) for b in (1, 2, 3)), (Topic("t"),), rows)
    lines = ["broker   preferred   led by others   ratio    over 10 %"]
    for b in imbalance(state):
        over = "yes" if b.over else "no"
        lines.append(f"{b.broker:<9}{b.preferred:<12}{b.not_led:<16}{b.ratio * 100:<5.1f}%   {over}")
    return "\n".join(lines)


def crooked(partitions: int = 60, brokers: int = 6, seed: int = 3) -> list[tuple[int, ...]]:
    """Replica lists whose first is the lowest id three times out of four: a cluster that grew."""
    rng = Random(seed)
    lists = [tuple(rng.sample(range(brokers), 3)) for _ in range(partitions)]
    return [tuple(sorted(r)) if rng.random() < 0.75 else r for r in lists]


def loads_of(lists: Iterable[tuple[int, ...]]) -> list[int]:
    """Preferred leaders per broker."""
    count = Counter(r[0] for r in lists)
    return [count[b] for b in range(6)]


def balanced() -> tuple[list[int], list[int], int]:
    """Before, after, and the number of replica list changes."""
    lists = crooked()
    rows = [PartitionRow("t", i, r[0], r, r) for i, r in enumerate(lists)]
    state = build("c", tuple(Broker(b) for b in range(6)), (Topic("t"),), rows)
    assert imbalance(state).worst_ratio == 0
    assert preferred_skew(state).topics
    moves = reorder_moves(state, balance_counts(choices(state)))
    new = {m.partition: m.new for m in moves}
    return loads_of(lists), loads_of([new.get(i, r) for i, r in enumerate(lists)]), len(moves)


def reorder_example() -> str:
    """Sixty partitions on six brokers."""
    before, after, moves = balanced()
    return (
        "broker                   " + "".join(f"{b:>4}" for b in range(6)) + "\n"
        "preferred leaders before " + "".join(f"{n:>4}" for n in before) + "\n"
        "preferred leaders after  "
        + "".join(f"{n:>4}" for n in after)
        + f"\nreplica list changes {moves}, bytes moved 0"
    )


def bytes_example() -> str:
    """Gaps of the bytes version on generated clusters."""
    lines = ["partitions   brokers   bound GB   reached GB   gap"]
    for partitions, brokers in ((60, 6), (600, 12), (6_000, 60)):
        rng = np.random.default_rng(1)
        rows = [PartitionRow("t", i, r[0], r, r) for i, r in enumerate(crooked(partitions, brokers, seed=partitions))]
        state = build("c", tuple(Broker(b) for b in range(brokers)), (Topic("t"),), rows)
        problem = choices(state)
        found = balance_weights(problem, rng.lognormal(20, 1, len(problem)).astype(np.int64))
        lines.append(
            f"{partitions:<13,}{brokers:<10}{found.bound / 1e9:<11.3f}{found.maximum / 1e9:<13.3f}{found.gap * 100:.3f} %"
        )
    return "\n".join(lines)


FIGURES: Final[dict[str, Callable[[], str]]] = {
    "walk": walk_table,
    "racks": racks_walk,
    "naive-piles": naive_piles,
    "naive-sets": naive_sets,
    "naive-equal": naive_equal,
    "expansion": expansion,
    "kraft": kraft_sample,
    "seeds": neighbouring_seeds,
    "ratio": ratio_example,
    "losses": losses,
    "reorder": reorder_example,
    "bytes": bytes_example,
}


def svg(width: int, height: int, body: list[str]) -> str:
    """A picture with a white ground, readable on any page."""
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    style = 'font-family="sans-serif" font-size="13"'
    ground = f'<rect width="{width}" height="{height}" fill="#ffffff"/>'
    return "\n".join([f"{head} {style}>", ground, *body, "</svg>", ""])


def box(  # noqa: PLR0917 — a rectangle is four numbers
    x: float, y: float, width: float, height: float, fill: str, label: str = "", *, ink: str = "#ffffff"
) -> str:
    """A filled rectangle with a label in its middle."""
    drawn = f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="3" fill="{fill}"/>'
    if label:
        middle = f'x="{x + width / 2:g}" y="{y + height / 2 + 4.5:g}" text-anchor="middle"'
        drawn += f'<text {middle} fill="{ink}">{label}</text>'
    return drawn


def text(x: float, y: float, words: str, *, bold: bool = False) -> str:
    """A line of text."""
    weight = ' font-weight="bold"' if bold else ""
    return f'<text x="{x:g}" y="{y:g}" fill="#222222"{weight}>{words}</text>'


def grid(x: int, title: str, placed: Assignment, brokers: int) -> list[str]:
    """Partitions down, brokers across, roles as shades."""
    body = [text(x, 20, title, bold=True)]
    body += [text(x + 44 + 40 * b, 42, f"b{b}") for b in range(brokers)]
    for number, replicas in placed.items():
        y = 50 + 24 * number
        body.append(text(x, y + 15, f"p{number}"))
        for b in range(brokers):
            role = replicas.index(b) if b in replicas else None
            shade = INK[role] if role is not None else "#f2f2f2"
            label = "LFf"[role] if role is not None else ""
            body.append(box(x + 36 + 40 * b, y, 36, 20, shade, label, ink="#ffffff" if role != 2 else "#222222"))
    return body


def walk_picture() -> str:
    """Kafka's walk beside the naive layout."""
    kafkas = assign_replicas(plain(5), 10, 3, start_index=0, replica_shift=0)
    body = grid(16, "Kafka: start 0, shift 0", kafkas, 5)
    body += grid(300, "naive", naive_layout(plain(5), 10, 3), 5)
    body += [box(16, 304, 20, 16, INK[0], "L"), text(42, 317, ROLES[0])]
    body += [box(166, 304, 20, 16, INK[1], "F"), text(192, 317, ROLES[1])]
    body += [box(306, 304, 20, 16, INK[2], "f", ink="#222222"), text(332, 317, ROLES[2])]
    body.append('<line x1="10" y1="169" x2="560" y2="169" stroke="#c00000" stroke-dasharray="5 4"/>')
    body.append(text(456, 317, "- - - every n partitions"))
    return svg(620, 332, body)


def racks_picture() -> str:
    """Two racks, the alternated list, and the walk of partition 0."""
    brokers = two_racks()
    racks = {b.id: str(b.rack) for b in brokers}
    order = rack_alternated(racks)
    ink = {b: RACK_INK["ab".index(racks[b])] for b in racks}
    body = [text(16, 24, "rack a", bold=True), text(16, 56, "rack b", bold=True)]
    body += [box(76 + 44 * i, 9, 38, 22, ink[b], str(b)) for i, b in enumerate((0, 1, 2))]
    body += [box(76 + 44 * i, 41, 38, 22, ink[b], str(b)) for i, b in enumerate((3, 4, 5))]
    body += [text(16, 106, "one of each rack in turn")]
    body += [box(200 + 44 * i, 90, 38, 22, ink[b], str(b)) for i, b in enumerate(order)]
    placed = assign_replicas(brokers, 2, 3, start_index=3, replica_shift=0)
    for number, replicas in placed.items():
        y = 144 + 40 * number
        body.append(text(16, y + 16, f"p{number}: start 3 + {number}, shift 0"))
        for i, b in enumerate(order):
            role = replicas.index(b) if b in replicas else None
            body.append(box(200 + 44 * i, y, 38, 22, ink[b] if role is not None else "#e7e6e6"))
            if role is not None:
                body.append(
                    f'<text x="{219 + 44 * i}" y="{y + 15.5:g}" text-anchor="middle" fill="#ffffff">{"LFf"[role]}</text>'
                )
    body.append(text(200, 236, "L leader, F first follower, f second follower"))
    return svg(500, 250, body)


def reorder_picture() -> str:
    """Preferred leaders per broker before and after."""
    before, after, moves = balanced()
    body = []
    for column, (title, loads) in enumerate((("before", before), (f"after {moves} replica list changes", after))):
        x = 20 + 270 * column
        body.append(text(x, 20, title, bold=True))
        for b, load in enumerate(loads):
            y = 32 + 26 * b
            body += [
                text(x, y + 15, f"b{b}"),
                box(x + 28, y, 8 * load, 20, INK[0]),
                text(x + 34 + 8 * load, y + 15, str(load)),
            ]
    return svg(560, 196, body)


def pairs_picture() -> str:
    """How many partitions each two brokers share: Kafka's placement beside the naive layout."""
    body = []
    for column, (title, placed) in enumerate((("Kafka: start 0, shift 0", kafkas_72()), ("naive", naive_72()))):
        x = 16 + 310 * column
        shared = Counter(pair for r in placed.values() for pair in permutations(r, 2))
        most = max(shared.values())
        body.append(text(x, 20, title, bold=True))
        for a in range(12):
            body += [text(x + 24 + 22 * a, 42, str(a)), text(x, 65 + 22 * a, str(a))]
            for b in range(12):
                count = shared[a, b]
                fill = "#dddddd" if a == b else INK[0] if count == most else INK[1] if count > 1 else INK[2]
                label = "" if a == b else str(count)
                fill = "#f2f2f2" if a != b and not count else fill
                ink = "#ffffff" if fill in INK[:2] else "#222222"
                body.append(box(x + 20 + 22 * a, 50 + 22 * b, 20, 20, fill, label, ink=ink))
    body.append(
        text(16, 340, "Each cell: partitions that lose two of their three replicas when these two brokers are lost.")
    )
    return svg(630, 352, body)


PICTURES: Final[dict[str, Callable[[], str]]] = {
    "placement-walk.svg": walk_picture,
    "placement-racks.svg": racks_picture,
    "placement-pairs.svg": pairs_picture,
    "leadership-reorder.svg": reorder_picture,
}


def filled(document: str) -> str:
    """The document with every figure as the code gives it now."""

    def figure(match: re.Match[str]) -> str:
        name = match.group(1)
        return f"<!-- figure: {name} -->\n```text\n{FIGURES[name]()}\n```\n<!-- end -->"

    return re.sub(r"<!-- figure: ([a-z-]+) -->.*?<!-- end -->", figure, document, flags=re.DOTALL)


def main() -> None:
    """Print, or write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    if not parser.parse_args().write:
        for name, make in FIGURES.items():
            sys.stdout.write(f"--- {name}\n{make()}\n\n")
        return
    for name in DOCUMENTS:
        path = DOCS / name
        path.write_text(filled(path.read_text()))
    (DOCS / "pictures").mkdir(exist_ok=True)
    for name, draw in PICTURES.items():
        (DOCS / "pictures" / name).write_text(draw())


if __name__ == "__main__":
    main()
