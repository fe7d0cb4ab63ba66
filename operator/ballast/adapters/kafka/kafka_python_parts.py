"""What Ballast uses of kafka-python, imported without the clients that it does not use.

``kafka/__init__.py`` imports kafka-python's consumer, producer and admin client: half of what importing it costs, and a sixth of a
whole ``ballast status``.  Ballast sends requests over its connections and uses none of them.  So the package is put into
``sys.modules`` as Python itself would do it, and its ``__init__`` runs when a name of it is first asked for: code that says
``from kafka import KafkaConsumer`` in the same process, before or after, gets what kafka-python gives.

The other modules of this package import kafka-python from here, so that none of them is the first to import the package.
"""

from __future__ import annotations

import importlib.util
import sys
import threading


def defer_init(name: str) -> None:
    """Make a package's modules importable, and run its ``__init__`` when a name of it is first asked for (PEP 562).

    A package that is imported already stays as it is; one that is not installed is left to the import statement to tell.
    """
    spec = None if name in sys.modules else importlib.util.find_spec(name)
    if spec is None or spec.loader is None:
        return
    loader, package = spec.loader, importlib.util.module_from_spec(spec)
    lock, begun = threading.RLock(), threading.Event()

    def find(attribute: str) -> object:
        # The lock lets other threads wait for the whole; the thread that runs it goes on, and asks for names of it in between.
        with lock:
            if not begun.is_set():
                begun.set()
                try:
                    loader.exec_module(package)
                except BaseException:
                    begun.clear()
                    raise
        if attribute not in vars(package):
            raise AttributeError(f"module {name!r} has no attribute {attribute!r}")
        found: object = vars(package)[attribute]
        return found

    package.__getattr__ = find  # type: ignore[method-assign]
    sys.modules[name] = package


defer_init("kafka")

import kafka.errors as kafka_errors  # noqa: E402 — after what makes it cheap
from kafka.net.manager import KafkaConnectionManager  # noqa: E402
from kafka.net.sasl.oauth import AbstractTokenProvider  # noqa: E402
from kafka.net.selector import NetworkSelector  # noqa: E402
from kafka.protocol.admin import (  # noqa: E402
    AlterPartitionReassignmentsRequest,
    AlterReplicaLogDirsRequest,
    DescribeClusterRequest,
    DescribeConfigsRequest,
    DescribeLogDirsRequest,
    DescribeQuorumRequest,
    IncrementalAlterConfigsRequest,
    ListPartitionReassignmentsRequest,
)
from kafka.protocol.consumer import ListOffsetsRequest  # noqa: E402
from kafka.protocol.metadata import MetadataRequest  # noqa: E402

__all__ = [
    "AbstractTokenProvider",
    "AlterPartitionReassignmentsRequest",
    "AlterReplicaLogDirsRequest",
    "DescribeClusterRequest",
    "DescribeConfigsRequest",
    "DescribeLogDirsRequest",
    "DescribeQuorumRequest",
    "IncrementalAlterConfigsRequest",
    "KafkaConnectionManager",
    "ListOffsetsRequest",
    "ListPartitionReassignmentsRequest",
    "MetadataRequest",
    "NetworkSelector",
    "kafka_errors",
]
