"""A Java virtual machine that answers what Kafka's own classes do.

The gateway is Py4J's, which PySpark carries: nothing is compiled, so a Java without compiler is enough.  It listens on
127.0.0.1 only, wants a secret that is made for it, and dies with this process.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from py4j.java_gateway import (  # type: ignore[import-untyped]
    GatewayParameters,
    JavaGateway,
    launch_gateway,
)

from ballast.core.placement import Assignment, Placeable
from ballast.sandbox.jars import ensure_jars
from ballast.sandbox.java import ensure_java

TOOL = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"


class Jvm:
    """One Java process with one set of jars, and reflection made bearable."""

    def __init__(self, lock: str) -> None:
        jars = ensure_jars(lock)
        port, token, self._process = launch_gateway(
            classpath=":".join(map(str, jars)),
            javaopts=["-Xmx256m"],
            die_on_exit=True,
            java_path=ensure_java().executable,
            enable_auth=True,
            return_proc=True,
        )
        self._gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token))
        self.package = self._gateway.jvm
        self.java = self.package.java

    def close(self) -> None:
        """End the process."""
        self._gateway.shutdown()
        self._process.stdin.close()
        self._process.wait(timeout=60)

    def type(self, name: str) -> Any:
        """The class of that name."""
        return self.java.lang.Class.forName(name)

    def array(self, kind: Any, *items: Any) -> Any:
        """A Java array."""
        out = self._gateway.new_array(kind, len(items))
        for i, item in enumerate(items):
            out[i] = item
        return out

    def method(self, owner: str, name: str, *, parameters: int | None = None, text: bool = False) -> Any:
        """The one method of that name (and that many parameters, the first of them a string), private or not."""
        (found,) = (
            m
            for m in self.type(owner).getDeclaredMethods()
            if m.getName() == name
            and (parameters is None or m.getParameterCount() == parameters)
            and (not text or m.getParameterTypes()[0].getSimpleName() == "String")
        )
        found.setAccessible(True)
        return found

    def invoke(self, method: Any, *arguments: Any) -> Any:
        """Call a static method."""
        return method.invoke(None, self.array(self._gateway.jvm.Object, *arguments))

    def constructor(self, owner: str) -> Any:
        """The one constructor with parameters, private or not."""
        (found,) = (c for c in self.type(owner).getDeclaredConstructors() if c.getParameterCount())
        found.setAccessible(True)
        return found

    def new(self, owner: str, *arguments: Any) -> Any:
        """An object made by that constructor."""
        return self.constructor(owner).newInstance(self.array(self._gateway.jvm.Object, *arguments))

    def list(self, items: Sequence[Any]) -> Any:
        """A ``java.util.ArrayList``."""
        out = self.java.util.ArrayList()
        for item in items:
            out.add(item)
        return out

    def optional(self, value: str | None) -> Any:
        """A ``java.util.Optional``."""
        return self.java.util.Optional.ofNullable(value)


class Classic:
    """``AdminUtils.assignReplicasToBrokers`` of Kafka 3.9."""

    def __init__(self, jvm: Jvm) -> None:
        self._jvm = jvm
        kafka = jvm._gateway.jvm.org.apache.kafka.admin
        self._utils, self._metadata = kafka.AdminUtils, kafka.BrokerMetadata
        field = jvm.type("org.apache.kafka.admin.AdminUtils").getDeclaredField("RAND")
        field.setAccessible(True)
        self._random = field.get(None)

    def brokers(self, brokers: Sequence[Placeable]) -> Any:
        """The brokers as Java values, to be used in many calls."""
        return self._jvm.list([self._metadata(b.id, self._jvm.optional(b.rack)) for b in brokers])

    def seed(self, seed: int) -> None:
        """Seed the generator that draws the start and the shift where none is fixed."""
        self._random.setSeed(seed)

    def assign(
        self, brokers: Any, partitions: int, factor: int, start: int = -1, first_partition: int = -1
    ) -> Assignment:
        """One call, its answer read from its text."""
        found = self._utils.assignReplicasToBrokers(brokers, partitions, factor, start, first_partition)
        rows = re.findall(r"(\d+)=\[([^\]]*)\]", found.toString())
        return {int(number): _ids(replicas) for number, replicas in rows}

    def alternated(self, racks: Mapping[int, str]) -> list[int]:
        """``AdminUtils.getRackAlternatedBrokerList``."""
        java = self._jvm.java.util.HashMap()
        for broker, rack in racks.items():
            java.put(broker, rack)
        return list(self._utils.getRackAlternatedBrokerList(java))


class Striped:
    """``StripedReplicaPlacer`` of Kafka 4.x, with a seeded generator."""

    def __init__(self, jvm: Jvm) -> None:
        self._jvm = jvm
        placement = jvm._gateway.jvm.org.apache.kafka.metadata.placement
        self._placer, self._broker = placement.StripedReplicaPlacer, placement.UsableBroker
        self._spec = placement.PlacementSpec
        self._describer = jvm.constructor(f"{TOOL}$1")

    def cluster(self, brokers: Sequence[Placeable], fenced: frozenset[int]) -> Any:
        """A describer of these brokers: the one that the stock tool uses."""
        usable = [self._broker(b.id, self._jvm.optional(b.rack), b.id in fenced) for b in brokers]
        return self._describer.newInstance(self._jvm.array(self._jvm._gateway.jvm.Object, self._jvm.list(usable)))

    def place(self, cluster: Any, partitions: int, factor: int, seed: int) -> Assignment:
        """One topic placed by a fresh placer."""
        spec = self._spec(0, partitions, factor)
        placer = self._placer(self._jvm.java.util.Random(seed))
        text = placer.place(spec, cluster).toString()
        return dict(enumerate(_ids(replicas) for replicas in re.findall(r"replicas=\[([^\]]*)\]", text)))


def _ids(text: str) -> tuple[int, ...]:
    return tuple(int(piece) for piece in text.split(",") if piece.strip())
