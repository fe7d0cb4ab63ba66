"""Where the brokers' own metrics are and by which expressions they are asked for.

Two families of names cover most clusters.  ``jmx`` is what the JMX exporter makes with the rules that its Kafka example and
Strimzi's share (``…_bytesout_total``); ``strimzi-reporter`` is Strimzi's Metrics Reporter (``…_bytesoutpersec_total``).  Any
query can be replaced by a custom one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from string import Template
from typing import Annotated, Final, Literal
from urllib.parse import urlsplit

from annotated_types import Ge, Gt

Names = Literal["jmx", "strimzi-reporter"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Queries:
    """Custom PromQL queries; an empty one keeps that of `names`, and `none` queries nothing.

    `$selector` stands for `selector`, `$window` for `window_s`, `$brokers` for `broker_labels`.
    """

    topic_bytes_out: str = ""
    """PromQL query for bytes/s that consumers read, by broker and `topic`. Only with it do plans balance what leaders send to consumers.
    Empty: the query of `load.prometheus.names`; `none`: not queried."""
    broker_bytes_in: str = ""
    """PromQL query for bytes/s that producers write, by broker. Empty: the query of `load.prometheus.names`; `none`: not queried."""
    broker_bytes_out: str = ""
    """PromQL query for bytes/s that consumers read, by broker. Empty: the query of `load.prometheus.names`; `none`: not queried."""
    broker_requests: str = ""
    """PromQL query for requests/s, by broker. Empty: the query of `load.prometheus.names`; `none`: not queried."""
    broker_cpu: str = ""
    """PromQL query for CPU seconds per second of the broker's process, by broker. Empty: the query of `load.prometheus.names`; `none`: not
    queried."""


NONE: Final = "none"
"""Written in place of a query: do not query this figure."""


def _family(*, bytes_in: str, bytes_out: str, requests: str) -> Queries:
    return Queries(
        topic_bytes_out=f'max by ($brokers, topic) (rate({bytes_out}{{topic!="",$selector}}[$window]))',
        broker_bytes_in=f'max by ($brokers) (rate({bytes_in}{{topic="",$selector}}[$window]))',
        broker_bytes_out=f'max by ($brokers) (rate({bytes_out}{{topic="",$selector}}[$window]))',
        broker_requests=f"sum by ($brokers) (rate({requests}{{$selector}}[$window]))",
        # A machine's other exporters have this series as well; only a process that has leaders is a broker.
        broker_cpu=(
            "max by ($brokers) (rate(process_cpu_seconds_total{$selector}[$window])"
            " and on (instance) kafka_server_replicamanager_leadercount{$selector})"
        ),
    )


FAMILIES: Final[Mapping[Names, Queries]] = {
    "jmx": _family(
        bytes_in="kafka_server_brokertopicmetrics_bytesin_total",
        bytes_out="kafka_server_brokertopicmetrics_bytesout_total",
        requests="kafka_network_requestmetrics_requests_total",
    ),
    "strimzi-reporter": _family(
        bytes_in="kafka_server_brokertopicmetrics_bytesinpersec_total",
        bytes_out="kafka_server_brokertopicmetrics_bytesoutpersec_total",
        requests="kafka_network_requestmetrics_requestspersec_total",
    ),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class PrometheusPolicy:
    """A Prometheus that scrapes the brokers' metrics; what it knows joins each sample. Changes need a restart."""

    url: str | None = None
    """Address of the Prometheus server, `http(s)://host:port[/prefix]`. Empty: none is queried, and what consumers read is not known."""
    names: Names = "jmx"
    """Names of the brokers' metrics: `jmx` for the JMX exporter with the rules of its Kafka example or of Strimzi; `strimzi-reporter` for
    Strimzi's Metrics Reporter."""
    selector: str = ""
    """Label matchers that select this cluster's brokers where a Prometheus has several clusters, such as `strimzi_io_cluster="orders",
    namespace="kafka"`."""
    window_s: Annotated[int, Ge(1)] = 180
    """Time over which rates are calculated, in seconds; it must contain at least two scrapes."""
    timeout_s: Annotated[float, Gt(0)] = 5.0
    """Maximum wait for all answers together, in seconds. Answers that arrive later are missing in that minute's sample."""
    broker_labels: tuple[str, ...] = ("broker_id", "kubernetes_pod_name", "pod", "instance")
    """Labels that may name a broker, the most reliable first. Their values are matched as a broker's id, its host, the first part of its
    host, or for the pod labels the number at the end."""
    brokers: Mapping[str, int] = field(default_factory=dict)
    """Broker ids of label values that match nothing by themselves: `"10.1.2.3:7071": 4`."""
    bearer_token_file: Path | None = None
    """A file with a bearer token for the Prometheus server; it is read again for each sample."""
    username: str | None = None
    """The user name for basic authentication at the Prometheus server."""
    password_file: Path | None = None
    """A file with the password of `load.prometheus.username`."""
    ca_file: Path | None = None
    """A file with the CA certificates (PEM) to trust instead of the system's."""
    queries: Queries = field(default_factory=Queries)
    """Custom PromQL queries. `$selector` stands for `load.prometheus.selector`, `$window` for `load.prometheus.window_s`, `$brokers` for
    `load.prometheus.broker_labels`."""

    def __post_init__(self) -> None:
        """Refuse what could only fail later, each minute anew."""
        _check_address(self.url)
        if self.bearer_token_file is not None and self.username is not None:
            raise ValueError("a token file and a username are two ways to sign in: keep one")
        if (self.username is None) != (self.password_file is None):
            raise ValueError("username and password_file belong together")
        if not self.broker_labels or not all(label.isidentifier() for label in self.broker_labels):
            raise ValueError("broker_labels needs at least one name of a label")
        for name in asdict(self.queries):
            self.expression(name)

    def expression(self, name: str) -> str | None:
        """What is asked for a figure of ``Queries``; None when it is not asked for."""
        template = getattr(self.queries, name) or getattr(FAMILIES[self.names], name)
        if template == NONE:
            return None
        try:
            return Template(template).substitute(
                selector=self.selector, window=f"{self.window_s}s", brokers=", ".join(self.broker_labels)
            )
        except (KeyError, ValueError):
            raise ValueError(
                f"queries.{name} has a $ that is none of $selector, $window and $brokers (write $$ for a plain $)"
            ) from None


def _check_address(url: str | None) -> None:
    if url is None:
        return
    try:
        parts = urlsplit(url)
        wrong = parts.scheme not in {"http", "https"} or not parts.hostname or (parts.port or 1) < 1
    except ValueError:
        wrong = True
    if wrong:
        raise ValueError("url is not an address such as http://prometheus:9090")
    if parts.username is not None or parts.query or parts.fragment:
        raise ValueError(
            "url carries a user or a query: give the address alone, and username and password_file beside it"
        )
