"""What a sandbox may be asked for."""

from __future__ import annotations

from typing import Any

import pytest

from ballast.errors import UsageError
from ballast.sandbox import SandboxSpec


def test_brokers_are_dealt_over_the_racks() -> None:
    """Five brokers over three racks; without racks there are none."""
    spec = SandboxSpec(brokers=5)
    assert [spec.rack_of(broker) for broker in spec.broker_ids] == ["rack-1", "rack-2", "rack-3", "rack-1", "rack-2"]
    assert SandboxSpec(racks=0).rack_of(1) is None


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"mode": "zookeeper", "kafka_version": "4.3.1"}, "has no ZooKeeper"),
        ({"kafka_version": "2.3.1"}, "has no KRaft"),
        ({"mode": "zookeeper", "kafka_version": "3.9.2", "controllers": 3}, "elect the controller"),
        ({"log_dirs": 0}, "0 log dirs"),
        ({"broker_configs": {"": "x"}}, "no name"),
        ({"broker_configs": {"listeners": "PLAINTEXT://0.0.0.0:9092"}}, "decides listeners itself"),
        ({"broker_configs": {"broker.id": "9"}}, "decides broker.id itself"),
    ],
)
def test_what_could_not_start_is_refused_at_once(wrong: dict[str, Any], sentence: str) -> None:
    """In one sentence, before anything is started: no stack trace of Kafka's, and never another address than the loopback."""
    with pytest.raises(UsageError, match=sentence):
        SandboxSpec(**wrong)
