"""OAuth tokens: how they are asked for, renewed and refused, and that the secret goes nowhere else."""

from __future__ import annotations

import base64
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import quote_plus

import pytest
from tests.ports import free_ports
from tests.token_server import Answer, TokenServer, say, token_server
from tests.waiting import eventually

from ballast.adapters.auth.oauth import ClientCredentials, Token, TokenSource
from ballast.adapters.auth.security import Security
from ballast.errors import AuthenticationFailed, BallastError, Unavailable, UsageError


@pytest.fixture
def server() -> Iterator[TokenServer]:
    """A token endpoint."""
    with token_server() as started:
        yield started


def asked(server: TokenServer, *, timeout_s: float = 30.0) -> ClientCredentials:
    """The grant for this endpoint."""
    return ClientCredentials(server.endpoint, "ballast", server.clients["ballast"], timeout_s=timeout_s)


@pytest.mark.parametrize(
    ("names", "scope"),
    [
        (
            {
                "sasl.oauthbearer.client.credentials.client.id": "ballast",
                "sasl.oauthbearer.client.credentials.client.secret": "s3cr3t/+ of ours",
                "sasl.oauthbearer.scope": "kafka",
                "sasl.jaas.config": 'a.B required clientId="other" clientSecret="other" scope="other";',
            },
            "kafka",
        ),
        ({"sasl.jaas.config": 'a.B required clientId="ballast" clientSecret="s3cr3t/+ of ours" scope="s";'}, "s"),
        (
            {"sasl.oauthbearer.client.id": "ballast", "sasl.oauthbearer.client.secret": "s3cr3t/+ of ours"},
            None,
        ),
    ],
    ids=["Kafka 4.1", "JAAS", "librdkafka"],
)
def test_who_asks_is_said_in_kafkas_names(server: TokenServer, names: dict[str, str], scope: str | None) -> None:
    """Kafka's newest names win over the JAAS entry's, and librdkafka's work as well; the token lives as long as it is told."""
    before = {"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"}
    security = Security.from_properties(before | {"sasl.oauthbearer.token.endpoint.url": server.endpoint} | names)
    assert security.tokens is not None
    token = security.tokens.token()
    assert token.value.count(".") == 2
    assert token.expires_at_s == pytest.approx(time.time() + server.life_s, abs=60)
    assert [a.get("scope") for a in server.asked] == [scope]
    assert security.tokens.token() is token, "one token serves until it nears its end"
    assert token.value not in security.redact(f"broker 1 refused {token.value}")
    assert "s3cr3t" not in repr(security)


def test_id_and_secret_are_encoded_where_that_is_asked_for(server: TokenServer) -> None:
    """``sasl.oauthbearer.header.urlencode``, for the providers that follow the standard exactly."""
    server.clients = {"ballast": quote_plus("s3cr3t/+ of ours")}
    properties = server.properties("s3cr3t/+ of ours") | {"sasl.oauthbearer.header.urlencode": "true"}
    security = Security.from_properties(properties)
    assert security.tokens is not None
    security.tokens.token()
    header = server.asked[0]["header"].removeprefix("Basic ")
    assert base64.b64decode(header).decode() == "ballast:s3cr3t%2F%2B+of+ours"


def test_a_wrong_secret_is_one_sentence(server: TokenServer) -> None:
    """The endpoint and the client are named; neither the secret nor what the endpoint says of it is repeated."""
    security = Security.from_properties(server.properties("wr0ng"))
    assert security.tokens is not None
    with pytest.raises(AuthenticationFailed) as failure:
        security.tokens.token()
    assert failure.value.message == (
        f"The token endpoint {server.endpoint} rejected the client ballast (HTTP 401, invalid_client)."
    )
    assert "client secret" in str(failure.value.hint)
    assert "wr0ng" not in str(failure.value)
    assert not failure.value.retryable


def answers(status: int, body: bytes, **headers: str) -> Answer:
    """Always the same."""
    return lambda request: say(request, status, body, **headers)


def hang_up(request: BaseHTTPRequestHandler) -> None:
    """In the middle of the answer."""
    request.wfile.write(b"HTTP/1.0 200 OK\r\nContent-Length: 100\r\n\r\n{")


def no_web_server(request: BaseHTTPRequestHandler) -> None:
    """Something else listens there."""
    request.wfile.write(b"220 mail.example ready\r\n")


@pytest.mark.parametrize(
    ("instead", "kind", "sentence"),
    [
        (answers(503, b"busy"), Unavailable, "answered HTTP 503"),
        (answers(429, b""), Unavailable, "answered HTTP 429"),
        (answers(404, b"<html>"), AuthenticationFailed, "rejected the client ballast (HTTP 404)"),
        (answers(400, b'{"error": "s3cr3t/+ of ours"}'), AuthenticationFailed, "(HTTP 400)"),
        (answers(200, b"<html>"), AuthenticationFailed, "without an access_token"),
        (answers(200, b"[" * 100_000), AuthenticationFailed, "without an access_token"),
        (answers(200, b'{"access_token": 7}'), AuthenticationFailed, "without an access_token"),
        (hang_up, Unavailable, "did not answer (IncompleteRead)"),
        (no_web_server, Unavailable, "did not answer (BadStatusLine)"),
    ],
)
def test_a_strange_answer_is_one_sentence(
    server: TokenServer, instead: Answer, kind: type[BallastError], sentence: str
) -> None:
    """What is worth another try and what is not are told apart, and a hint says what to look at."""
    server.instead = instead
    with pytest.raises(BallastError) as failure:
        asked(server).fetch()
    assert type(failure.value) is kind
    assert sentence in failure.value.message
    assert failure.value.hint
    assert "s3cr3t" not in str(failure.value)


@pytest.mark.parametrize("life", ["1" + "0" * 400, "1e999", '"soon"', "null"])
def test_a_life_that_is_no_number_of_seconds_is_assumed_short(server: TokenServer, life: str) -> None:
    """What the endpoint says of it, or the token itself, may be beyond every number: five minutes then, and no bug."""
    claims = base64.urlsafe_b64encode(f'{{"exp": {life}}}'.encode()).decode().rstrip("=")
    server.instead = answers(200, f'{{"access_token": "a.{claims}.c", "expires_in": {life}}}'.encode())
    assert asked(server).fetch().expires_at_s == pytest.approx(time.time() + 300, abs=60)


def test_the_secret_is_carried_nowhere_else(server: TokenServer) -> None:
    """A redirect is refused: the place that it names hears nothing."""
    with token_server() as elsewhere:
        server.instead = answers(302, b"", Location=elsewhere.endpoint)
        with pytest.raises(AuthenticationFailed, match="redirects"):
            asked(server).fetch()
        assert elsewhere.asked == []


@pytest.mark.parametrize("drop", [b"X: y\r\n", b"\r\n "], ids=["headers", "a body"])
def test_an_answer_that_drips_is_given_up(server: TokenServer, drop: bytes) -> None:
    """The limit is for the whole, not for each byte."""
    over = threading.Event()

    def drip(request: BaseHTTPRequestHandler) -> None:
        request.wfile.write(b"HTTP/1.0 200 OK\r\n")
        while not over.wait(0.02):
            request.wfile.write(drop)

    server.instead = drip
    before = time.monotonic()
    try:
        with pytest.raises(Unavailable, match=r"did not answer within 0\.3 s"):
            asked(server, timeout_s=0.3).fetch()
        # Nor does a thread stay behind that reads on: one at each renewal would pile up.
        assert eventually(lambda: "oauth-token" not in {t.name for t in threading.enumerate()}, within_s=60)
        assert not over.is_set()
    finally:
        over.set()
    assert time.monotonic() - before < 90


def test_an_endpoint_that_is_not_there_is_one_sentence() -> None:
    """A port that no process listens on."""
    with token_server() as gone:
        pass
    with pytest.raises(Unavailable, match=r"did not answer \(Connection refused\)") as failure:
        asked(gone).fetch()
    assert "network" in str(failure.value.hint)


@pytest.mark.parametrize("url", ["ftp://h/t", "http://", "http://[::1/t", "http://h:99999/t", "https://h/a b", "h/t"])
def test_an_endpoint_that_is_none_is_refused_at_once(url: str) -> None:
    """Before anything is asked, with the property's name."""
    with pytest.raises(UsageError, match=r"sasl\.oauthbearer\.token\.endpoint\.url"):
        ClientCredentials(url, "ballast", "secret")


def test_an_endpoint_is_named_without_what_may_be_secret() -> None:
    """A user, a password and a query stay out of messages."""
    assert ClientCredentials("https://me:pw@host:8443/token?key=k", "c", "s").place == "https://host:8443/token"


class Clock:
    """A time that the test sets, and tokens that live a hundred seconds from it."""

    now = 1000.0
    failure: BallastError | None = None
    given = 0

    def __call__(self) -> float:
        """The time."""
        return self.now

    def fetch(self) -> Token:
        """A token, or the failure."""
        if self.failure is not None:
            raise self.failure
        self.given += 1
        return Token(f"token-{self.given}", self.now + 100)


def test_a_token_is_renewed_before_it_ends() -> None:
    """When four fifths of its life are over, and not before."""
    clock = Clock()
    source = TokenSource(clock.fetch, now=clock)
    assert source.held is None
    seen = {}
    for clock.now in (1000.0, 1079.0, 1080.0, 1159.0):
        seen[clock.now] = source.token().value
    assert seen == {1000.0: "token-1", 1079.0: "token-1", 1080.0: "token-2", 1159.0: "token-2"}
    assert source.held == Token("token-2", 1180.0)


def test_an_outage_shorter_than_the_tokens_life_interrupts_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """The token at hand serves while it lives; each quarter of what is left it is tried again; then the failure is told."""
    clock = Clock()
    source = TokenSource(clock.fetch, now=clock)
    source.token()
    clock.failure = Unavailable("The token endpoint did not answer.")
    clock.now = 1080.0
    assert source.token().value == "token-1"
    assert "expires in 20 s: The token endpoint did not answer." in caplog.text
    clock.failure = None
    clock.now = 1084.0
    assert source.token().value == "token-1", "not asked again with every request"
    clock.now = 1085.0
    assert source.token().value == "token-2"
    clock.failure, clock.now = Unavailable("The token endpoint did not answer."), 1185.0
    with pytest.raises(Unavailable):
        source.token()


def test_a_token_that_has_ended_is_not_shown_to_brokers() -> None:
    """A clock that is wrong, or a file that no process renews: one sentence instead of brokers that hang up."""
    source = TokenSource(lambda: Token("old", 999.0), now=lambda: 1000.0)
    with pytest.raises(AuthenticationFailed, match="has expired") as failure:
        source.token()
    assert "clock" in str(failure.value.hint)


def test_no_thread_waits_for_a_renewal_while_the_token_lives() -> None:
    """One thread asks a slow endpoint; meanwhile the others are handed the token at hand."""
    asked, answer = threading.Event(), threading.Event()
    clock = Clock()

    def fetch() -> Token:
        if clock.given:
            asked.set()
            assert answer.wait(60)
        return clock.fetch()

    source = TokenSource(fetch, now=clock)
    source.token()
    clock.now = 1085.0
    renewing = threading.Thread(target=source.token)
    renewing.start()
    try:
        assert asked.wait(60)
        assert source.token().value == "token-1"
    finally:
        answer.set()
        renewing.join()
    assert source.token().value == "token-2"


@pytest.mark.parametrize("url", ["http://login.example/token", "http://10.0.0.1/token"])
def test_a_secret_is_not_sent_in_the_clear(url: str) -> None:
    """Plain http is for the loopback; elsewhere the address is refused before anything is sent."""
    with pytest.raises(UsageError, match="in the clear"):
        ClientCredentials(url, "id", "secret")


def test_a_proxy_of_the_environment_is_not_shown_the_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever ``http_proxy`` says, the endpoint itself is asked."""
    told: list[str] = []

    class Proxy(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            told.append(self.path)
            self.send_error(502)

    proxy = HTTPServer(("127.0.0.1", 0), Proxy)
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.server_address[1]}")
    monkeypatch.setenv("no_proxy", "")
    (port,) = free_ports(1)
    with pytest.raises(Unavailable):
        ClientCredentials(f"http://127.0.0.1:{port}/token", "id", "secret").fetch()
    proxy.shutdown()
    proxy.server_close()
    assert told == []
