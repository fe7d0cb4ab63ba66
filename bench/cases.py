"""Makes clusters on paper, in the resource form that ``forms`` reads: ``python bench/cases.py OUT --brokers 100 …``.

Topics have widths and rates of unlike size; old brokers attracted replicas and leaders unevenly; new ones hold nothing.
The same arguments give the same files.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.forms import Case, read, written

Floats = npt.NDArray[np.float64]
DISK_MB, NET_KBS, CPU_PCT = 4_000_000.0, 1_200_000.0, 100.0
DISK_USE, IN_USE, OUT_USE, CPU_USE = 0.45, 0.15, 0.22, 0.30


def make(
    *, brokers: int, racks: int, topics: int, partitions: int, seed: int, new: int = 0, down: int = 0, factor: int = 3
) -> tuple[list[str], list[str]]:
    """Rows of ``brokers.csv`` and ``partitions.csv``, headers included."""
    rng = np.random.default_rng(seed)
    width = _widths(rng, topics, partitions)
    topic = np.repeat(np.arange(topics), width)
    number = np.concatenate([np.arange(w) for w in width])
    rate = rng.lognormal(0, 1.2, topics)[topic] * rng.lognormal(0, 0.3, partitions)
    size = rate * rng.lognormal(0, 0.5, topics)[topic] * rng.lognormal(0, 0.2, partitions)
    fan = rng.choice([0.5, 1.0, 1.0, 2.0, 3.0], topics)[topic]
    out = rate * fan * rng.lognormal(0, 0.1, partitions)
    for figure in (rate, size):
        np.minimum(figure, np.quantile(figure, 0.999), out=figure)
    size *= DISK_USE * DISK_MB * brokers / (size.sum() * factor)
    rate *= IN_USE * NET_KBS * brokers / (rate.sum() * factor)
    copies = rate * (factor - 1)
    out *= max(OUT_USE * NET_KBS * brokers - copies.sum(), copies.sum() * 0.1) / out.sum()
    leading, following = 0.7 * rate + 0.15 * (out + copies), 0.15 * rate
    per_cpu = CPU_USE * CPU_PCT * brokers / (leading.sum() + (factor - 1) * following.sum())
    rack = np.arange(brokers) % racks
    pull = rng.normal(0, 0.2, brokers)
    pull[brokers - new :] = -np.inf
    lists = _place(rng, pull, rack, partitions, factor)
    lists = _lead(rng, rng.normal(0, 0.3, brokers), lists)
    head = ["broker,rack,state,disk_mb,nw_in_kbs,nw_out_kbs,cpu_pct"]
    for b in range(brokers):
        state = "DEAD" if b < down else "NEW" if b >= brokers - new else "ALIVE"
        head.append(f"{b},r{rack[b]},{state},{DISK_MB},{NET_KBS},{NET_KBS},{CPU_PCT}")
    rows = [
        "topic,partition,replicas,size_mb,bytes_in_kbs,consumer_out_kbs,repl_out_kbs,cpu_leader_pct,cpu_follower_pct"
    ]
    for j in range(partitions):
        members = ";".join(map(str, lists[j].tolist()))
        rows.append(
            f"t{topic[j]:05d},{number[j]},{members},{size[j]:.3f},{rate[j]:.4f},{out[j]:.4f},{copies[j]:.4f},"
            f"{leading[j] * per_cpu:.7f},{following[j] * per_cpu:.7f}"
        )
    return head, rows


def small(seed: int = 1) -> Case:
    """A cluster of 9 brokers for warming up and tests."""
    return written("small", *make(brokers=9, racks=3, topics=12, partitions=300, seed=seed))


def _widths(rng: np.random.Generator, topics: int, partitions: int) -> npt.NDArray[np.int64]:
    """Partitions by topic: many narrow topics, few wide ones, ``partitions`` in all."""
    share = np.arange(1, topics + 1) ** -0.8
    rng.shuffle(share)
    width: npt.NDArray[np.int64] = np.maximum(1, np.floor(share / share.sum() * partitions)).astype(np.int64)
    order = np.argsort(-width, kind="stable").tolist()
    while width.sum() != partitions:
        step = 1 if width.sum() < partitions else -1
        for t in order[: abs(int(partitions - width.sum()))]:
            width[t] = max(width[t] + step, 1)
    return width


def _place(
    rng: np.random.Generator, pull: Floats, rack: npt.NDArray[np.int64], partitions: int, factor: int
) -> npt.NDArray[np.int64]:
    """Weighted draws without repetition, one broker a rack (exponential races)."""
    racks = int(rack.max()) + 1
    lists = np.empty((partitions, factor), np.int64)
    for begin in range(0, partitions, 4096):
        end = min(partitions, begin + 4096)
        race = pull[None, :] + rng.gumbel(size=(end - begin, len(pull)))
        winners = np.empty((end - begin, racks), np.int64)
        speed = np.empty((end - begin, racks))
        for r in range(racks):
            members = np.flatnonzero(rack == r)
            best = race[:, members].argmax(axis=1)
            winners[:, r] = members[best]
            speed[:, r] = race[np.arange(end - begin), winners[:, r]]
        first = np.argsort(-speed, axis=1)[:, :factor]
        lists[begin:end] = np.take_along_axis(winners, first, axis=1)
    return lists


def _lead(rng: np.random.Generator, pull: Floats, lists: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Order each list by a race of its own, so that leadership is skewed apart from replicas."""
    race = pull[lists] + rng.gumbel(size=lists.shape)
    ordered: npt.NDArray[np.int64] = np.take_along_axis(lists, np.argsort(-race, axis=1), axis=1)
    return ordered


def main() -> None:
    """Write the two files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    for name, default in (("brokers", 100), ("racks", 5), ("topics", 800), ("partitions", 16_667), ("seed", 1)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--new", type=int, default=0, help="brokers that hold nothing yet")
    parser.add_argument("--down", type=int, default=0, help="brokers that died")
    parser.add_argument("--factor", type=int, default=3, help="replicas of each partition")
    said = vars(parser.parse_args())
    out: Path = said.pop("out")
    brokers, partitions = make(**said)
    out.mkdir(parents=True, exist_ok=True)
    (out / "brokers.csv").write_text("\n".join(brokers) + "\n", encoding="utf-8")
    (out / "partitions.csv").write_text("\n".join(partitions) + "\n", encoding="utf-8")
    print(read(out).state.cluster_id, len(partitions) - 1, "partitions on", len(brokers) - 1, "brokers")


if __name__ == "__main__":
    main()
