"""Tokens for SASL/OAUTHBEARER: fetched with client credentials, read from a file, or unsecured for tests.

One source serves every client, so that a token is fetched once and renewed before it expires.
"""

from __future__ import annotations

import base64
import json
import ssl
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from ballast.errors import AuthenticationFailed, Unavailable, UsageError

RENEW_AT_SHARE: Final = 0.8
"""A token is replaced when this share of its life is over, as Kafka's own client does."""
_ASSUMED_LIFE_S: Final = 300.0


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

    def token(self) -> Token:
        """A token that is valid at this moment; raises ``AuthenticationFailed`` or ``Unavailable``."""
        with self._lock:
            now = self._now()
            if self._token is None or now >= self._renew_at_s:
                self._token = self._fetch()
                self._renew_at_s = now + (self._token.expires_at_s - now) * RENEW_AT_SHARE
            return self._token


def unsecured_token(claims: dict[str, str], *, life_s: float = 3600.0, now: Callable[[], float] = time.time) -> Token:
    """An unsigned token (RFC 7515 ``alg: none``), which brokers accept only where they are set up for trials."""
    issued = now()
    body: dict[str, Any] = {"iat": issued, "exp": issued + life_s, **claims}
    parts = (_encode({"alg": "none"}), _encode(body), "")
    return Token(".".join(parts), issued + life_s)


def token_from_file(path: Path) -> Token:
    """The token that something else (a kubelet, a side-car) keeps fresh in a file."""
    try:
        value = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        raise AuthenticationFailed(
            f"The OAuth token file {path} cannot be read.", hint="Check sasl.oauthbearer.token.endpoint.url."
        ) from None
    return Token(value, _expiry(value))


@dataclass(frozen=True, slots=True)
class ClientCredentials:
    """The OAuth 2 client-credentials grant."""

    endpoint: str
    client_id: str
    client_secret: str = field(repr=False)
    scope: str | None = None
    timeout_s: float = 10.0
    tls: ssl.SSLContext | None = None

    def fetch(self) -> Token:
        """Ask the token endpoint once."""
        if urllib.parse.urlsplit(self.endpoint).scheme not in {"http", "https"}:
            raise UsageError(
                "sasl.oauthbearer.token.endpoint.url is neither http(s) nor file.",
                hint="Give the token endpoint's full URL.",
            )
        form = {"grant_type": "client_credentials"} | ({"scope": self.scope} if self.scope else {})
        credentials = base64.b64encode(f"{self.client_id}:{self.client_secret}".encode()).decode()
        request = urllib.request.Request(  # noqa: S310 — the scheme was checked above
            self.endpoint,
            data=urllib.parse.urlencode(form).encode(),
            headers={"Authorization": f"Basic {credentials}", "Accept": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=self.timeout_s, context=self.tls) as answer:  # noqa: S310
                body = json.load(answer)
        except urllib.error.HTTPError as failure:
            raise AuthenticationFailed(
                f"The token endpoint refused the client credentials with HTTP {failure.code}.",
                hint="Check clientId, clientSecret and scope in sasl.jaas.config.",
            ) from None
        except (OSError, ValueError) as failure:
            raise Unavailable(
                f"The token endpoint did not answer: {type(failure).__name__}.",
                hint="Check sasl.oauthbearer.token.endpoint.url and the network.",
            ) from None
        value = body.get("access_token") if isinstance(body, dict) else None
        if not isinstance(value, str):
            raise AuthenticationFailed("The token endpoint answered without an access_token.")
        life = body.get("expires_in")
        return Token(value, time.time() + float(life) if isinstance(life, int | float) else _expiry(value))


def _encode(value: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def _expiry(token: str) -> float:
    """The ``exp`` claim of a JSON web token, else a short life from now."""
    try:
        body = token.split(".")[1]
        return float(json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))["exp"])
    except (IndexError, ValueError, KeyError, TypeError):
        return time.time() + _ASSUMED_LIFE_S
