"""Our side of a SASL login, as a dialogue of messages without a connection: PLAIN, SCRAM (RFC 5802) and OAUTHBEARER.

The clients log in by themselves; this one is for finding out beforehand, and saying, why a login is refused.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections.abc import Callable, Generator, Mapping
from typing import Final

from ballast.adapters.auth.security import Security
from ballast.errors import AuthenticationFailed

Dialogue = Generator[bytes, bytes, None]
"""Yields what to send; is sent what the server answered; ends when it has nothing more to say."""

_HASHES: Final[dict[str, Callable[[bytes], bytes]]] = {
    "SCRAM-SHA-256": lambda b: hashlib.sha256(b).digest(),
    "SCRAM-SHA-512": lambda b: hashlib.sha512(b).digest(),
}


def dialogue(security: Security) -> Dialogue:
    """The messages for this security's mechanism."""
    if security.tokens is not None:
        return _oauth(security.tokens.token().value)
    username, password = security.username or "", security.password or ""
    if security.mechanism in _HASHES:
        return _scram(security.mechanism, username, password, secrets.token_urlsafe(18))
    return _plain(username, password)


def _plain(username: str, password: str) -> Dialogue:
    yield f"\0{username}\0{password}".encode()


def _oauth(token: str) -> Dialogue:
    refusal = yield f"n,,\x01auth=Bearer {token}\x01\x01".encode()
    if refusal:
        # The server's JSON is only its reason; it wants to hear this byte before it says so (RFC 7628).
        yield b"\x01"


def _check_challenge(given: Mapping[str, str], nonce: str) -> None:
    """A server that answers with another nonce has heard another login; one that asks for few iterations wants to guess the password."""
    fresh = given.get("r", "")
    iterations = given.get("i", "")
    if not fresh.startswith(nonce) or fresh == nonce or "s" not in given:
        raise AuthenticationFailed(
            "The server's SCRAM nonce does not match.",
            hint="The connection may be intercepted: check the address, and use TLS.",
        )
    if not iterations.isdecimal() or not LEAST_ITERATIONS <= int(iterations) <= MOST_ITERATIONS:
        raise AuthenticationFailed(
            f"The server asks for {iterations[:20] or 'no'} SCRAM iterations.",
            hint=f"Kafka takes {LEAST_ITERATIONS} at least. Set the user's password again, or check who answers.",
        )


LEAST_ITERATIONS: Final = 4096
MOST_ITERATIONS: Final = 1_000_000
"""Beyond, the login itself would keep us busy."""


def _scram(mechanism: str, username: str, password: str, nonce: str) -> Dialogue:
    name = username.replace("=", "=3D").replace(",", "=2C")
    opening = f"n={name},r={nonce}"
    challenge = (yield f"n,,{opening}".encode()).decode()
    given = dict(part.split("=", 1) for part in challenge.split(",") if "=" in part)
    _check_challenge(given, nonce)
    closing = f"c=biws,r={given['r']}"
    signed = f"{opening},{challenge},{closing}".encode()
    algorithm = "sha256" if mechanism == "SCRAM-SHA-256" else "sha512"
    salted = hashlib.pbkdf2_hmac(algorithm, password.encode(), base64.b64decode(given["s"]), int(given["i"]))
    client_key = hmac.digest(salted, b"Client Key", algorithm)
    signature = hmac.digest(_HASHES[mechanism](client_key), signed, algorithm)
    proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
    yield f"{closing},p={base64.b64encode(proof).decode()}".encode()
