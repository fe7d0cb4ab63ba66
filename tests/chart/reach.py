"""Computes who may reach whom under NetworkPolicies, as Kubernetes documents it; any field that is not understood here is an error.

A pod that no policy selects for a direction is open in it; one that some policy selects is reached, or reaches out, only where
some rule of some such policy lets it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Party:
    """A pod, or a client outside the cluster (``namespace`` is empty), which no selector finds."""

    namespace: str
    labels: Mapping[str, str] = field(default_factory=dict)
    ports: Mapping[str, int] = field(default_factory=dict)
    """Named ports."""


@dataclass(frozen=True, slots=True)
class Network:
    """Policies, and the labels of namespaces beside the name that each has."""

    policies: Sequence[Mapping[str, Any]]

    def reaches(self, source: Party, target: Party, port: int, protocol: str = "TCP") -> bool:
        """Does a connection come through in both places?"""
        at = (target, port, protocol)
        return self._passes("egress", source, target, at) and self._passes("ingress", target, source, at)

    def _passes(self, way: str, subject: Party, other: Party, at: tuple[Party, int, str]) -> bool:
        specs = [p["spec"] for p in self.policies if self._selects(p, subject, way)]
        rules = [rule for spec in specs for rule in spec.get(way, ())]
        return not specs or any(
            _peer(rule, "to" if way == "egress" else "from", subject, other) and _port(rule, *at) for rule in rules
        )

    @staticmethod
    def _selects(policy: Mapping[str, Any], pod: Party, way: str) -> bool:
        inside = policy["metadata"].get("namespace", "kafka") == pod.namespace
        return (
            inside
            and way.capitalize() in policy["spec"]["policyTypes"]
            and _match(policy["spec"]["podSelector"], pod.labels)
        )


def pods(objects: Iterable[Mapping[str, Any]], namespace: str = "kafka") -> dict[str, Party]:
    """Every pod that the objects make, by kind and name."""
    found = {}
    for obj in objects:
        spec = obj.get("spec", {})
        template = (
            obj
            if obj["kind"] == "Pod"
            else spec.get("template") or spec.get("jobTemplate", {}).get("spec", {}).get("template")
        )
        if template:
            ports = {p["name"]: p["containerPort"] for c in template["spec"]["containers"] for p in c.get("ports", ())}
            name = f"{obj['kind']} {obj['metadata']['name']}"
            found[name] = Party(namespace=namespace, labels=template["metadata"]["labels"], ports=ports)
    return found


def _peer(rule: Mapping[str, Any], key: str, subject: Party, other: Party) -> bool:
    assert set(rule) <= {key, "ports"}, f"not understood: {rule}"
    return not rule.get(key) or any(_is(peer, subject, other) for peer in rule[key])


def _is(peer: Mapping[str, Any], subject: Party, other: Party) -> bool:
    assert peer, "a peer that says nothing"
    assert set(peer) <= {"podSelector", "namespaceSelector"}, f"not understood: {peer}"
    if not other.namespace:
        return False
    near = (
        _match(peer["namespaceSelector"], {"kubernetes.io/metadata.name": other.namespace})
        if "namespaceSelector" in peer
        else other.namespace == subject.namespace
    )
    return near and _match(peer.get("podSelector", {}), other.labels)


def _match(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    assert set(selector) <= {"matchLabels"}, f"not understood: {selector}"
    wanted: Mapping[str, str] = selector.get("matchLabels", {})
    return wanted.items() <= labels.items()


def _port(rule: Mapping[str, Any], target: Party, port: int, protocol: str) -> bool:
    if not rule.get("ports"):
        return True
    return any(
        p.get("protocol", "TCP") == protocol and target.ports.get(p["port"], p["port"]) == port for p in rule["ports"]
    )
