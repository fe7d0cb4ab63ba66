"""The proxy between the processes of a cluster."""

from __future__ import annotations

import asyncio
import socket
import sys
from contextlib import suppress
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen

from tests.chaos.proxy import ANYBODY, CLIENTS, Door, Gates, Owners
from tests.leash import leashed
from tests.ports import free_ports
from tests.waiting import PATIENCE_S

MOMENT_S = 0.3
CONNECT = "import socket, sys; s = socket.create_connection(('127.0.0.1', int(sys.argv[1]))); print('ready', flush=True); s.recv(1)"


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Whatever comes goes back."""
    while data := await reader.read(100):
        writer.write(data)
    writer.close()


async def got(reader: asyncio.StreamReader, within_s: float) -> bytes | None:
    """What arrives; None where nothing does."""
    try:
        return await asyncio.wait_for(reader.read(100), within_s)
    except TimeoutError:
        return None


def test_what_is_sent_while_two_are_apart_arrives_when_they_are_together_again() -> None:
    """On a connection that stood, and on one that is made meanwhile."""

    async def scene() -> None:
        port, hidden = free_ports(2)
        gates = Gates(Owners(()))
        inner = await asyncio.start_server(echo, "127.0.0.1", hidden)
        door = Door("node-1", hidden, gates)
        outer = await asyncio.start_server(door.enter, "127.0.0.1", port)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"one")
        assert await got(reader, PATIENCE_S) == b"one"
        gates.set([["node-1", ANYBODY]])
        writer.write(b"two")
        late_reader, late_writer = await asyncio.open_connection("127.0.0.1", port)
        late_writer.write(b"three")
        assert await got(reader, MOMENT_S) is None
        assert await got(late_reader, MOMENT_S) is None
        gates.set([["node-2", ANYBODY]])
        assert await got(reader, PATIENCE_S) == b"two"
        assert await got(late_reader, PATIENCE_S) == b"three"
        for end in (writer, late_writer):
            end.close()
        inner.close()
        outer.close()

    asyncio.run(scene())


def test_a_node_that_does_not_listen_takes_no_connection() -> None:
    """The connection ends at once."""

    async def scene() -> None:
        port, hidden = free_ports(2)
        door = Door("node-1", hidden, Gates(Owners(())))
        outer = await asyncio.start_server(door.enter, "127.0.0.1", port)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        with suppress(ConnectionError):
            assert await got(reader, PATIENCE_S) == b""
        writer.close()
        outer.close()

    asyncio.run(scene())


def test_who_connects_is_known_by_the_file_that_it_was_started_with(tmp_path: Path) -> None:
    """A process that was started with no file of ours is a client."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        named = Popen(
            leashed(sys.executable, "-c", CONNECT, str(port), f"{tmp_path}/node-7.properties"),
            stdout=PIPE,
            stdin=DEVNULL,
        )
        try:
            assert named.stdout is not None
            assert named.stdout.readline() == b"ready\n"
            connection, (_, theirs) = server.accept()
            owners = Owners((f"{tmp_path}/",))
            assert owners.of((theirs, port)) == "node-7"
            with socket.create_connection(("127.0.0.1", port)) as own:
                assert owners.of((own.getsockname()[1], port)) == CLIENTS
            connection.close()
        finally:
            named.kill()
            named.communicate()
