"""How figures are written for people, wherever they are read: in a sentence of the log, a table, a report.

One form for each kind of figure: ``1.5 KiB``, ``12.3 %`` with a space, ``1 move`` and ``2 moves``, ``1,234``.  What is not known is
a question mark and never a zero.  The page writes the same forms in its own language.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeAlias

ShowLine: TypeAlias = Callable[[str], None]
"""Takes a line for a person, who reads it now."""
UNKNOWN_TEXT: Final = "?"
"""Stands for every figure that the cluster did not give; never a zero."""


def human_count(figure: int) -> str:
    """``1234567`` as ``1,234,567``."""
    return UNKNOWN_TEXT if figure < 0 else f"{figure:,}"


def human_many(count: int, noun: str) -> str:
    """``1`` and ``move`` as ``1 move``, ``1234`` as ``1,234 moves``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def human_elections(count: int, *, unclean: bool = False) -> str:
    """``4`` as ``4 preferred leader elections``, or unclean ones: Kafka's two kinds."""
    return human_many(count, f"{'unclean' if unclean else 'preferred'} leader election")


def planned_elections(count: int) -> str:
    """Preferred leader elections as a part of a plan, beside its moves."""
    return f"{human_elections(count)} (no data copied)"


def human_plan_status(status: str) -> str:
    """A plan's status as people read it: what the plan would do, executed or not."""
    return status.replace("-", " ")


def human_log_dir_error(broker: int, path: str, error: str, *, failed: bool) -> str:
    """What a broker reports of a log dir; ``failed`` is whether its code is that of a failed disk."""
    what = "has failed" if failed else "reports an error, which need not be the disk's"
    return f"Broker {broker}: log dir {path or UNKNOWN_TEXT} {what} ({error})."


def human_bytes(figure: float | None) -> str:
    """``1536`` as ``1.5 KiB``; powers of 1,024."""
    if figure is None or figure < 0:
        return UNKNOWN_TEXT
    size = float(figure)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} PiB"


def human_total(known: float, unknown: int) -> str:
    """A sum of bytes; where the sizes of ``unknown`` things are missing, what is known is the least that it is."""
    if not unknown:
        return human_bytes(known)
    return f"at least {human_bytes(known)}" if known else "unknown size"


def human_percent(share: float, digits: int = 1) -> str:
    """``0.1234`` as ``12.3 %``."""
    return f"{share * 100:.{digits}f} %"


def human_time(seconds: float) -> str:
    """``5400`` as ``1 h 30 min``; never less than a second."""
    if seconds < 90:
        return f"{max(seconds, 1):.0f} s"
    minutes = round(seconds / 60)
    if minutes < 90:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours < 48 else f"{hours / 24:.1f} days"


def human_names(names: Sequence[object], limit: int = 5) -> str:
    """The first few, and how many more there are."""
    shown = ", ".join(str(n) for n in names[:limit])
    return shown + (f" and {len(names) - limit:,} more" if len(names) > limit else "")


def human_replicas(ids: Iterable[int]) -> str:
    """A replica list as Kafka's own tools print it, its preferred leader first: ``5,4``; ``-`` where it is empty."""
    return ",".join(map(str, ids)) or "-"


def human_brokers(ids: Sequence[int], limit: int = 5, *, start: bool = False) -> str:
    """``[3]`` as ``broker 3``, ``[3, 4]`` as ``brokers 3, 4``; at the ``start`` of a sentence as ``Broker 3``."""
    return f"{'B' if start else 'b'}roker{'' if len(ids) == 1 else 's'} {human_names(ids, limit)}"
