"""Asks a Prometheus for what the Kafka protocol does not say, and lays the answers to brokers and topics.

A Prometheus that is away costs ``timeout_s`` and leaves a gap; it never costs the sample.  Answers are matched to brokers by
their labels; what matches none is said, since a join that quietly finds nothing would look like a cluster without consumers.
"""

from __future__ import annotations

import base64
import http.client
import json
import math
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, Final, NamedTuple

from ballast.adapters.samples.prometheus_queries import PrometheusPolicy, Queries
from ballast.core.cluster import ClusterState
from ballast.core.cluster.external_load import BrokerFigures, ExternalLoad
from ballast.errors import AuthenticationFailed, Unavailable, UsageError

TOPIC_BYTES_OUT: Final = "topic_bytes_out"
POD_LABELS: Final = frozenset({"kubernetes_pod_name", "pod"})
"""Labels whose values end in the broker's number where an operator such as Strimzi made the pods."""
LONGEST_ANSWER_BYTES: Final = 256 << 20
_PIECE_BYTES: Final = 1 << 16
_QUOTED: Final = 200


class Series(NamedTuple):
    """One line of an answer."""

    labels: Mapping[str, str]
    value: float


class PrometheusLoad:
    """Called with a reading of the cluster, it returns what Prometheus knows of its brokers and topics."""

    def __init__(self, policy: PrometheusPolicy, *, monotonic_s: Callable[[], float] = time.monotonic) -> None:
        if policy.url is None:
            raise UsageError("load.prometheus.url is not set.", hint="Give the address of a Prometheus.")
        self._policy = policy
        self._now = monotonic_s
        self._endpoint = policy.url.rstrip("/") + "/api/v1/query"
        handlers: list[Any] = [urllib.request.ProxyHandler({}), _NoRedirect()]
        if urllib.parse.urlsplit(policy.url).scheme == "https":
            handlers.append(urllib.request.HTTPSHandler(context=_trust(policy.ca_file)))
        # Straight to the address that was given: a token must reach no proxy and no other host.
        self._opener = urllib.request.build_opener(*handlers)

    def __call__(self, state: ClusterState) -> ExternalLoad:
        """Ask for everything; raises ``Unavailable`` when nothing at all came."""
        deadline = self._now() + self._policy.timeout_s
        found: dict[str, dict[Any, float]] = {}
        missing: list[str] = []
        names = BrokerNames(state, self._policy)
        for query in fields(Queries):
            expression = self._policy.expression(query.name)
            if expression is None:
                continue
            try:
                series = self._ask(expression, deadline)
            except _QueryRefused as refused:
                missing.append(f"{query.name}: {refused}")
                continue
            except Unavailable as away:
                if not found and not missing:
                    raise
                missing.append(f"{query.name} and what is asked after it: {away.message}")
                break
            found[query.name] = names.lay(series, by_topic=query.name == TOPIC_BYTES_OUT)
            if not series:
                missing.append(
                    f"{query.name}: no series; see the names, the selector and the window of load.prometheus."
                )
        missing += names.complaint()
        return _join(found, tuple(missing))

    def _ask(self, expression: str, deadline: float) -> list[Series]:
        """One instant query."""
        left = deadline - self._now()
        if left <= 0:
            raise Unavailable(f"Prometheus took longer than {self._policy.timeout_s:g} s.", hint=_PATIENCE)
        form = {"query": expression, "timeout": f"{max(int(left * 1000), 1)}ms"}
        request = urllib.request.Request(  # noqa: S310 — the settings allow http and https only
            self._endpoint, data=urllib.parse.urlencode(form).encode(), headers=self._headers()
        )
        try:
            with self._opener.open(request, timeout=left) as answer:
                body = json.loads(self._read(answer, deadline))
        except urllib.error.HTTPError as refused:
            with refused:
                raise _refusal(refused) from None
        except (OSError, http.client.HTTPException, ValueError) as failure:
            reason = getattr(failure, "reason", failure)
            raise Unavailable(
                f"Prometheus at {self._policy.url} did not answer ({type(reason).__name__}).",
                hint="Check load.prometheus.url and the network.",
            ) from None
        return list(_series(body))

    def _read(self, answer: Any, deadline: float) -> bytes:
        """The whole answer, within the time: a limit on the socket alone would begin anew with each piece."""
        pieces, size = [], 0
        while piece := answer.read1(_PIECE_BYTES):
            pieces.append(piece)
            size += len(piece)
            if self._now() > deadline:
                raise Unavailable(f"Prometheus took longer than {self._policy.timeout_s:g} s.", hint=_PATIENCE)
            if size > LONGEST_ANSWER_BYTES:
                raise Unavailable(
                    "Prometheus answers with more than 256 MiB.",
                    hint="Narrow load.prometheus.selector to this cluster's brokers.",
                )
        return b"".join(pieces)

    def _headers(self) -> dict[str, str]:
        headers = {"Accept": "application/json", "Content-Type": "application/x-www-form-urlencoded"}
        policy = self._policy
        if policy.bearer_token_file is not None:
            headers["Authorization"] = f"Bearer {_secret(policy.bearer_token_file, 'bearer_token_file')}"
        elif policy.username is not None and policy.password_file is not None:
            pair = f"{policy.username}:{_secret(policy.password_file, 'password_file')}"
            headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        return headers


class BrokerNames:
    """Which broker a series is of; counts what it could not tell."""

    def __init__(self, state: ClusterState, policy: PrometheusPolicy) -> None:
        self._policy = policy
        self._ids = frozenset(b.id for b in state.brokers)
        hosts = [(b.host or "", b.id) for b in state.brokers]
        self._host = _unique(hosts)
        self._first = _unique([(host.split(".")[0], id_) for host, id_ in hosts if not _is_ip(host)])
        self._strange: set[str] = set()
        self._matched = False

    def lay(self, series: list[Series], *, by_topic: bool) -> dict[Any, float]:
        """Broker, or broker and topic, to value; of two series for one, the larger is taken and not their sum."""
        out: dict[Any, float] = {}
        for labels, value in series:
            broker = self.broker(labels)
            if broker is None:
                self._strange.add(next((labels[n] for n in self._policy.broker_labels if labels.get(n)), "(no label)"))
                continue
            self._matched = True
            key = (broker, labels.get("topic", "")) if by_topic else broker
            out[key] = max(value, out.get(key, 0.0))
        return out

    def broker(self, labels: Mapping[str, str]) -> int | None:
        """The broker that the surest label names."""
        for label in self._policy.broker_labels:
            value = labels.get(label)
            found = self._find_broker(value, pod=label in POD_LABELS) if value else None
            if found is not None:
                return found
        return None

    def complaint(self) -> list[str]:
        """Say so when series came and none was of a broker of this cluster."""
        if self._matched or not self._strange:
            return []
        some = ", ".join(sorted(self._strange)[:3])
        return [f"No series matches a broker (found: {some}): see broker_labels and brokers of load.prometheus."]

    def _find_broker(self, value: str, *, pod: bool) -> int | None:
        if value in self._policy.brokers:
            return self._policy.brokers[value]
        if value.isdigit():
            return int(value) if int(value) in self._ids else None
        host = _without_port(value)
        found = self._host.get(host)
        if found is None and not _is_ip(host):
            found = self._first.get(host.split(".")[0])
        if found is None and pod:
            number = host.rpartition("-")[2]
            found = int(number) if number.isdigit() and int(number) in self._ids else None
        return found


class _QueryRefused(Exception):
    """Prometheus is there and will not answer this one expression."""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follows nothing: the next host is not the one that the token was given for."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


_PATIENCE: Final = "Raise load.prometheus.timeout_s, or ask for less by load.prometheus.queries."


def _refusal(refused: urllib.error.HTTPError) -> Exception:
    if refused.code in {401, 403}:
        return AuthenticationFailed(
            f"Prometheus refused the request with HTTP {refused.code}.",
            hint="Check load.prometheus.bearer_token_file, or username and password_file.",
        )
    if refused.code in {400, 422}:
        return _QueryRefused(_reason(refused))
    return Unavailable(
        f"Prometheus answered with HTTP {refused.code}.", hint="Check load.prometheus.url, its prefix included."
    )


def _reason(refused: urllib.error.HTTPError) -> str:
    try:
        said = json.loads(refused.read(_PIECE_BYTES))["error"]
    except (OSError, ValueError, KeyError, TypeError, http.client.HTTPException):
        said = f"HTTP {refused.code}"
    return f"Prometheus does not take the expression: {' '.join(str(said).split())[:_QUOTED]}"


def _series(body: Any) -> Iterator[Series]:
    """The lines of a vector; raises ``Unavailable`` for anything else."""
    try:
        data = body["data"]
        if body["status"] != "success" or data["resultType"] != "vector":
            raise _QueryRefused(f"the expression gives a {data['resultType']} where a list of series is needed")
        for entry in data["result"]:
            value = float(entry["value"][1])
            # A division by nothing or a counter that has just begun is no figure.
            if math.isfinite(value) and value >= 0:
                yield Series(entry["metric"], value)
    except (KeyError, TypeError, ValueError, IndexError):
        raise Unavailable(
            "What answers at load.prometheus.url is not a Prometheus.", hint="Check the address and its prefix."
        ) from None


def _join(found: Mapping[str, Mapping[Any, float]], missing: tuple[str, ...]) -> ExternalLoad:
    def of(name: str) -> Mapping[int, float]:
        return found.get(f"broker_{name}", {})

    names = ("bytes_in", "bytes_out", "requests", "cpu")
    brokers = sorted({id_ for name in names for id_ in of(name)})
    return ExternalLoad(
        {id_: BrokerFigures(**{name: of(name).get(id_) for name in names}) for id_ in brokers},
        found.get(TOPIC_BYTES_OUT, {}),
        missing,
    )


def _trust(ca_file: Path | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca_file)
    except OSError as failure:
        raise UsageError(
            f"load.prometheus.ca_file {ca_file} cannot be used: {failure.strerror or 'it holds no certificate'}.",
            hint="Give a PEM file with the certificate of the authority.",
        ) from None


def _secret(path: Path, name: str) -> str:
    """What a file holds; an error says the file's name and nothing of what is in it."""
    try:
        found = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        found = ""
    if not found or not found.isprintable():
        raise AuthenticationFailed(
            f"load.prometheus.{name} {path} cannot be used.", hint="It must hold one line of plain text."
        )
    return found


def _without_port(value: str) -> str:
    host, colon, port = value.rpartition(":")
    return host.strip("[]") if colon and port.isdigit() else value


def _is_ip(host: str) -> bool:
    return ":" in host or host.replace(".", "").isdigit()


def _unique(pairs: list[tuple[str, int]]) -> dict[str, int]:
    """Names that only one broker has."""
    times = Counter(name for name, _ in pairs)
    return {name: id_ for name, id_ in pairs if name and times[name] == 1}
