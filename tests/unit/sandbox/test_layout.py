"""How the nodes of a sandbox are configured."""

from __future__ import annotations

from pathlib import Path

from ballast.sandbox import SandboxSpec, layout
from ballast.sandbox.spec import ITS_OWN


def test_every_listener_is_on_the_loopback() -> None:
    """No configuration of any kind of cluster names another address."""
    ports = layout.Ports(brokers={1: 1001}, controllers={9001: 1002}, internals={1: 1003}, zookeeper=1004)
    for mode in ("kraft", "zookeeper"):
        spec = SandboxSpec(brokers=1, mode="kraft" if mode == "kraft" else "zookeeper", kafka_version="3.9.2")
        configs = layout.broker_properties(spec, ports, 1, [Path("/data")], None)
        listened = configs["listeners"] + configs["advertised.listeners"]
        assert listened.count("://") == listened.count("://127.0.0.1:") == 2
    assert layout.zookeeper_properties(ports, Path("/data"))["clientPortAddress"] == "127.0.0.1"


def test_a_brokers_own_setting_wins() -> None:
    """What a person sets with --set is what the broker gets."""
    spec = SandboxSpec(brokers=1, broker_configs={"auto.leader.rebalance.enable": "true"})
    ports = layout.Ports(brokers={1: 1}, controllers={9001: 2}, internals={})
    configs = layout.broker_properties(spec, ports, 1, [Path("/data")], None)
    assert configs["auto.leader.rebalance.enable"] == "true"


def test_no_broker_gives_up_before_the_sandbox_does() -> None:
    """On a busy machine the controller may take longer than Kafka's 60 s to register a broker, which then ends."""
    ports = layout.Ports(brokers={1: 1}, controllers={9001: 2}, internals={})
    configs = layout.broker_properties(SandboxSpec(brokers=1), ports, 1, [Path("/data")], None)
    assert int(configs["initial.broker.registration.timeout.ms"]) >= 1000 * layout.READY_WITHIN_S


def test_every_setting_that_the_layout_writes_for_listeners_and_folders_is_its_own() -> None:
    """Whatever is told of addresses, ids and folders cannot be overruled by --set."""
    ports = layout.Ports(brokers={1: 1}, controllers={9001: 2}, internals={}, zookeeper=3)
    for mode in ("kraft", "zookeeper"):
        spec = SandboxSpec(brokers=1, mode="kraft" if mode == "kraft" else "zookeeper", kafka_version="3.9.2")
        configs = layout.broker_properties(spec, ports, 1, [Path("/data")], None)
        placed = {
            name for name, value in configs.items() if "127.0.0.1" in value or "/data" in value or name.endswith(".id")
        }
        assert len(placed) >= 3
        assert placed <= ITS_OWN
