"""Replicas that a broker kept although they had left it while it was down, as a person clears them away.

With ZooKeeper the controller tells a broker once to delete a replica: one that is down then keeps it (a KRaft broker renames it to
``-stray`` when it starts).  Where a topic of that name is created again, the broker refuses its replica from then on, also after
restarts, since the id of the topic is another one; the partition stays under-replicated until the folder is gone.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from ballast.sandbox import Sandbox
from ballast.sandbox.layout import node_name

REFUSED: Final = re.compile(r"Topic ID in memory: (\S+) does not match the topic ID for partition (\S+) received")


@dataclass
class Strays:
    """What brokers have logged of them, and how many are cleared away."""

    sandbox: Sandbox
    tell: Callable[[str], None]
    cleared: int = 0
    _read: dict[int, int] = field(default_factory=dict)
    """By broker: how many bytes of its log have been looked at."""

    def clear(self) -> None:
        """Stop each broker that refuses a replica, delete the old one of that name, and start it."""
        for broker in self.sandbox.broker_ids:
            refused = {(name, old) for old, name in REFUSED.findall(self._new_lines(broker))}
            strays = [
                folder
                for name, old in refused
                for log_dir in self.sandbox.log_dirs(broker)
                if (marked := (folder := log_dir / name) / "partition.metadata").exists() and old in marked.read_text()
            ]
            if strays:
                self.sandbox.stop_broker(broker)
                for folder in strays:
                    shutil.rmtree(folder)
                self.sandbox.start_broker(broker, wait=False)
                self.cleared += len(strays)
                self.tell(f"broker {broker} refused {sorted(f.name for f in strays)}: its old replica is deleted")

    def _new_lines(self, broker: int) -> str:
        """What it has logged since the last look: a log of an hour is long, and this is asked each second."""
        with (self.sandbox.folder / "logs" / f"{node_name(broker)}.log").open("rb") as log:
            log.seek(self._read.get(broker, 0))
            lines = log.read().rpartition(b"\n")[0]
        self._read[broker] = self._read.get(broker, 0) + len(lines)
        return lines.decode(errors="replace")
