"""Every connection of the cluster goes through here, so that one process can be cut off from the others without any rights.

``python -m tests.chaos.proxy FOLDER…`` reads JSON lines from stdin: first ``{"routes": {NAME: [[PORT, HIDDEN PORT], …]}}``, then
``{"apart": [[NAME, NAME or "*"], …]}`` as often as it changes, and answers each with a line.  Between two who are apart nothing gets through; their
connections stay open, and what was sent meanwhile arrives when they are together again, as on a network that loses packets.

Who connects is found in the kernel's tables: the process whose socket it is, by the last file in one of the folders that its
command line names (``node-3.properties`` is ``node-3``); a process with no such file is ``clients``.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

CHUNK_BYTES: Final = 256 * 1024
ANYBODY: Final = "*"
CLIENTS: Final = "clients"
LOOPBACK: Final = "127.0.0.1"


class Owners:
    """Which of our processes has a connection; looked up only while a process is cut off."""

    def __init__(self, folders: tuple[str, ...]) -> None:
        self._folders = folders
        self._names: dict[int, str | None] = {}
        """Process id to name; None for an unknown process."""
        self._found: dict[tuple[int, int], str] = {}
        """A connection's own port and the port that it leads to, and whose it is."""
        self._turn = threading.Lock()

    def of(self, connection: tuple[int, int]) -> str:
        """The name of the process at the near end of a connection, by its two ports."""
        with self._turn:
            if connection not in self._found:
                self._look()
            return self._found.get(connection, CLIENTS)

    def _look(self) -> None:
        """Go through the tables once, for all connections that there are."""
        sockets = connections_by_inode()
        self._found = {}
        for pid, name in self._ours().items():
            with suppress(OSError):
                for handle in Path(f"/proc/{pid}/fd").iterdir():
                    with suppress(OSError):
                        inode = os.fspath(handle.readlink()).removeprefix("socket:[").removesuffix("]")
                        if inode in sockets:
                            self._found[sockets[inode]] = name

    def _ours(self) -> dict[int, str]:
        """Our processes that live."""
        alive = {int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()}
        self._names = {pid: name for pid, name in self._names.items() if pid in alive}
        for pid in alive - set(self._names):
            name = self._name(pid)
            if name is not None or is_settled(pid):
                self._names[pid] = name
        return {pid: name for pid, name in self._names.items() if name is not None}

    def _name(self, pid: int) -> str | None:
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            return None
        ours = [w for w in words if w.startswith(self._folders) and Path(w).suffix in {".properties", ".yaml"}]
        return Path(ours[-1]).stem if ours else None


def is_settled(pid: int) -> bool:
    """Whether a process is what it will be: one that was just forked still has its parent's command line."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        uptime_s = float(Path("/proc/uptime").read_text().split()[0])
    except (OSError, IndexError):
        return False
    return uptime_s - int(fields[19]) / os.sysconf("SC_CLK_TCK") > 5


def connections_by_inode() -> dict[str, tuple[int, int]]:
    """Every TCP connection of this machine: its own port and the one that it leads to."""
    found = {}
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with suppress(OSError):
            for line in Path(table).read_text().splitlines()[1:]:
                words = line.split()
                found[words[9]] = int(words[1].rpartition(":")[2], 16), int(words[2].rpartition(":")[2], 16)
    return found


@dataclass(slots=True)
class Passage:
    """One connection through the proxy."""

    connection: tuple[int, int]
    to: str
    whose: str | None = None
    """Not looked up before a process is cut off."""


class Gates:
    """Who is apart from whom."""

    def __init__(self, owners: Owners) -> None:
        self._owners = owners
        self._pairs: set[tuple[str, str]] = set()
        self._changed = asyncio.Event()

    def set(self, pairs: list[list[str]]) -> None:
        """From now on."""
        self._pairs = {(a, b) for a, b in pairs}
        self._changed.set()
        self._changed = asyncio.Event()

    async def together(self, passage: Passage) -> None:
        """Wait until something gets through."""
        while self._pairs:
            changed = self._changed
            if not self._are_apart(passage.to, ANYBODY):
                if passage.whose is None:
                    loop = asyncio.get_running_loop()
                    passage.whose = await loop.run_in_executor(None, self._owners.of, passage.connection)
                if not self._are_apart(passage.whose, passage.to):
                    return
            await changed.wait()

    def _are_apart(self, one: str, other: str) -> bool:
        return any((a == one and b in {other, ANYBODY}) or (a == other and b == one) for a, b in self._pairs)


async def forward(gates: Gates, passage: Passage, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Pass on what one end sends, for as long as both last."""
    try:
        while data := await reader.read(CHUNK_BYTES):
            await gates.together(passage)
            writer.write(data)
            await writer.drain()
        await gates.together(passage)
    except OSError:
        pass
    finally:
        with suppress(OSError):
            writer.close()


@dataclass(frozen=True, slots=True)
class Door:
    """One node's port that everybody knows."""

    name: str
    hidden_port: int
    gates: Gates

    async def enter(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """A client or a node connects."""
        near, own = writer.get_extra_info("peername"), writer.get_extra_info("sockname")
        passage = Passage((near[1], own[1]), self.name)
        await self.gates.together(passage)
        try:
            inner_reader, inner_writer = await asyncio.open_connection(LOOPBACK, self.hidden_port)
        except OSError:
            writer.transport.abort()
            return
        there = forward(self.gates, passage, reader, inner_writer)
        back = forward(self.gates, passage, inner_reader, writer)
        await asyncio.gather(there, back, return_exceptions=True)


async def main(folders: tuple[str, ...]) -> None:
    """Serve until stdin ends."""
    gates = Gates(Owners(folders))
    servers = []
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        order = json.loads(line)
        for name, ports in order.get("routes", {}).items():
            for port, hidden in ports:
                servers.append(await asyncio.start_server(Door(name, hidden, gates).enter, LOOPBACK, port, backlog=512))
        if "apart" in order:
            gates.set(order["apart"])
        sys.stdout.write("done\n")
        sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main(tuple(sys.argv[1:])))
