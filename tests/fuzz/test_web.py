"""Whatever arrives at the daemon's port gets an answer that is not the server's fault, and the daemon goes on."""

from __future__ import annotations

import errno
import logging
import socket
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.daemon.conftest import Running, serve
from tests.fuzz.mangling import NASTY, spoilt_text
from tests.fuzz.test_readers import thorough

from ballast.daemon.policy import WebPolicy

__all__ = ["serve"]
TOKEN = "a-token-of-this-test"  # noqa: S105 — of this test
HEAD = f"Host: localhost\r\nAuthorization: Bearer {TOKEN}\r\nConnection: close\r\n"
REQUESTS = [
    f"GET /api/v1/status?after=0 HTTP/1.1\r\n{HEAD}\r\n",
    f"GET /metrics HTTP/1.1\r\n{HEAD}Accept: application/openmetrics-text;version=1.0.0\r\n\r\n",
    f"GET /page.js HTTP/1.1\r\n{HEAD}Accept-Encoding: gzip\r\n\r\n",
    f'POST /api/v1/actions/pause HTTP/1.1\r\n{HEAD}Content-Length: 33\r\n\r\n{{"by": "ann", "reason": "a test"}}',
    f'POST /api/v1/actions/cancel HTTP/1.1\r\n{HEAD}Content-Length: 31\r\n\r\n{{"run": "r1", "rollback": true}}',
]


def exchange(server: Running, request: bytes, *, is_whole: bool = False) -> int:
    """The status of the answer; 0 where the server saw no whole request or hung up, as it may.

    A request that may not be whole is followed by the end of our side, so that no server waits for more; it may take
    that for a client that has gone, and need not answer.
    """
    where = urlsplit(server.url)
    with socket.create_connection((where.hostname, where.port), timeout=10) as connection:
        answer = b""
        try:
            connection.sendall(request)
            if not is_whole:
                connection.shutdown(socket.SHUT_WR)
            while more := connection.recv(65_536):
                answer += more
        except OSError as hung_up:
            # A server that has answered already need not wait for the rest of a spoilt request.
            if hung_up.errno not in {errno.ECONNRESET, errno.EPIPE, errno.ENOTCONN}:
                raise
            return 0
    return int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/1.1 ") else 0


def test_the_port_takes_whatever_comes(
    serve: Callable[..., Running], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Spoilt requests, with the token and without: no answer of the 500s but what the probes mean, no traceback, still alive."""
    token = tmp_path / "token"
    token.write_text(TOKEN)
    server = serve(web=WebPolicy(port=0, token_file=token))
    # What is spoilt below is a request that is executed: with the token each reaches what it asks for, without it none acts.
    assert [exchange(server, request.encode(), is_whole=True) for request in REQUESTS] == [200, 200, 200, 202, 409]
    bare = [request.replace(f"Authorization: Bearer {TOKEN}\r\n", "") for request in REQUESTS]
    assert [exchange(server, request.encode(), is_whole=True) for request in bare[3:]] == [401, 401]
    reached: Counter[int] = Counter()

    def send(request: bytes) -> None:
        status = exchange(server, request)
        reached[status] += 1
        assert status < 500

    @settings(thorough, max_examples=250)
    @given(spoilt_text(REQUESTS))
    def try_one(text: str) -> None:
        send(text.encode("utf-8", "surrogatepass"))

    @settings(thorough, max_examples=150)
    @given(
        st.sampled_from(["status?after=", "actions/pause?x=", "history?", ""]),
        st.sampled_from(NASTY) | st.text(st.characters(codec="utf-8", exclude_characters=" \r\n"), max_size=6),
    )
    def try_query(path: str, value: str) -> None:
        line = f"GET /api/v1/{path}{value} HTTP/1.1\r\n{HEAD}\r\n"
        send(line.encode("utf-8", "surrogatepass"))

    @settings(thorough, max_examples=150)
    @given(st.sampled_from(["pause", "cancel", "approve"]), spoilt_text(['{"by": "ann", "run": "r1"}', "[" * 4_000]))
    def try_body(kind: str, text: str) -> None:
        body = text.encode("utf-8", "surrogatepass")
        head = f"POST /api/v1/actions/{kind} HTTP/1.1\r\n{HEAD}Content-Length: {len(body)}\r\n\r\n"
        send(head.encode() + body)

    for attempt in (try_one, try_query, try_body):
        attempt()
    assert reached[200] > 50, reached
    assert reached[400] > 50, reached
    assert reached[401] < sum(reached.values()) / 2, reached
    own = [r for r in caplog.records if r.name.startswith(("ballast.daemon", "ballast.audit", "ballast.runs"))]
    assert not [r.getMessage() for r in own if r.exc_info or r.levelno >= logging.ERROR]
    assert server.get("/livez")[0] == 200
