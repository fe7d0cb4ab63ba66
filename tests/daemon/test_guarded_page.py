"""Who may read the page and act on it: names, certificates, tokens, and what is written of each attempt."""

from __future__ import annotations

import http.client
import json
import logging
import shutil
import ssl
import subprocess
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
from starlette.exceptions import HTTPException
from tests.daemon.conftest import Running, WallClock
from tests.documents import validate
from tests.waiting import until

from ballast.daemon.context.view import Role
from ballast.daemon.policy import DaemonPolicy, Intervals, WebPolicy
from ballast.daemon.process.logs import JsonLines, Readable
from ballast.daemon.web.actions import ActionRequests
from ballast.errors import UsageError

Serve = Callable[..., Running]
OPERATOR, VIEWER = "o" * 20, "v" * 20


def ask(port: int, path: str, host: str | None = None) -> int:
    """The status of a GET under a name."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("GET", path, headers={} if host is None else {"Host": host})
        return connection.getresponse().status
    finally:
        connection.close()


def act(port: int, kind: str, body: dict[str, object], token: str | None) -> int:
    """The status of a POST with a token."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
    try:
        connection.request("POST", f"/api/v1/actions/{kind}", json.dumps(body), headers)
        return connection.getresponse().status
    finally:
        connection.close()


def test_a_foreign_name_that_leads_here_is_told_nothing(serve: Serve) -> None:
    """A site that has its own name resolve to our address reads neither the API nor the metrics, on either port."""
    web = serve(web=WebPolicy(port=0, probes_port=0, hosts=("ballast.example",))).service.web
    assert web.probes_port is not None
    for port, path in ((web.port, "/api/v1/status"), (web.port, "/"), (web.probes_port, "/metrics")):
        assert ask(port, path, "evil.example") == 421
        assert ask(port, path, "evil.example:8080") == 421
        for host in (
            "ballast.example",
            "BALLAST.example:443",
            "localhost:8080",
            "[::1]:8080",
            "10.1.2.3",
            "shop-ballast",
        ):
            assert ask(port, path, host) == 200


def test_every_refusal_is_a_document(serve: Serve, tmp_path: Path) -> None:
    """Whatever it is refused for: the sentence is in the same place."""
    tokens = tmp_path / "tokens"
    tokens.write_text(f"ada operator {OPERATOR}\nbob viewer {VIEWER}\n")
    port = serve(web=WebPolicy(port=0, token_file=tokens)).service.web.port
    pause = "/api/v1/actions/pause"
    refused = [
        ("GET", "/api/v1/status", "", {"Host": "evil.example"}, 421),
        ("GET", "/api/v1/nothing", "", {}, 404),
        ("GET", pause, "", {}, 405),
        ("POST", pause, "", {}, 401),
        ("POST", pause, "", {"Authorization": f"Bearer {VIEWER}"}, 403),
        ("POST", pause, '{"reasn": ""}', {"Authorization": f"Bearer {OPERATOR}"}, 400),
        ("POST", pause, "x" * 20_000, {"Authorization": f"Bearer {OPERATOR}"}, 413),
    ]
    for method, path, body, headers, status in refused:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        validate(document := json.load(answer))
        assert (answer.status, document["kind"]) == (status, "RequestRefused")
        connection.close()


def test_a_viewer_may_not_act_and_an_operator_signs_with_their_own_name(
    serve: Serve, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever name the request gives; every attempt is a line of the audit log, and no token is in it."""
    tokens = tmp_path / "tokens"
    tokens.write_text(f"ada operator {OPERATOR}\nbob viewer {VIEWER}\n")
    caplog.set_level(logging.INFO, "ballast.audit")
    daemon = serve(web=WebPolicy(port=0, token_file=tokens))
    port = daemon.service.web.port
    assert act(port, "pause", {"by": "alice"}, None) == 401
    assert act(port, "pause", {"by": "alice"}, "w" * 20) == 401
    assert act(port, "pause", {"by": "alice"}, VIEWER) == 403
    assert daemon.board.view.pause is None
    assert act(port, "pause", {"by": "alice"}, OPERATOR) == 202
    view = daemon.until(lambda v: v.pause is not None)
    assert view.pause is not None
    assert view.pause.by == "ada"
    attempts = [r for r in caplog.records if r.name == "ballast.audit" and "pause" in r.getMessage()]
    assert [r.levelno for r in attempts][:4] == [logging.WARNING] * 3 + [logging.INFO]
    assert not any(t in r.getMessage() + str(r.__dict__) for r in attempts for t in (OPERATOR, VIEWER))


@pytest.mark.parametrize(
    ("text", "given", "admitted", "refused"),
    [
        (f"# tokens of the platform team\n\nada operator {OPERATOR}\n", OPERATOR, True, []),
        (f"{OPERATOR}\n", OPERATOR, True, []),
        (f"# tokens of the platform team\nada operator {OPERATOR}\n", "# tokens of the platform team", False, []),
        (f"ada operater {OPERATOR}\nbob viewer {VIEWER}\n", f"ada operater {OPERATOR}", False, [1]),
        (f"bob viewer {VIEWER}\n{OPERATOR}\n", OPERATOR, False, [2]),
        (f"ada operater {OPERATOR}\n", f"ada operater {OPERATOR}", False, [1]),
        ("ada operator short\n", "short", False, [1]),
    ],
)
def test_only_a_whole_line_of_the_token_file_lets_anybody_in(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, text: str, given: str, *, admitted: bool, refused: list[int]
) -> None:
    """A comment, a mistyped role, a token beside names: refused, and said once without the token."""
    (tmp_path / "tokens").write_text(text)
    action_requests = ActionRequests(tmp_path / "tokens", lambda _: None, WallClock())
    for _ in range(2):
        try:
            action_requests.admit({"authorization": f"Bearer {given}"})
        except HTTPException:
            assert not admitted
        else:
            assert admitted
    said = [r for r in caplog.records if "token file" in r.getMessage()]
    assert [r.__dict__["ballast_fields"]["line"] for r in said] == refused
    assert not any(secret in str(r.__dict__) for r in said for secret in (OPERATOR, VIEWER, "short"))


@pytest.mark.parametrize("text", ["short", "", "ada operator short", f"bob viewer {VIEWER}"])
def test_a_token_file_without_an_operator_is_told_at_start(
    serve: Serve, tmp_path: Path, caplog: pytest.LogCaptureFixture, text: str
) -> None:
    """Before anybody opens a page; the status tells the page why there are no buttons."""
    tokens = tmp_path / "tokens"
    tokens.write_text(text)
    daemon = serve(web=WebPolicy(port=0, token_file=tokens))
    assert [r for r in caplog.records if r.levelno == logging.WARNING and "read-only" in r.getMessage()]
    connection = http.client.HTTPConnection("127.0.0.1", daemon.service.web.port, timeout=30)
    try:
        connection.request("GET", "/api/v1/status")
        status = json.load(connection.getresponse())
    finally:
        connection.close()
    assert not status["actionsEnabled"]
    assert "web.token_file" in status["readOnly"]


READ = ("status", "history", "settings", "series", "brokers/1", "topics/orders", "partitions/offline")


def read(port: int, path: str, token: str | None) -> int:
    """The status of a GET with a token."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("GET", path, headers={"Authorization": f"Bearer {token}"} if token else {})
        return connection.getresponse().status
    finally:
        connection.close()


def test_a_token_file_that_cannot_be_read_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """No user may act, and the log says why: once, and again when it fails anew."""
    file = tmp_path / "tokens"
    action_requests = ActionRequests(file, lambda _: None, WallClock())

    def told() -> int:
        return len([r for r in caplog.records if "cannot be read" in r.getMessage()])

    assert action_requests.closed
    assert action_requests.closed
    assert told() == 1
    file.write_text(OPERATOR)
    assert not action_requests.closed
    assert told() == 1
    file.write_bytes(b"\xff")
    assert action_requests.closed
    assert told() == 2


def test_reading_takes_a_token_where_the_settings_say_so(
    serve: Serve, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A viewer's or an operator's, for everything that tells of the cluster; off unless it is set, and probes never."""
    tokens = tmp_path / "tokens"
    tokens.write_text(f"ada operator {OPERATOR}\nbob viewer {VIEWER}\n")
    caplog.set_level(logging.INFO, "ballast.audit")
    daemon = serve(web=WebPolicy(port=0, token_file=tokens, read_needs_token=True))
    # /healthz is well once both are there, and each has a loop of its own.
    daemon.until(lambda v: v.figures is not None and v.role is Role.OBSERVING)
    port = daemon.service.web.port
    for path in READ:
        found = [read(port, f"/api/v1/{path}", token) for token in (None, "x" * 20, VIEWER, OPERATOR)]
        assert found == [401, 401, 200, 200], path
    for path in ("/", "/page.js", "/livez", "/readyz", "/healthz", "/metrics", "/api/v1/openapi.json"):
        assert read(port, path, None) == 200, path
    assert act(port, "pause", {}, VIEWER) == 403
    wrong = [r for r in caplog.records if r.name == "ballast.audit" and "read" in r.getMessage()]
    assert len(wrong) == len(READ), "a page that was opened without a token is no attempt"
    tokens.write_text("")
    assert read(port, "/api/v1/status", OPERATOR) == 403


def test_reading_takes_no_token_unless_it_is_set(serve: Serve, tmp_path: Path) -> None:
    """As before there were viewers; and asking for a token without a token file is a mistake."""
    daemon = serve(web=WebPolicy(port=0))
    daemon.until(lambda v: v.figures is not None)
    assert {read(daemon.service.web.port, f"/api/v1/{path}", None) for path in READ} == {200}
    with pytest.raises(ValueError, match="token_file"):
        WebPolicy(read_needs_token=True)


@pytest.mark.parametrize("text", ["\ud800", "a\nb", "\x1b[2J", "\u202e"])
def test_text_that_cannot_be_shown_is_refused(serve: Serve, tmp_path: Path, text: str) -> None:
    """A lone surrogate once taken would make every answer of the page fail."""
    token = tmp_path / "token"
    token.write_text(OPERATOR)
    daemon = serve(web=WebPolicy(port=0, token_file=token))
    port = daemon.service.web.port
    assert act(port, "pause", {"by": text}, OPERATOR) == 400
    assert act(port, "pause", {"by": "ada", "reason": text}, OPERATOR) == 400
    assert ask(port, "/api/v1/status") == 200


def test_a_line_of_the_log_is_one_line_whatever_others_named() -> None:
    """A topic, a broker's answer or a person's name cannot forge a line, nor command a terminal."""
    record = logging.LogRecord("ballast", logging.INFO, "", 0, "%s", ("a\nINFO forged \x1b[31m\ud800",), None)
    record.ballast_fields = {"by": "x\ny"}
    for formatter in (Readable(), JsonLines()):
        line = formatter.format(record)
        assert len(line.splitlines()) == 1
        assert line.encode()
        assert "\x1b" not in line


def issue(folder: Path, name: str) -> None:
    """A certificate of the page that signs itself."""
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
         "-keyout", "tls.key", "-out", "tls.crt", "-subj", f"/CN={name}", "-days", "2"],
        cwd=folder, capture_output=True, timeout=60, check=True,
    )  # fmt: skip


@pytest.mark.openssl
def test_the_page_speaks_tls_and_renews_its_certificate(serve: Serve, tmp_path: Path) -> None:
    """By the files in the settings; the probes stay plain on their own port, for the kubelet."""
    issue(tmp_path, "first")
    policy = WebPolicy(port=0, probes_port=0, tls_certificate=tmp_path / "tls.crt", tls_key=tmp_path / "tls.key")
    web = serve(DaemonPolicy(intervals=Intervals(settings_s=0.1)), web=policy).service.web

    def shown() -> str:
        return ssl.get_server_certificate(("127.0.0.1", web.port), timeout=30)

    first = (tmp_path / "tls.crt").read_text()
    until(lambda: shown().split() == first.split(), "the certificate")
    assert web.probes_port is not None
    assert ask(web.probes_port, "/livez") == 200
    issue(tmp_path, "second")
    until(lambda: shown().split() == (tmp_path / "tls.crt").read_text().split(), "the renewed one")


@pytest.mark.openssl
def test_no_connection_fails_while_certificates_are_renewed(serve: Serve, tmp_path: Path) -> None:
    """Another thread accepts connections in that very moment."""
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        issue(tmp_path / name, name)
    issue(tmp_path, "page")
    policy = WebPolicy(port=0, tls_certificate=tmp_path / "tls.crt", tls_key=tmp_path / "tls.key")
    daemon = serve(DaemonPolicy(intervals=Intervals(settings_s=600)), web=policy)
    web = daemon.service.web
    # The service looks once when it starts, and would see a renewal before the test's own call does.
    looks = partial(daemon.service.metrics.registry.get_sample_value, "ballast_checks_total")
    until(lambda: looks({"check": "certificate", "result": "ok"}), "the service's own look")
    ended = threading.Event()

    def connect() -> int:
        connections = 0
        while not ended.is_set():
            ssl.get_server_certificate(("127.0.0.1", web.port), timeout=30)
            connections += 1
        return connections

    with ThreadPoolExecutor() as pool:
        clients = [pool.submit(connect) for _ in range(4)]
        try:
            for n in range(400):
                for file in ("tls.crt", "tls.key"):
                    shutil.copy(tmp_path / ("first", "second")[n % 2] / file, tmp_path / file)
                assert web.renew() == "The page's certificate was renewed."
        finally:
            ended.set()
        assert all(client.result() for client in clients)


@pytest.mark.openssl
def test_a_certificate_that_cannot_be_used_keeps_it_from_starting(serve: Serve, tmp_path: Path) -> None:
    """Rather than run with a page that no user can reach."""
    issue(tmp_path, "page")
    (tmp_path / "tls.key").write_text("no key")
    with pytest.raises(UsageError):
        serve(web=WebPolicy(port=0, tls_certificate=tmp_path / "tls.crt", tls_key=tmp_path / "tls.key"))
