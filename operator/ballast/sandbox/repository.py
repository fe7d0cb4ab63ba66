"""The Maven repository that jars come from: its address, and many files at once.

The package ``jgo`` knows the central repository's address, so none is written here; ``BALLAST_MAVEN_REPOSITORY`` names a
mirror instead.  What arrives is judged by the caller.
"""

from __future__ import annotations

import os
import ssl
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, Final

from ballast.errors import Unavailable, UsageError

ADDRESS: Final = "BALLAST_MAVEN_REPOSITORY"
"""The variable that names another repository, laid out as Maven's are."""

AT_ONCE: Final = 8
TIMEOUT_S: Final = 60
TRIES: Final = 4
AGAIN: Final = (429, 500, 502, 503, 504)
"""What a busy repository answers before it answers well."""

BUNDLES: Final = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem")
"""Where systems keep the authorities that they trust, their owner's among them."""


def address() -> str:
    """Where jars come from, without a slash at the end."""
    if named := os.environ.get(ADDRESS):
        return named.rstrip("/")
    from jgo.maven import MavenContext  # noqa: PLC0415 — takes a moment, and is needed once

    (known,) = MavenContext().remote_repos.values()
    return str(known).rstrip("/")


def authorities() -> str | bool:
    """The file of trusted authorities: as the environment says, else the system's, else those that Python's packages bring."""
    environment = (os.environ.get(name) for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"))
    named = (*environment, ssl.get_default_verify_paths().cafile, *BUNDLES)
    return next((path for path in named if path and Path(path).is_file()), True)


def download(files: Mapping[str, Path], every_s: float) -> Iterator[list[str]]:
    """Fetch each path of the repository into its file; yields the paths that came since the last time, at least every so often.

    Raises ``Unavailable`` at the first that does not come, ``UsageError`` where the repository does not have it.
    """
    base, mine = address(), threading.local()

    def fetch(path: str, into: Path) -> str:
        if not hasattr(mine, "session"):
            mine.session = _session()
        _fetch(mine.session, f"{base}/{path}", into)
        return path

    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="jars") as pool:
        open_: set[Future[str]] = {pool.submit(fetch, path, into) for path, into in files.items()}
        try:
            while open_:
                done, open_ = wait(open_, timeout=every_s, return_when=FIRST_COMPLETED)
                yield [future.result() for future in done]
        finally:
            for future in open_:
                future.cancel()


def _session() -> Any:
    import requests  # noqa: PLC0415 — as above
    from urllib3.util import Retry  # noqa: PLC0415

    session = requests.Session()
    session.verify = authorities()
    again = Retry(total=TRIES - 1, backoff_factor=0.5, status_forcelist=AGAIN, raise_on_status=False)
    for scheme in ("https://", "http://"):
        session.mount(scheme, requests.adapters.HTTPAdapter(max_retries=again))
    return session


def _fetch(session: Any, url: str, into: Path) -> None:
    import requests  # noqa: PLC0415 — as above

    name = url.rpartition("/")[2]
    try:
        with session.get(url, stream=True, timeout=TIMEOUT_S) as answer:
            if answer.status_code == requests.codes.not_found:
                raise UsageError(
                    f"The repository does not have {name}.", hint=f"Does {ADDRESS} name a mirror that does?"
                )
            answer.raise_for_status()
            with into.open("wb") as file:
                for chunk in answer.iter_content(1 << 16):
                    file.write(chunk)
    except requests.RequestException as failure:
        raise Unavailable(
            f"{name} could not be fetched: {_reason(failure)}",
            hint=f"Check the network and the proxy's variables; {ADDRESS} names a mirror. What was fetched is kept.",
        ) from failure


def _reason(failure: Exception) -> str:
    """The innermost cause, without the address, which may hold a password."""
    answer = getattr(failure, "response", None)
    if answer is not None:
        return f"the repository answered {answer.status_code}"
    cause: BaseException = failure
    while cause.__context__ is not None:
        cause = cause.__context__
    return str(cause) or type(cause).__name__
