"""Where clients are and what traffic between racks costs, which metadata does not tell: values only."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isclose
from typing import Final

from ballast.core.regex import check_regex
from ballast.errors import UsageError

LEAST_SAVING: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientRacks:
    """In which racks the clients of some topics are."""

    topics: str
    """The topics of the entry: a regular expression on the whole name. Where several entries match a topic, the first one counts."""
    producers: Mapping[str, float] = field(default_factory=dict)
    """By rack, the fraction of the bytes that producers in that rack write; the fractions add up to 1. Empty: evenly from the racks of the
    brokers."""
    consumers: Mapping[str, float] = field(default_factory=dict)
    """By rack, the fraction of the bytes that consumers in that rack read; the fractions add up to 1. Empty: evenly to the racks of the
    brokers."""

    def __post_init__(self) -> None:
        check_regex(self.topics, "cross_rack.clients")
        for who, shares in (("producers", self.producers), ("consumers", self.consumers)):
            _check_shares(self.topics, who, shares)
        if not (self.producers or self.consumers):
            raise UsageError(
                f"The entry of cross_rack.clients for topics {self.topics!r} names neither producers nor consumers.",
                hint="Clients that are spread evenly over the racks need no entry.",
            )

    def matches(self, topic: str) -> bool:
        """Does it hold for this topic?"""
        return re.fullmatch(self.topics, topic) is not None


def _check_shares(topics: str, who: str, shares: Mapping[str, float]) -> None:
    wrong = sorted(rack for rack, share in shares.items() if not 0 <= share <= 1)
    if wrong:
        raise UsageError(
            f"The share of the {who} of topics {topics!r} in rack {wrong[0]!r} is {shares[wrong[0]]:g}: it should be from 0 to 1.",
            hint="0.5 means half of the bytes.",
        )
    total = sum(shares.values())
    if shares and not isclose(total, 1, abs_tol=1e-6):
        raise UsageError(
            f"The shares of the {who} of topics {topics!r} add up to {total:g}: they should add up to 1.",
            hint="Name every rack in which some of them are, those without brokers too.",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossRackPolicy:
    """Traffic between racks: what it costs, and whether leaders are placed for less of it."""

    leaders: bool = False
    """True makes `plan balance`, `plan leaders` and the daemon choose leaders for less traffic between racks, within ranges that are met.
    No data moves for it."""
    min_saving_bytes_per_s: int = LEAST_SAVING
    """Minimum bytes/s that each change of leader saves. The default, 10000, is 0.8 GiB a day."""
    price_per_gib: float | None = None
    """The price of one GiB (2^30 bytes) from one rack to another, the charges of both directions together. Empty: only bytes are shown."""
    currency: str = ""
    """The currency of `price_per_gib`, such as `USD`: shown beside amounts."""
    nearest_replica: bool | None = None
    """True when consumers fetch from a replica in their own rack (`client.rack`). Empty: by the brokers' `replica.selector.class`."""
    clients: tuple[ClientRacks, ...] = ()
    """In which racks the producers and the consumers of topics are. Clients of topics without an entry are evenly in every rack."""

    def __post_init__(self) -> None:
        if self.min_saving_bytes_per_s < 1:
            raise UsageError(
                f"min_saving_bytes_per_s is {self.min_saving_bytes_per_s}: it should be at least 1.",
                hint="A change of leader that saves nothing is none.",
            )
        if self.price_per_gib is not None and not 0 <= self.price_per_gib < float("inf"):
            raise UsageError(f"price_per_gib is {self.price_per_gib:g}: it cannot be negative or endless.")
        if self.currency and self.price_per_gib is None:
            raise UsageError(
                f"currency is {self.currency!r}, and there is no price_per_gib.", hint="Give both or neither."
            )
