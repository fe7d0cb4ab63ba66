"""Tokens for SASL/OAUTHBEARER: fetched with client credentials, read from a file, or unsecured for tests.

One source serves every client, so that a token is fetched once and renewed before it expires.  The client secret leaves this
module towards the token endpoint and nowhere else: no client library is given it, and no answer of the endpoint is repeated
beyond the error codes of the standard.
"""

from __future__ import annotations

import base64
import http.client
import ipaddress
import json
import logging
import math
import ssl
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from ballast.adapters.auth.http_exchange import Exchange
from ballast.errors import AuthenticationFailed, BallastError, Unavailable, UsageError

log: Final = logging.getLogger(__name__)

RENEW_AT_SHARE: Final = 0.8
"""A token is replaced when this share of its life is over, as Kafka's own client does."""
TRY_AGAIN_AT_SHARE: Final = 0.25
"""Where a token cannot be replaced yet, it is tried again after this share of what is left of its life."""
PROXY: Final = "ballast.oauthbearer.proxy.url"
"""The client property that names a proxy; Kafka has none, since its clients take the virtual machine's."""
_ASSUMED_LIFE_S: Final = 300.0
_UNSECURED_LIFE_S: Final = 3600.0
_MOST_BYTES: Final = 1 << 20
_MANY_REQUESTS: Final = 429
_ERROR_CODES: Final = frozenset(
    {
        "invalid_request",
        "invalid_client",
        "invalid_grant",
        "unauthorized_client",
        "unsupported_grant_type",
        "invalid_scope",
    }
)
"""What a token endpoint may answer (RFC 6749, 5.2); other text of it is not repeated."""


@dataclass(frozen=True, slots=True)
class Token:
    """A bearer token and the end of its life in seconds since the epoch."""

    value: str = field(repr=False)
    expires_at_s: float


class TokenSource:
    """Hands out a valid token to any thread, fetching a new one when the old one nears its end."""

    def __init__(self, fetch: Callable[[], Token], *, now: Callable[[], float] = time.time) -> None:
        self._fetch = fetch
        self._now = now
        self._lock = threading.Lock()
        self._token: Token | None = None
        self._renew_at_s = 0.0

    @property
    def held(self) -> Token | None:
        """The token that was handed out last; never waits."""
        return self._token

    def token(self) -> Token:
        """A token that is valid at this moment; raises ``AuthenticationFailed`` or ``Unavailable``.

        While one thread renews it, the others go on with the old one as long as that lives.
        """
        held = self._token
        if held is not None and self._now() < held.expires_at_s:
            if not self._lock.acquire(blocking=False):
                return held
        else:
            self._lock.acquire()
        try:
            if self._token is None or self._now() >= self._renew_at_s:
                self._token = self._renew(self._token)
            return self._token
        finally:
            self._lock.release()

    def _renew(self, old: Token | None) -> Token:
        try:
            fresh = self._fetch()
        except BallastError as failure:
            left_s = old.expires_at_s - self._now() if old is not None else 0.0
            if old is None or left_s <= 0:
                raise
            # An outage of the token endpoint that is shorter than the token's life interrupts nothing.
            self._renew_at_s = self._now() + left_s * TRY_AGAIN_AT_SHARE
            log.warning("the OAuth token is not renewed yet and expires in %.0f s: %s", left_s, failure)
            return old
        life_s = fresh.expires_at_s - self._now()
        if life_s <= 0:
            raise AuthenticationFailed(
                "The OAuth token has expired.",
                hint="Compare this machine's clock with the issuer's; a token file must be renewed by the program that writes it.",
            )
        self._renew_at_s = self._now() + life_s * RENEW_AT_SHARE
        return fresh


def unsecured_token(claims: dict[str, str]) -> Token:
    """An unsigned token (RFC 7515 ``alg: none``), which brokers accept only where they are set up for trials."""
    issued = time.time()
    body: dict[str, Any] = {"iat": issued, "exp": issued + _UNSECURED_LIFE_S, **claims}
    parts = (_encode({"alg": "none"}), _encode(body), "")
    return Token(".".join(parts), issued + _UNSECURED_LIFE_S)


def token_from_file(path: Path) -> Token:
    """The token that something else (a kubelet, a side-car) keeps fresh in a file."""
    try:
        value = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        raise AuthenticationFailed(
            f"The OAuth token file {path} cannot be read.", hint="Check sasl.oauthbearer.token.endpoint.url."
        ) from None
    return Token(value, _expiry(value))


class _NoOtherPlace(urllib.request.HTTPRedirectHandler):
    """Goes nowhere else: the request carries the secret, and urllib would carry it along."""

    def redirect_request(self, *_: object) -> None:
        """Leave the redirect as the error that it is."""


@dataclass(frozen=True, slots=True)
class ClientCredentials:
    """The OAuth 2 client-credentials grant; raises ``UsageError`` where the endpoint is no address of one."""

    endpoint: str
    client_id: str
    client_secret: str = field(repr=False)
    scope: str | None = None
    timeout_s: float = 10.0
    """For the whole of a fetch, the resolving of the name and a slow answer included."""
    url_encoded: bool = False
    """Encode id and secret before they are joined (RFC 6749, 2.3.1), which some providers insist on and others refuse."""
    tls: ssl.SSLContext | None = None
    proxy: str | None = field(default=None, repr=False)
    """An http proxy that leads to the endpoint, as an address that may carry a user and a password; None goes there directly."""

    def __post_init__(self) -> None:
        if self.proxy is not None:
            check_proxy(self.proxy, self.endpoint)
        try:
            parts = urllib.parse.urlsplit(self.endpoint)
            usable = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
        except ValueError:
            usable = False
        if usable and parts.scheme == "http" and not _is_here(str(parts.hostname)):
            raise UsageError(
                "sasl.oauthbearer.token.endpoint.url is a plain http address: the client secret would be sent in the clear.",
                hint="Give its https address. Plain http is taken on the loopback only.",
            )
        if not usable or any(c.isspace() or not c.isprintable() for c in self.endpoint):
            raise UsageError(
                "sasl.oauthbearer.token.endpoint.url is neither an http(s) address nor a file.",
                hint="Write https://HOST[:PORT]/PATH of the token endpoint, or file:///PATH of a token.",
            )

    @property
    def place(self) -> str:
        """The endpoint for messages: without a user, a password or a query that may stand in it."""
        parts = urllib.parse.urlsplit(self.endpoint)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"

    def fetch(self) -> Token:
        """Ask the token endpoint once; never waits longer than ``timeout_s``."""
        answer: Future[Token] = Future()
        exchange = Exchange()

        def ask() -> None:
            try:
                answer.set_result(self._ask(exchange))
            except BaseException as failure:  # noqa: BLE001 — it is raised where the answer is waited for
                answer.set_exception(failure)

        # Neither resolving a name nor an answer that comes byte by byte has a time limit of its own.
        threading.Thread(target=ask, daemon=True, name="oauth-token").start()
        try:
            return answer.result(self.timeout_s)
        except TimeoutError:
            raise self._silent(f"within {self.timeout_s:g} s") from None
        finally:
            # The thread ends as well: an endpoint that keeps its clients waiting would collect one at each renewal.
            exchange.end()

    def _ask(self, exchange: Exchange) -> Token:
        # The environment's proxies are not asked: one that http_proxy names would be handed the secret, or learn of us at least.
        handlers = [_NoOtherPlace(), urllib.request.ProxyHandler({}), *exchange.handlers(self.tls)]
        try:
            with urllib.request.build_opener(*handlers).open(self._request(), timeout=self.timeout_s) as response:
                answer = response.read(_MOST_BYTES)
                if response.length and len(answer) < _MOST_BYTES:
                    raise http.client.IncompleteRead(answer, response.length)
        except urllib.error.HTTPError as failure:
            with failure:
                raise self._failure_of(failure) from None
        except (OSError, http.client.HTTPException) as failure:
            raise self._unreachable(failure) from None
        return self._token(_document(answer))

    def _request(self) -> urllib.request.Request:
        form = {"grant_type": "client_credentials"} | ({"scope": self.scope} if self.scope else {})
        who = (self.client_id, self.client_secret)
        joined = ":".join(urllib.parse.quote_plus(word) if self.url_encoded else word for word in who)
        request = urllib.request.Request(  # noqa: S310 — the scheme was checked when this was made
            self.endpoint,
            data=urllib.parse.urlencode(form).encode(),
            headers={
                "Authorization": f"Basic {base64.b64encode(joined.encode()).decode()}",
                "Accept": "application/json",
            },
        )
        if self.proxy is not None:
            parts = urllib.parse.urlsplit(self.proxy)
            # TLS goes through it to the endpoint itself: the proxy is asked to connect, and is shown nothing.
            request.set_proxy(parts.netloc.rpartition("@")[2], "http")
            if parts.username is not None:
                user = f"{urllib.parse.unquote(parts.username)}:{urllib.parse.unquote(parts.password or '')}"
                request.add_header("Proxy-authorization", f"Basic {base64.b64encode(user.encode()).decode()}")
        return request

    def _token(self, document: dict[str, Any]) -> Token:
        value = document.get("access_token")
        if not isinstance(value, str) or not value:
            raise AuthenticationFailed(
                f"The token endpoint {self.place} answered without an access_token.",
                hint="Check that sasl.oauthbearer.token.endpoint.url is the token endpoint's own address.",
            )
        life_s = _finite(document.get("expires_in"))
        return Token(value, _expiry(value) if life_s is None else time.time() + life_s)

    def _failure_of(self, failure: urllib.error.HTTPError) -> BallastError:
        """What an HTTP status other than success means."""
        status = failure.code
        if status >= 500 or status == _MANY_REQUESTS:
            return Unavailable(
                f"The token endpoint {self.place} answered HTTP {status}.",
                hint="It is failing or overloaded: try again, or ask those who run it.",
            )
        if status < 400:
            return AuthenticationFailed(
                f"The token endpoint {self.place} redirects (HTTP {status}), which is not followed.",
                hint="Set sasl.oauthbearer.token.endpoint.url to that address: the secret is shown to no other.",
            )
        try:
            code = _document(failure.read(_MOST_BYTES)).get("error")
        except (OSError, http.client.HTTPException):
            code = None
        said = f", {code}" if code in _ERROR_CODES else ""
        return AuthenticationFailed(
            f"The token endpoint {self.place} rejected the client {self.client_id} (HTTP {status}{said}).",
            hint="Check the client id, the client secret, the scope and sasl.oauthbearer.token.endpoint.url.",
        )

    def _unreachable(self, failure: Exception) -> BallastError:
        """No answer at all, or none of a web server."""
        cause = failure.reason if isinstance(failure, urllib.error.URLError) else failure
        if isinstance(cause, ssl.SSLCertVerificationError):
            return AuthenticationFailed(
                f"The certificate of the token endpoint {self.place} is not trusted: {cause.verify_message}.",
                hint="Set ssl.truststore.location to the certificate authority's PEM file.",
            )
        return self._silent(
            f"({cause.strerror if isinstance(cause, OSError) and cause.strerror else type(cause).__name__})"
        )

    def _silent(self, how: str) -> Unavailable:
        return Unavailable(
            f"The token endpoint {self.place} did not answer {how}.",
            hint="Check sasl.oauthbearer.token.endpoint.url and the network.",
        )


def check_proxy(proxy: str, endpoint: str) -> None:
    """Raise ``UsageError`` where this is no proxy, or would be shown the secret; its address may carry a password and stays out."""
    try:
        parts = urllib.parse.urlsplit(proxy)
        usable = (
            parts.scheme == "http" and parts.hostname and parts.port and parts.path in {"", "/"} and not parts.query
        )
    except ValueError:
        usable = False
    if not usable or any(c.isspace() or not c.isprintable() for c in proxy):
        raise UsageError(
            f"{PROXY} is not the address of an http proxy.", hint="Write http://[USER:PASSWORD@]HOST:PORT."
        )
    if not endpoint.lower().startswith("https:"):
        raise UsageError(
            f"{PROXY} is set and the token endpoint has no https address: the proxy would be shown the client secret.",
            hint=f"Give the endpoint's https address, or leave {PROXY} out.",
        )


def _is_here(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _document(answer: bytes) -> dict[str, Any]:
    """A JSON object; empty where the answer is something else."""
    try:
        found = json.loads(answer)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _encode(value: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def _finite(value: Any) -> float | None:
    """A number, also one that a provider writes as text; None where it is none, or one beyond all that time can be."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _expiry(token: str) -> float:
    """The ``exp`` claim of a JSON web token, else a short life from now."""
    try:
        body = token.split(".")[1]
        end = _finite(json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))["exp"])
    except (IndexError, ValueError, KeyError, TypeError):
        end = None
    return time.time() + _ASSUMED_LIFE_S if end is None else end
