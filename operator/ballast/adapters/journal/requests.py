"""The topic in which others leave requests for the holder of the lock, and read how they were answered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import confluent_kafka as ck

from ballast.adapters.journal.client_errors import translate, translate_errors
from ballast.adapters.journal.log import TopicLog
from ballast.adapters.kafka import librdkafka
from ballast.adapters.kafka.identity import ClusterIdentity
from ballast.errors import JournalLost, Unavailable
from ballast.ports.journal import Request
from ballast.ports.journal_codec import RequestsView, encode_request

CONFIGS: Final = {
    "cleanup.policy": "compact,delete",
    "retention.ms": str(30 * 24 * 3600 * 1000),
    "segment.bytes": str(8 * 1024 * 1024),
    "unclean.leader.election.enable": "false",
}


class RequestsTopic:
    """One process's view of the requests; answers are written by the journal, in the holder's transactions."""

    def __init__(
        self, client: Mapping[str, Any], topic: str, *, timeout_s: float, identity: ClusterIdentity | None = None
    ) -> None:
        self.topic = topic
        self._client = client
        self._timeout_s = timeout_s
        self._log = TopicLog(client, topic, timeout_s=timeout_s, identity=identity)
        self.view = RequestsView()

    def ensure(self) -> bool:
        """Create the topic where it is missing; whether that was done."""
        return self._log.ensure(CONFIGS)

    def remake(self) -> None:
        """Make the topic again where it was lost; requests that stood in it are forgotten, and can be sent again."""
        self.view = RequestsView()
        self._log.rebuild(CONFIGS)

    def delete(self) -> None:
        """Delete the topic with every request in it."""
        self.view = RequestsView()
        self._log.delete()

    def send(self, request: Request) -> None:
        """Leave a request; one with a known id is not sent again."""
        self.ensure()
        if request.id in self.read(holds_lock=False).known:
            return
        failures: list[ck.KafkaError] = []
        with translate_errors("take the request"):
            producer = ck.Producer(librdkafka.with_logging(self._client) | {"enable.idempotence": True, "linger.ms": 0})
            producer.produce(
                self.topic,
                key=request.id.encode(),
                value=encode_request(request),
                partition=0,
                on_delivery=lambda error, _: failures.append(error) if error else None,
            )
            left = producer.flush(self._timeout_s)
        if failures:
            raise translate(failures[0], "take the request")
        if left:
            raise Unavailable("The cluster did not take the request in time.")

    def read(self, *, holds_lock: bool) -> RequestsView:
        """Every request.  Of a loss a reader is told once; the holder until it has made the topic again."""
        try:
            entries = self._log.new_entries(whole=False)
        except JournalLost:
            if not holds_lock:
                self.view = RequestsView()
                self._log.forget()
            raise
        for key, data in entries:
            self.view.apply(key, data)
        return self.view

    def close(self) -> None:
        """Close the connections."""
        self._log.close()
        self.view = RequestsView()
