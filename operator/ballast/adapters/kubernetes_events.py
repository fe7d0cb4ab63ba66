"""Kubernetes Events about this process's own pod, so that ``kubectl describe pod`` tells what Ballast did.

One request of the API is used, ``POST /apis/events.k8s.io/v1/namespaces/<namespace>/events``, over plain HTTPS with what the
pod was given: address, CA, token, namespace.  The token and the CA are read anew for each event, since both rotate.

Events are a courtesy: a thread of its own sends them, at a bounded rate, from a queue of bounded length.  What does not go
through is lost and counted; a refusal is logged once, and once more when it is over.  Nothing waits for any of it.
"""

from __future__ import annotations

import http.client
import itertools
import json
import logging
import queue
import ssl
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Self

from ballast.adapters.clock import SystemClock
from ballast.errors import UsageError
from ballast.ports.event_sink import ClusterEvent
from ballast.ports.time import Clock

log = logging.getLogger(__name__)

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
CONTROLLER: Final = "kafka-ballast/ballast"
LONGEST_NOTE_BYTES: Final = 1024
"""The API refuses longer notes."""
LONGEST_STEM: Final = 200
"""Of the 253 characters of a name; the rest is for what tells one event from another."""
BURST: Final = 10
REFILL_S: Final = 30.0
"""One event in so many seconds, after a burst; a controller that floods the API is switched off, and rightly."""
WAITING: Final = 50
TIMEOUT_S: Final = 5.0
REFUSED_PAUSE_S: Final = 600.0
"""How long nothing is sent after a refusal: a missing right is not granted in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """What a pod knows of itself and of its API server."""

    host: str
    port: int
    name: str
    uid: str
    account: Path = SERVICE_ACCOUNT
    """The folder with ``token``, ``ca.crt`` and ``namespace``."""

    @classmethod
    def of(cls, environment: Mapping[str, str], account: Path = SERVICE_ACCOUNT) -> Self:
        """From the environment of a pod; a sentence says what is missing."""
        host, port = environment.get("KUBERNETES_SERVICE_HOST"), environment.get("KUBERNETES_SERVICE_PORT", "443")
        missing = [name for name in ("token", "ca.crt", "namespace") if not (account / name).is_file()]
        if not host or missing:
            raise UsageError(
                "events.kubernetes is true, and this process has no access to a Kubernetes API: "
                + (f"{account} has no {missing[0]}." if host else "KUBERNETES_SERVICE_HOST is not set."),
                hint="In the chart set events.enabled: true; outside of Kubernetes leave events.kubernetes out.",
            )
        name, uid = environment.get("BALLAST_INSTANCE", ""), environment.get("BALLAST_POD_UID", "")
        if not name or not uid or not port.isdigit():
            raise UsageError(
                "Kubernetes Events need to know the pod: BALLAST_INSTANCE (its name) and BALLAST_POD_UID are not both set.",
                hint="The chart sets both from the downward API with events.enabled: true.",
            )
        return cls(host=host, port=int(port), name=name, uid=uid, account=account)

    def read(self, name: str) -> str:
        """One file of the service account."""
        return (self.account / name).read_text().strip()


class KubernetesEvents:
    """An ``EventSink`` that posts events."""

    def __init__(
        self,
        pod: Pod,
        *,
        clock: Clock | None = None,
        tell: Callable[[str], None] = log.warning,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        self._pod = pod
        self._timeout_s = timeout_s
        self._clock = clock or SystemClock()
        self._tell = tell
        self._waiting: queue.Queue[ClusterEvent | None] = queue.Queue(WAITING)
        self._bucket = float(BURST)
        self._filled_s = self._clock.monotonic_s()
        self._silent_until_s = 0.0
        self._trouble = ""
        self._numbers = itertools.count()
        self.lost = 0
        """Events that were not delivered: too much at once, or a server that would not have it."""
        self._thread = threading.Thread(target=self._carry, name="events", daemon=True)
        self._thread.start()

    def __call__(self, news: ClusterEvent, /) -> None:
        """Take one piece of news; drop it where there is too much."""
        try:
            self._waiting.put_nowait(news)
        except queue.Full:
            self.lost += 1

    def close(self, timeout_s: float = TIMEOUT_S) -> None:
        """Send what waits, for at most so long."""
        try:
            self._waiting.put_nowait(None)
        except queue.Full:
            return
        self._thread.join(timeout_s)

    def _carry(self) -> None:
        while (news := self._waiting.get()) is not None:
            if self._clock.monotonic_s() < self._silent_until_s or not self._may_send():
                self.lost += 1
                continue
            trouble, pause_s = self._send(news)
            self._silent_until_s = self._clock.monotonic_s() + pause_s
            if trouble:
                self.lost += 1
            if trouble and not self._trouble:
                self._tell(f"Kubernetes Events are not written: {trouble}")
            elif self._trouble and not trouble:
                self._tell("Kubernetes Events are written again.")
            self._trouble = trouble

    def _may_send(self) -> bool:
        """A bucket of tokens that fills by one every ``REFILL_S``."""
        now_s = self._clock.monotonic_s()
        self._bucket = min(float(BURST), self._bucket + (now_s - self._filled_s) / REFILL_S)
        self._filled_s = now_s
        if self._bucket < 1:
            return False
        self._bucket -= 1
        return True

    def _send(self, news: ClusterEvent) -> tuple[str, float]:
        """What went wrong, in a sentence without the token, and for how long to be silent."""
        try:
            namespace = self._pod.read("namespace")
            status, answer = self._post(namespace, json.dumps(self._event(news, namespace)))
        except (OSError, http.client.HTTPException) as failure:
            reason = failure.strerror if isinstance(failure, OSError) and failure.strerror else type(failure).__name__
            return f"the API server at {self._pod.host} cannot be asked ({reason}).", 0.0
        if status == http.client.CREATED:
            return "", 0.0
        hint = " The pod's ServiceAccount needs the right to create events in events.k8s.io." if status == 403 else ""
        return f"the API server answers {status} {_message(answer)}.{hint}", REFUSED_PAUSE_S

    def _post(self, namespace: str, body: str) -> tuple[int, bytes]:
        trust = ssl.create_default_context(cafile=str(self._pod.account / "ca.crt"))
        connection = http.client.HTTPSConnection(self._pod.host, self._pod.port, timeout=self._timeout_s, context=trust)
        headers = {
            "Authorization": f"Bearer {self._pod.read('token')}",
            "Content-Type": "application/json",
            "Accept": "application/json",
        }
        try:
            connection.request("POST", f"/apis/events.k8s.io/v1/namespaces/{namespace}/events", body, headers)
            answer = connection.getresponse()
            return answer.status, answer.read(10_000)
        finally:
            connection.close()

    def _event(self, news: ClusterEvent, namespace: str) -> dict[str, Any]:
        now_ms = self._clock.now_ms()
        now = datetime.fromtimestamp(now_ms / 1000, UTC)
        return {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            # The server also judges the prefix of a generated name as a name, and no name ends in a dot: so it is made here.
            "metadata": {"name": f"{self._stem()}.{now_ms:x}-{next(self._numbers):x}", "namespace": namespace},
            "eventTime": f"{now:%Y-%m-%dT%H:%M:%S.%f}Z",
            "type": "Warning" if news.warning else "Normal",
            "reason": news.reason,
            "action": news.reason,
            "note": _cut(news.sentence),
            "regarding": {
                "apiVersion": "v1",
                "kind": "Pod",
                "name": self._pod.name,
                "namespace": namespace,
                "uid": self._pod.uid,
            },
            "reportingController": CONTROLLER,
            "reportingInstance": self._pod.name[:128],
        }

    def _stem(self) -> str:
        """The pod's name, short enough that a name made of it stays a name."""
        return self._pod.name[:LONGEST_STEM].rstrip("-.")


def _cut(sentence: str) -> str:
    """At most as many bytes as the API takes, and whole characters."""
    raw = sentence.encode()
    if len(raw) <= LONGEST_NOTE_BYTES:
        return sentence
    return raw[: LONGEST_NOTE_BYTES - 3].decode(errors="ignore") + "…"


def _message(answer: bytes) -> str:
    """The sentence of a Kubernetes Status."""
    try:
        said = json.loads(answer)
    except ValueError:
        return ""
    return str(said.get("message", ""))[:200].rstrip(".") if isinstance(said, dict) else ""
