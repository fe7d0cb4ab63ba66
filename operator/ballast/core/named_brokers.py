"""Brokers as a person names them: ids, or a regular expression on the whole id."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from ballast.core.regex import mistake_in
from ballast.errors import UsageError

_IDS: Final = re.compile(r"[0-9]{1,10}(?:-[0-9]{1,10})?(?:,[0-9]{1,10}(?:-[0-9]{1,10})?)*")
_MOST: Final = 10_000
"""Ids that one range may name."""


@dataclass(frozen=True, slots=True)
class NamedBrokers:
    """``1,2,5-7`` as ids, anything else as a regular expression; without either no broker is meant."""

    ids: frozenset[int] = frozenset()
    patterns: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> NamedBrokers:
        """Raises ``ValueError`` with a sentence."""
        text = text.strip()
        if not text:
            raise ValueError("no broker is named; write for example 1,2,5-7 or a regular expression.")
        if _IDS.fullmatch(text):
            return cls(frozenset(i for part in text.split(",") for i in _range(part)))
        if wrong := mistake_in(text):
            raise ValueError(f"{text!r} is neither ids (1,2,5-7) nor a regular expression: {wrong}.")
        return cls(patterns=(text,))

    def __or__(self, other: NamedBrokers) -> NamedBrokers:
        return NamedBrokers(self.ids | other.ids, self.patterns + other.patterns)

    def __bool__(self) -> bool:
        return bool(self.ids or self.patterns)

    @property
    def regex(self) -> str:
        """One expression on the whole id for all of them."""
        return "|".join(
            [
                *map(str, sorted(self.ids)),
                *(self.patterns if len(self.patterns) + len(self.ids) == 1 else (f"(?:{p})" for p in self.patterns)),
            ]
        )

    def among(self, known: Iterable[int]) -> frozenset[int]:
        """Their ids; those that are given as ids are kept though the cluster may not know them, an expression must match one."""
        known = tuple(known)
        found = self.ids
        for pattern in self.patterns:
            matching = frozenset(b for b in known if re.fullmatch(pattern, str(b)))
            if not matching:
                raise UsageError(
                    f"No broker's id matches {pattern!r}.",
                    hint=f"The cluster has {', '.join(map(str, sorted(known)))}.",
                )
            found |= matching
        return found


def _range(part: str) -> range:
    first, dash, last = part.partition("-")
    found = range(int(first), int(last if dash else first) + 1)
    if not 0 < len(found) <= _MOST:
        raise ValueError(
            f"{part} names {'no' if not found else f'more than {_MOST:,}'} brokers; write for example 5-7."
        )
    return found
