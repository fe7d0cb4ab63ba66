"""PEM material, wherever the configuration keeps it: in a file or in the property itself.

Files are read when a client is made and not when the configuration is parsed, so that a renewed certificate is picked up.
"""

from __future__ import annotations

import os
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from ballast.errors import UsageError


@dataclass(frozen=True, slots=True)
class Pem:
    """One piece of PEM text; exactly one of the two is set."""

    text: str | None = field(default=None, repr=False)
    path: Path | None = None
    what: str = "certificates"
    """For messages: ``trusted certificates``, ``client key``, …"""

    def read(self) -> str:
        """The text; raises ``UsageError`` when the file is missing, unreadable or in another format."""
        if self.text is not None:
            return self.text
        assert self.path is not None
        try:
            raw = self.path.read_bytes()
        except OSError as failure:
            raise UsageError(
                f"The file with the {self.what}, {self.path}, cannot be read: {failure.strerror}.",
                hint="Check the path and its permissions.",
            ) from None
        if b"-----BEGIN" not in raw:
            raise UsageError(
                f"The file with the {self.what}, {self.path}, is not PEM.", hint=_conversion(raw, self.path)
            )
        return raw.decode("utf-8", "replace")


def _conversion(raw: bytes, path: Path) -> str:
    """How to make PEM of what the file holds, told from its first bytes."""
    if raw[:4] == b"\xfe\xed\xfe\xed" or path.suffix == ".jks":
        return (
            f"It is a Java keystore; convert it: keytool -importkeystore -srckeystore {path} -destkeystore store.p12 "
            "-deststoretype PKCS12, then openssl pkcs12 -in store.p12 -out store.pem, and name store.pem instead."
        )
    return f"If it is PKCS12, convert it: openssl pkcs12 -in {path} -out store.pem, and name store.pem instead."


@contextmanager
def as_file(text: str) -> Iterator[str]:
    """The text in a private file for an interface that takes only paths; the file is gone afterwards."""
    handle, name = tempfile.mkstemp(prefix="ballast-", suffix=".pem")
    try:
        with os.fdopen(handle, "w") as out:
            out.write(text)
        yield name
    finally:
        Path(name).unlink()


def client_context(
    *, trusted: Pem | None, certificate: Pem | None, key: Pem | None, key_password: str | None, verify_hostname: bool
) -> ssl.SSLContext:
    """A TLS client context of this material; raises ``UsageError`` on what OpenSSL cannot load."""
    context = ssl.create_default_context(ssl.Purpose.SERVER_AUTH)
    context.check_hostname = verify_hostname
    if trusted is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.check_hostname = verify_hostname
        try:
            context.load_verify_locations(cadata=trusted.read())
        except ssl.SSLError:
            raise UsageError(
                f"The {trusted.what} hold no certificate that can be read.", hint="Each is in a CERTIFICATE block."
            ) from None
    if certificate is not None:
        _load_client_certificate(context, certificate, key, key_password)
    return context


def _load_client_certificate(
    context: ssl.SSLContext, certificate: Pem, key: Pem | None, key_password: str | None
) -> None:
    # OpenSSL takes a chain and its key from files only.
    text = certificate.read() + ("\n" + key.read() if key is not None else "")
    with as_file(text) as name:
        try:
            context.load_cert_chain(name, password=key_password or "")
        except (ssl.SSLError, ValueError):
            raise UsageError(
                "The client certificate and its key cannot be loaded.",
                hint="Check that the key belongs to the certificate and that ssl.key.password is right.",
            ) from None
