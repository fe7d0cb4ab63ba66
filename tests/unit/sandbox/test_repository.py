"""Jars from a Maven repository: a real server on the loopback, with the trouble that repositories give."""

from __future__ import annotations

import hashlib
import threading
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from ballast.errors import Unavailable, UsageError
from ballast.sandbox import jars, repository

PARTS = {f"org/example/part{n}/1.0/part{n}-1.0.jar": f"part {n}".encode() for n in range(20)}


class Repository(ThreadingHTTPServer):
    """Serves the parts; counts what is asked for, and answers as it is told."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.asked: Counter[str] = Counter()
        self.busy: Counter[str] = Counter()
        """How many more times a path is answered with 503."""
        self.cut: set[str] = set()
        """Paths whose answer ends before it is whole."""
        self.files = dict(PARTS)


class Answer(BaseHTTPRequestHandler):
    """One request."""

    server: Repository

    def do_GET(self) -> None:
        """The file, or trouble."""
        path = self.path.removeprefix("/maven/")
        self.server.asked[path] += 1
        content = self.server.files.get(path, b"")
        status = 200 if content else 404
        if self.server.busy[path]:
            self.server.busy[path] -= 1
            status, content = 503, b""
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[:2] if path in self.server.cut else content)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Repository]:
    """A repository, a lock of its parts, and an empty cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(jars, "LOCKS", tmp_path)
    rows = [path.split("/") for path in PARTS]
    (tmp_path / "kafka-0.1.lock").write_text(
        "".join(f"org.example:{row[2]}:1.0 {hashlib.sha256(PARTS['/'.join(row)]).hexdigest()}\n" for row in rows)
    )
    with Repository() as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        monkeypatch.setenv(repository.ADDRESS, f"http://127.0.0.1:{server.server_port}/maven/")
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        yield server
        server.shutdown()
        thread.join()


def test_every_jar_of_the_lock_is_fetched_once(served: Repository) -> None:
    """And in the lock's order, which is the class path's."""
    paths = jars.ensure_jars("kafka-0.1")
    assert [path.read_bytes() for path in paths] == list(PARTS.values())
    jars.ensure_jars("kafka-0.1")
    assert served.asked == Counter(list(PARTS))


def test_a_busy_repository_is_asked_again(served: Repository) -> None:
    """An answer of 503 is not the last word."""
    path = next(iter(PARTS))
    served.busy[path] = 2
    jars.ensure_jars("kafka-0.1")
    assert served.asked[path] == 3


@pytest.mark.parametrize("trouble", ["busy", "cut", "away"])
def test_what_could_not_be_fetched_can_be_tried_again(
    served: Repository, trouble: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What came is kept, the failure says to retry, and names neither a bug nor the address."""
    path = next(reversed(PARTS))
    monkeypatch.setattr(repository, "AT_ONCE", 1)
    monkeypatch.setattr(repository, "TRIES", 1)
    if trouble == "busy":
        served.busy[path] = 99
    elif trouble == "cut":
        served.cut.add(path)
    else:
        monkeypatch.setenv(repository.ADDRESS, "http://127.0.0.1:1/maven")
    with pytest.raises(Unavailable) as caught:
        jars.ensure_jars("kafka-0.1")
    assert caught.value.retryable
    assert "/maven" not in str(caught.value)
    served.busy.clear()
    served.cut.clear()
    monkeypatch.setenv(repository.ADDRESS, f"http://127.0.0.1:{served.server_port}/maven")
    before = served.asked.copy()
    jars.ensure_jars("kafka-0.1")
    again = served.asked - before
    assert path in again
    assert len(again) < len(PARTS) or trouble != "busy"


def test_a_repository_without_the_jar_is_a_wrong_setting(served: Repository) -> None:
    """A mirror that lacks it will lack it the next time as well."""
    del served.files[next(iter(PARTS))]
    with pytest.raises(UsageError) as caught:
        jars.ensure_jars("kafka-0.1")
    assert repository.ADDRESS in str(caught.value.hint)


def test_another_file_is_refused(served: Repository) -> None:
    """What is served with another sha256 never gets its name in the cache."""
    path = next(iter(PARTS))
    served.files[path] = b"something else"
    with pytest.raises(UsageError):
        jars.ensure_jars("kafka-0.1")
    assert not (jars.jar_folder("kafka-0.1") / Path(path).name).exists()


def test_without_a_setting_the_packages_address_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """No address is written in this repository."""
    monkeypatch.delenv(repository.ADDRESS, raising=False)
    assert repository.address().startswith("https://")


def test_the_environments_authorities_come_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A file that is named and there is taken; one that is not there is passed over."""
    bundle = tmp_path / "authorities.pem"
    bundle.touch()
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "nowhere.pem"))
    monkeypatch.delenv("CURL_CA_BUNDLE", raising=False)
    monkeypatch.setenv("SSL_CERT_FILE", str(bundle))
    assert repository.authorities() == str(bundle)
