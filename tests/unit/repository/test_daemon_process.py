"""What watches a daemon from outside reads what it answers, however that ends."""

from __future__ import annotations

import socket
import threading

import pytest
from tests.real.daemon_process import get


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", (200, "{}")),
        (b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 5\r\n\r\nnever", (503, "never")),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 200\r\n\r\n", (0, "IncompleteRead(0 bytes read, 200 more expected)")),
        (
            b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 200\r\n\r\nnev",
            (0, "IncompleteRead(3 bytes read, 197 more expected)"),
        ),
        (b"", (0, "Remote end closed connection without response")),
    ],
    ids=["whole", "refused", "cut", "refusal-cut", "nothing"],
)
def test_an_answer_that_ends_early_is_none(sent: bytes, read: tuple[int, str]) -> None:
    """A daemon may be killed between the head of its answer and the body."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(sent)

        thread = threading.Thread(target=answer)
        thread.start()
        assert get(f"http://127.0.0.1:{server.getsockname()[1]}/") == read
        thread.join()
