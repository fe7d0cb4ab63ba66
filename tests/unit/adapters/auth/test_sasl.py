"""The login before the login: what a server may ask of us in SCRAM."""

from __future__ import annotations

import base64

import pytest

from ballast.adapters.auth.sasl import dialogue
from ballast.adapters.auth.security import Security
from ballast.errors import AuthenticationFailed

SECURITY = Security(protocol="SASL_SSL", mechanism="SCRAM-SHA-256", username="ada", password="secret")  # noqa: S106
SALT = base64.b64encode(b"salt").decode()


def challenge(make: str) -> bytes:
    """Our proof in answer to a challenge; ``{nonce}`` is the nonce that we sent."""
    talk = dialogue(SECURITY)
    nonce = next(talk).decode().rpartition("r=")[2]
    return talk.send(make.format(nonce=nonce).encode())


def test_a_server_that_answers_us_gets_a_proof() -> None:
    """With its own addition to our nonce, a salt and Kafka's least iterations."""
    assert b",p=" in challenge(f"r={{nonce}}abc,s={SALT},i=4096")


@pytest.mark.parametrize(
    "wrong",
    [
        f"r=another,s={SALT},i=4096",
        f"r={{nonce}},s={SALT},i=4096",
        f"r={{nonce}}abc,s={SALT},i=1",
        f"r={{nonce}}abc,s={SALT},i=4095",
        f"r={{nonce}}abc,s={SALT},i=99999999",
        f"r={{nonce}}abc,s={SALT},i=x",
        "r={nonce}abc,i=4096",
        "nonsense",
    ],
)
def test_a_server_that_does_not_gets_nothing_to_guess_by(wrong: str) -> None:
    """Another nonce, none of its own, few iterations or endless ones."""
    with pytest.raises(AuthenticationFailed):
        challenge(wrong)
