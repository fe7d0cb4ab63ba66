"""Creating topics while the controller changes."""

from __future__ import annotations

import concurrent.futures
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from ballast.adapters import confluent
from ballast.adapters.confluent import Admin
from ballast.adapters.security import Security
from ballast.errors import Refused, Unavailable


class Client:
    """Answers with these errors one after another, then with success."""

    def __init__(self, *errors: int) -> None:
        self.errors = list(errors)
        self.asked = 0

    def create_topics(self, topics: list[Any], **_: float) -> dict[str, concurrent.futures.Future[None]]:
        """One future, done."""
        self.asked += 1
        future: concurrent.futures.Future[None] = concurrent.futures.Future()
        if self.errors:
            future.set_exception(KafkaException(KafkaError(self.errors.pop(0))))
        else:
            future.set_result(None)
        return {topics[0].topic: future}


def admin_of(client: Client, monkeypatch: pytest.MonkeyPatch, timeout_s: float = 5.0) -> Admin:
    """An admin whose client this is."""
    admin = Admin("127.0.0.1:1", Security.from_properties({}), timeout_s=timeout_s)
    monkeypatch.setattr(admin, "_admin", lambda: client)
    monkeypatch.setattr(confluent, "_CONTROLLER_PAUSE_S", 0.01)
    return admin


def test_a_broker_that_is_no_longer_the_controller_is_not_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """It did nothing, so the request is sent again; other answers are told as they are."""
    client = Client(KafkaError.NOT_CONTROLLER, KafkaError.NOT_CONTROLLER)
    admin_of(client, monkeypatch).create_topic("t", {0: (1, 2)}, None)
    assert client.asked == 3
    client = Client(KafkaError.POLICY_VIOLATION)
    with pytest.raises(Refused, match="POLICY_VIOLATION"):
        admin_of(client, monkeypatch).create_topic("t", {0: (1, 2)}, None)
    assert client.asked == 1


def test_a_cluster_without_a_controller_is_waited_for_a_bounded_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then it is said that it cannot be reached for this, and that trying later makes sense."""
    client = Client(*[KafkaError.NOT_CONTROLLER] * 1000)
    with pytest.raises(Unavailable, match="electing a controller"):
        admin_of(client, monkeypatch, timeout_s=0.2).create_topic("t", {0: (1, 2)}, None)
    assert client.asked > 2
