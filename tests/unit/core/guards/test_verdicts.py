"""Verdicts: decided upon by their codes and figures, and said in one place."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from ballast.cli.documents.runs import RunWaiting
from ballast.cli.run_documents import document_of
from ballast.core import guards
from ballast.core.catalogue import codes_of, key_of
from ballast.core.cluster import UNKNOWN, TopicPartition
from ballast.core.guards import Verdict, verdict
from ballast.core.guards.verdicts import ENDS, TEMPLATES
from ballast.core.throttles import RateShortfall
from ballast.executor import machine
from ballast.executor.driver.events import Refusing

NAME, OTHER = TopicPartition("t", 0), TopicPartition("u", 1)
LACK = RateShortfall(NAME, 3, "follower", 6 * 2**20, 5 * 2**20, 7 * 2**20)
LACKS = (
    "Producers write 6.0 MiB/s to t-0, which broker 3 must fetch for this move, and its throttle is 5.0 MiB/s: it would fall behind by "
    "1.0 MiB each second; at least 7.0 MiB/s is needed"
)
FULL = verdict(
    "destination-full", 3, broker=3, log_dir="", partition=NAME, free=2**20, size=2**21, failed=("/data/1", "/data/2")
)

SAID = (
    (verdict("deleted", NAME, partition=NAME), "t-0 no longer exists or is being deleted."),
    (
        verdict("foreign-reassignment", NAME, partition=NAME, replicas=(4, 1)),
        "t-0 is being moved to 4,1 by a reassignment that Ballast did not start. Wait for that move to end, or cancel it with the tool that started it.",
    ),
    (
        verdict("another-batch", NAME, partition=NAME, others=2),
        (
            "A foreign reassignment moves t-0 and 2 more partitions, and only one batch may be in progress. "
            "Ballast waits for it; if it cannot end, cancel it where it was started."
        ),
    ),
    (
        verdict("another-batch", NAME, partition=NAME, others=0),
        (
            "A foreign reassignment moves t-0, and only one batch may be in progress. "
            "Ballast waits for it; if it cannot end, cancel it where it was started."
        ),
    ),
    (verdict("already-there", NAME, partition=NAME, replicas=(1, 2)), "t-0 already has the replica list 1,2."),
    (
        verdict("modified-externally", NAME, partition=NAME, replicas=(1,), planned=(2,)),
        "t-0 has the replica list 1, and the plan was made for 2. Make a new plan.",
    ),
    (
        verdict("no-leader", NAME, partition=NAME, replicas=(1, 2)),
        "t-0 has no leader, so nothing can be copied from it. Bring one of the brokers 1,2 back.",
    ),
    (
        verdict("destination-down", 3, broker=3, partition=NAME),
        "Broker 3, where t-0 is to go, is not alive. Start it, or make a new plan without it.",
    ),
    (
        verdict("destination-cordoned", 3, broker=3, partition=NAME),
        "Broker 3, where t-0 is to go, is cordoned. Remove its log dirs from cordoned.log.dirs, or make a new plan without it.",
    ),
    (
        FULL,
        (
            "Broker 3 has 1.0 MiB free and t-0 needs 2.0 MiB. Failed there: /data/1, /data/2. "
            "Free disk space there, or make a new plan."
        ),
    ),
    (
        replace(FULL, values={**FULL.values, "log_dir": "/data/3", "failed": ()}, cause="log-dir"),
        "Log dir /data/3 of broker 3 has 1.0 MiB free and t-0 needs 2.0 MiB. Free disk space there, or make a new plan.",
    ),
    (
        verdict("destination-space-unknown", 3, broker=3, partition=NAME, failed=("/data/1",)),
        (
            "Free disk space of broker 3 is unknown (for t-0). Failed there: /data/1. "
            "Check that broker, or say --unknown-disk-space allow."
        ),
    ),
    (
        verdict("destination-space-unknown", 3, cause="unreachable", broker=3, partition=NAME),
        (
            "Free disk space of broker 3 is unknown (for t-0). It did not report its log dirs. "
            "Check that broker, or say --unknown-disk-space allow."
        ),
    ),
    (
        verdict("destination-space-unknown", 3, cause="unsized", broker=3, partition=NAME, other=OTHER),
        (
            "Free disk space of broker 3 is unknown (for t-0). u-1 is being copied there, and its size is not known. "
            "Log dirs are read again within a minute, or say --unknown-disk-space allow."
        ),
    ),
    (
        verdict("size-unknown", NAME, partition=NAME, replicas=(1, 2)),
        (
            "The size of t-0 is not known: no broker of its replicas 1,2 reported it, so it may not fit. "
            "Log dirs are read again within a minute; it requires Describe on the cluster (DescribeLogDirs). "
            "Or say --unknown-disk-space allow."
        ),
    ),
    (
        verdict("space-reserved", 3, broker=3, partition=NAME),
        "Free disk space of broker 3 is reserved for moves before t-0 in the plan. It starts when they have ended.",
    ),
    (
        verdict("drops-in-sync", NAME, partition=NAME, keeps=2, gives_up=1, in_sync=(1, 3), isr_within_s=45),
        (
            "t-0 would keep its replica on broker 2, which is out of sync, and remove the one on broker 1, which is in sync (ISR: 1,3). "
            "Bring broker 2 back in sync, or make a new plan. "
            "A follower that stops fetching leaves the ISR after at most 45 s (1.5 times replica.lag.time.max.ms)."
        ),
    ),
    (
        verdict("replicas-below-min-isr", NAME, partition=NAME, replicas=1, min_isr=2),
        (
            "t-0 has 1 replica and min.insync.replicas is 2: writes with acks=all are rejected while one is added (NOT_ENOUGH_REPLICAS). "
            "Lower min.insync.replicas, or say --replicas-below-min-isr allow during low traffic."
        ),
    ),
    (
        verdict("at-min-isr", NAME, partition=NAME, in_sync=(1,)),
        (
            "t-0 is at min ISR (ISR: 1); with one more replica out of sync it is under min ISR. "
            "Bring its out-of-sync replicas back in sync; the moves then continue."
        ),
    ),
    (
        verdict("min-isr-unknown", NAME, partition=NAME, in_sync=(1,)),
        (
            "t-0 is under-replicated (ISR: 1), and its min.insync.replicas is not known: with one more replica out of sync it may be under min ISR. "
            "It is read again within a minute; it requires DescribeConfigs on the topic."
        ),
    ),
    (
        verdict("under-replicated", OTHER, partition=NAME, other=OTHER, broker=3, in_sync=(1,)),
        (
            "u-1 on broker 3 is under-replicated (ISR: 1), and t-0 would load that broker more. "
            "Bring its out-of-sync replicas back in sync; the moves then continue."
        ),
    ),
    (
        verdict("foreign-throttle", 3, broker=3, rate_bytes_per_s=2**20, partition=NAME),
        (
            "Foreign moves on broker 3 run under their own throttle of 1.0 MiB/s, and t-0 would take part of it or change it. "
            "It waits until they have ended; --keep-rates shares their rate instead."
        ),
    ),
    (verdict("throttle-too-low", NAME, lack=LACK), f"{LACKS}. Give a higher --throttle, or --raise-throttle."),
    (
        verdict("throttle-too-low", NAME, cause="foreign", lack=LACK),
        f"{LACKS}; that throttle is that of foreign reassignments. It waits until they have ended.",
    ),
    (
        verdict("throttle-too-low", NAME, cause="headroom", lack=LACK, max_bytes_per_s=2**20),
        f"{LACKS}, and auto may give broker 3 at most 1.0 MiB/s. Wait for lower traffic, or give a rate with --throttle.",
    ),
)


@pytest.mark.parametrize(("made", "said"), SAID)
def test_each_verdict_says_what_is_wrong_and_what_to_do(made: Verdict, said: str) -> None:
    """With its figures, in one sentence or two."""
    assert str(made) == said


def test_every_verdict_is_said_here_and_made_somewhere() -> None:
    """No sentence is kept that no decision leads to."""
    assert {key_of(v.code, v.cause) for v, _ in SAID} == set(TEMPLATES)
    rooms = (*Path(guards.__path__[0]).glob("checks.py"), *Path(machine.__path__[0]).rglob("*.py"))
    sources = "\n".join(p.read_text() for p in rooms)
    assert set(codes_of(TEMPLATES)) == {c for c in re.findall(r'"([a-z-]+)"', sources) if c in TEMPLATES}
    assert set(TEMPLATES) > ENDS


def test_a_verdict_is_about_a_partition_or_a_broker() -> None:
    """By its name or its id; a move of a partition that is gone is over, and one to a broker that is down waits."""
    gone = verdict("deleted", NAME, partition=NAME)
    assert (gone.subject, gone.ends, gone.isr_within_s, gone.cause) == ("t-0", True, UNKNOWN, "")
    down = verdict("destination-down", 3, broker=3, partition=NAME)
    assert (down.subject, down.ends) == ("broker 3", False)


def test_a_verdict_without_a_sentence_is_a_bug() -> None:
    """It is found where it is made, not where it is shown."""
    with pytest.raises(ValueError, match="is not a code of Verdict"):
        verdict("because", NAME)
    with pytest.raises(ValueError, match="is not a code of Verdict"):
        verdict("deleted", NAME, cause="because")


def test_figures_are_printed_by_their_names() -> None:
    """As JSON has them: camelCase, partitions by name, a value as an object of its fields."""
    low = verdict("throttle-too-low", NAME, cause="headroom", lack=LACK, max_bytes_per_s=1)
    document = document_of(Refusing((low,)))
    assert isinstance(document, RunWaiting)
    (refusal,) = document.refusals
    assert refusal.model_dump()["parameters"] == {
        "lack": {
            "name": "t-0",
            "broker": 3,
            "side": "follower",
            "inboundBytesPerS": 6 * 2**20,
            "rateBytesPerS": 5 * 2**20,
            "neededBytesPerS": 7 * 2**20,
        },
        "maxBytesPerS": 1,
    }
