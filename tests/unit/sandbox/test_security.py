"""The users of a guarded sandbox."""

from __future__ import annotations

import socket
import threading
from collections.abc import Mapping
from concurrent.futures import Future

import pytest
from confluent_kafka import KafkaError, KafkaException

from ballast.errors import Unavailable
from ballast.sandbox import security
from ballast.sandbox.security import create_scram_users


def test_users_that_cannot_be_created_are_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a broker takes connections and never answers, once the time is over."""
    monkeypatch.setattr(security, "SCRAM_WITHIN_S", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(10)
        with pytest.raises(Unavailable, match="could not be created"):
            create_scram_users(f"127.0.0.1:{silent.getsockname()[1]}", {"admin": "word"})
        silent.accept()[0].close()


def test_users_are_created_by_the_next_controller_where_one_has_just_been_replaced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The broker that was asked did nothing: it is no longer the controller, or has just ended."""
    failing = [KafkaError.NOT_CONTROLLER, KafkaError._TRANSPORT]
    asked: list[object] = []

    class Client:
        def __init__(self, _: Mapping[str, object]) -> None:
            pass

        def alter_user_scram_credentials(self, users: object, **_: float) -> dict[str, Future[None]]:
            asked.append(users)
            future: Future[None] = Future()
            if failing:
                future.set_exception(KafkaException(KafkaError(failing.pop())))
            else:
                future.set_result(None)
            return {"admin": future}

    monkeypatch.setattr("confluent_kafka.admin.AdminClient", Client)
    monkeypatch.setattr(security, "SCRAM_PAUSE_S", 0.0)
    create_scram_users("127.0.0.1:1", {"admin": "word"})
    assert len(asked) == 3


def test_users_do_not_wait_for_a_controller_that_has_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one client hears of the next controller by metadata that it is asked for meanwhile; left alone, it would give up before."""
    asked: Future[None] = Future()
    gives_up = threading.Timer(3.0, lambda: asked.set_exception(KafkaException(KafkaError(KafkaError._TIMED_OUT))))
    made: list[Mapping[str, object]] = []

    class Client:
        def __init__(self, config: Mapping[str, object]) -> None:
            made.append(config)

        def alter_user_scram_credentials(self, users: object, **_: float) -> dict[str, Future[None]]:
            del users
            gives_up.start()
            return {"admin": asked}

        def list_topics(self, **_: float) -> None:
            gives_up.cancel()
            asked.set_result(None)

    monkeypatch.setattr("confluent_kafka.admin.AdminClient", Client)
    create_scram_users("127.0.0.1:1", {"admin": "word"})
    assert len(made) == 1
