"""Configurations of topics and brokers: what is set, by whom, and incremental changes (KIP-339).

A snapshot asks only for the keys that decisions use, so that ten thousand topics stay one quick question.  A broker's own
entries can be read and changed at that broker only (others answer "Unexpected broker id", on KRaft too), so those of a down
broker have to wait for it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from ballast.adapters.kafka.confluent import Entries
from ballast.adapters.kafka.kafka_python import Wire, code_name, raise_for
from ballast.adapters.kafka.kafka_python_parts import DescribeConfigsRequest, IncrementalAlterConfigsRequest
from ballast.adapters.kafka.reassignments import WRITE_ONCE
from ballast.adapters.kafka.responses import read_config_entries
from ballast.adapters.kafka.rights import config_change_of, configs_of, explain
from ballast.errors import BallastError
from ballast.ports.cluster import OK, ConfigChange, ConfigResource, Outcome

TOPIC_KEYS: Final = (
    "min.insync.replicas",
    "leader.replication.throttled.replicas",
    "follower.replication.throttled.replicas",
    "unclean.leader.election.enable",
    "cleanup.policy",
    "retention.ms",
    "retention.bytes",
    "segment.bytes",
    "remote.storage.enable",
    "max.message.bytes",
)
"""What a snapshot reads of each topic."""

BROKER_KEYS: Final = (
    "leader.replication.throttled.rate",
    "follower.replication.throttled.rate",
    "replica.alter.log.dirs.io.max.bytes.per.second",
    "auto.leader.rebalance.enable",
    "leader.imbalance.per.broker.percentage",
    "leader.imbalance.check.interval.seconds",
    "replica.lag.time.max.ms",
    "min.insync.replicas",
    "default.replication.factor",
    "num.partitions",
    "unclean.leader.election.enable",
    "inter.broker.protocol.version",
    "log.dirs",
    "log.dir",
    "cordoned.log.dirs",
    "process.roles",
    "num.replica.fetchers",
    "follower.fetch.last.tiered.offset.enable",
    "message.max.bytes",
    "replica.selector.class",
    "confluent.balancer.enable",
    "confluent.balancer.heal.uneven.load.trigger",
)
"""What a snapshot reads of each broker and of the cluster-wide default."""

RESOURCES_PER_REQUEST: Final = 1_000
_KINDS: Final = {"topic": 2, "broker": 4}
_NAMES: Final = {number: kind for kind, number in _KINDS.items()}
_OPERATIONS: Final = {"set": 0, "delete": 1, "append": 2, "subtract": 3}


def describe(
    wire: Wire, resources: Collection[ConfigResource], keys: Sequence[str] | None = None
) -> tuple[Entries, dict[ConfigResource, BallastError]]:
    """Every entry (of ``keys``) of each resource, defaults included, and why a resource has none.

    A resource that does not exist is in neither.
    """
    anywhere = [r for r in resources if r.kind == "topic" or not r.name]
    brokers = [r for r in resources if r.kind == "broker" and r.name]
    entries: Entries = {}
    failures: dict[ConfigResource, BallastError] = {}
    for at in range(0, len(anywhere), RESOURCES_PER_REQUEST):
        chunk = anywhere[at : at + RESOURCES_PER_REQUEST]
        _take(wire.ask("configs", lambda chunk=chunk: _describe_request(chunk, keys)), entries, failures)  # type: ignore[misc]
    answers = wire.ask_each(
        "configs", [int(r.name) for r in brokers], lambda b: _describe_request([ConfigResource("broker", str(b))], keys)
    )
    for broker, answer in answers.items():
        if isinstance(answer, BallastError):
            failures[ConfigResource("broker", str(broker))] = answer
        else:
            _take(answer, entries, failures)
    return entries, failures


def _describe_request(resources: Sequence[ConfigResource], keys: Sequence[str] | None) -> Any:
    resource_type = DescribeConfigsRequest.DescribeConfigsResource
    return DescribeConfigsRequest(
        resources=[
            resource_type(
                resource_type=_KINDS[r.kind],
                resource_name=r.name,
                configuration_keys=None if keys is None else list(keys),
            )
            for r in resources
        ],
        include_synonyms=False,
        include_documentation=False,
    )


_MISSING: Final = 3
UNTOLD: Final = "UNKNOWN_SERVER_ERROR"
"""A broker's own failure, of which it says nothing."""


def _take(response: Any, entries: Entries, failures: dict[ConfigResource, BallastError]) -> None:
    for result in response.results:
        resource = ConfigResource(_NAMES[result.resource_type], result.resource_name)
        if result.error_code == _MISSING:
            continue
        try:
            raise_for(result.error_code, configs_of(resource), result.error_message)
        except BallastError as failure:
            failures[resource] = failure
        else:
            entries[resource] = read_config_entries(result.configs)


def alter(wire: Wire, changes: Collection[ConfigChange]) -> dict[ConfigResource, Outcome]:
    """Apply changes: topics together in one request, the cluster-wide default in another, each broker in one of its own.

    Brokers are told side by side, so that a hundred take no longer than one, and a frozen one holds none of them up.
    """
    by_resource: dict[ConfigResource, list[ConfigChange]] = {}
    for change in changes:
        by_resource.setdefault(change.resource, []).append(change)
    brokers = {int(r.name): r for r in by_resource if r.kind == "broker" and r.name}
    anywhere = [r for r in by_resource if r not in brokers.values()]
    topics = [r for r in anywhere if r.kind == "topic"]
    chunks = [topics[at : at + RESOURCES_PER_REQUEST] for at in range(0, len(topics), RESOURCES_PER_REQUEST)]
    outcomes: dict[ConfigResource, Outcome] = {}
    for chunk in (*chunks, *([r] for r in anywhere if r.kind == "broker")):
        outcomes |= _alter_anywhere(wire, {r: by_resource[r] for r in chunk})
    answers = wire.ask_each(
        "a config change",
        list(brokers),
        lambda b: _alter_request({brokers[b]: by_resource[brokers[b]]}),
        retry=WRITE_ONCE,
    )
    for broker, answer in answers.items():
        outcomes |= {brokers[broker]: _no_answer(answer)} if isinstance(answer, BallastError) else _outcomes(answer)
    return outcomes


def _alter_anywhere(
    wire: Wire, changes: Mapping[ConfigResource, Sequence[ConfigChange]]
) -> dict[ConfigResource, Outcome]:
    def send(asked: Mapping[ConfigResource, Sequence[ConfigChange]]) -> dict[ConfigResource, Outcome]:
        return _outcomes(wire.ask("a config change", lambda: _alter_request(asked), retry=WRITE_ONCE))

    try:
        outcomes = send(changes)
        again = _set_missing_lists(wire, {r: changes[r] for r, o in outcomes.items() if o.code == UNTOLD})
        return outcomes | (send(again) if again else {})
    except BallastError as failure:
        if failure.retryable:
            return dict.fromkeys(changes, _no_answer(failure))
        raise


def _set_missing_lists(
    wire: Wire, failed: Mapping[ConfigResource, Sequence[ConfigChange]]
) -> dict[ConfigResource, list[ConfigChange]]:
    """The same changes with a list set that is not there yet: brokers before 2.4 fail over an append to it.

    What another client sets in this very moment is lost on those brokers; a list that stands is still appended to.
    """
    appending = {r: changes for r, changes in failed.items() if any(c.operation == "append" for c in changes)}
    entries, _ = describe(wire, list(appending)) if appending else ({}, {})

    def set_where_missing(change: ConfigChange) -> ConfigChange:
        entry = entries[change.resource].get(change.key)
        unset = entry is None or entry.source != "DYNAMIC_TOPIC_CONFIG"
        return replace(change, operation="set") if change.operation == "append" and unset else change

    again = {r: [set_where_missing(c) for c in changes] for r, changes in appending.items() if r in entries}
    return {r: changes for r, changes in again.items() if changes != list(appending[r])}


def _outcomes(response: Any) -> dict[ConfigResource, Outcome]:
    out = {}
    for r in response.responses:
        resource = ConfigResource(_NAMES[r.resource_type], r.resource_name)
        out[resource] = OK if r.error_code == 0 else _refuse(code_name(r.error_code), r.error_message, resource)
    return out


def _refuse(code: str, message: str | None, resource: ConfigResource) -> Outcome:
    return Outcome(ok=False, code=code, message=explain(code, message, config_change_of(resource)))


def _no_answer(failure: BallastError) -> Outcome:
    return Outcome(ok=False, code="NO_ANSWER", message=failure.message)


def _alter_request(changes: Mapping[ConfigResource, Sequence[ConfigChange]]) -> Any:
    resource_type = IncrementalAlterConfigsRequest.AlterConfigsResource
    return IncrementalAlterConfigsRequest(
        resources=[
            resource_type(
                resource_type=_KINDS[resource.kind],
                resource_name=resource.name,
                configs=[
                    resource_type.AlterableConfig(name=c.key, config_operation=_OPERATIONS[c.operation], value=c.value)
                    for c in entries
                ],
            )
            for resource, entries in changes.items()
        ],
        validate_only=False,
    )
