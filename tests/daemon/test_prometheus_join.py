"""What consumers read, from a real Prometheus that scrapes brokers' pages to the figures that a plan goes by."""

from __future__ import annotations

import http.server
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pyarrow as pa
import pytest
import yaml
from bootstrap.programs import path_of
from deltalake import DeltaTable, write_deltalake
from tests.daemon.test_prometheus import ask
from tests.leash import leashed
from tests.ports import free_ports
from tests.spark.series import RECORD_BYTES, START_MS, Log, World
from tests.waiting import until

from ballast.adapters.samples.arrow_schema import arrow_schema
from ballast.adapters.samples.prometheus import PrometheusLoad
from ballast.adapters.samples.prometheus_queries import PrometheusPolicy
from ballast.adapters.samples.sampler import SampleReport, take
from ballast.adapters.samples.store import SampleStore, describe, table_url
from ballast.core.cluster import ClusterState
from ballast.core.cluster.external_load import ExternalLoad
from ballast.pipeline.schemas import LOAD_MODEL
from ballast.ports.cluster import Offsets
from ballast.wiring.loads import HistoryPolicy, loads_from_history

pytestmark = pytest.mark.prometheus

READ_PER_S = {1: 90_000.0, 2: 30_000.0, 3: 6_000.0}
"""Broker to what consumers read of `clicks` from it."""
REQUESTS_PER_S, CPU = 40.0, 0.5
PRODUCED_PER_S = 2_000.0
WINDOW_S = 8
NEAR = 0.15
"""``rate`` extrapolates to the window's edges, and a scrape comes when it comes."""

JMX = """\
kafka_server_brokertopicmetrics_bytesin_total {produced}
kafka_server_brokertopicmetrics_bytesin_total{{topic="clicks"}} {produced}
kafka_server_brokertopicmetrics_bytesout_total {read}
kafka_server_brokertopicmetrics_bytesout_total{{topic="clicks"}} {read}
kafka_network_requestmetrics_requests_total{{request="Produce",version="12"}} {half}
kafka_network_requestmetrics_requests_total{{request="Fetch",version="17"}} {half}
"""
REPORTER = """\
kafka_server_brokertopicmetrics_bytesinpersec_total {produced}
kafka_server_brokertopicmetrics_bytesinpersec_total{{topic="clicks"}} {produced}
kafka_server_brokertopicmetrics_bytesoutpersec_total {read}
kafka_server_brokertopicmetrics_bytesoutpersec_total{{topic="clicks"}} {read}
kafka_network_requestmetrics_requestspersec_total{{request="Produce",version="12"}} {half}
kafka_network_requestmetrics_requestspersec_total{{request="Fetch",version="17"}} {half}
"""
SHARED = """\
kafka_server_replicamanager_leadercount 1
process_cpu_seconds_total {cpu}
"""


@contextmanager
def broker_page(broker: int, text: str) -> Iterator[int]:
    """One broker's metrics, counters that grow with time; yields the port."""
    begun = time.monotonic()

    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            # An old counter: near its zero, `rate` would not extrapolate to the window's edge.
            age = 10_000 + time.monotonic() - begun
            body = text.format(
                produced=PRODUCED_PER_S * age,
                read=READ_PER_S[broker] * age,
                half=REQUESTS_PER_S / 2 * age,
                cpu=CPU * age,
            ).encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 — the base class named it
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


@dataclass
class Scraping:
    """A Prometheus in front of both kinds of brokers."""

    url: str
    process: subprocess.Popen[bytes]
    jmx_ports: dict[int, int]

    def sees(self, selector: str) -> bool:
        """Has it scraped every broker for longer than a window?  A rate over a younger series is too low."""
        query = f"count(count_over_time(process_cpu_seconds_total{{{selector}}}[1h]) >= {WINDOW_S + 2})"
        found = ask(f"{self.url}/api/v1/query?" + urlencode({"query": query}))
        counts = [entry["value"][1] for entry in found["data"]["result"]] if found else []
        return counts == [str(len(READ_PER_S))]


@pytest.fixture(scope="module")
def scraping(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scraping]:
    """Three brokers with the JMX exporter's names, three with the Metrics Reporter's, one real Prometheus."""
    folder = tmp_path_factory.mktemp("prometheus")
    program = path_of("prometheus")
    with ExitStack() as stack:
        jmx = {b: stack.enter_context(broker_page(b, JMX + SHARED)) for b in READ_PER_S}
        reporter = {b: stack.enter_context(broker_page(b, REPORTER + SHARED)) for b in READ_PER_S}
        pods = [
            {
                "targets": [f"127.0.0.1:{port}"],
                "labels": {"kubernetes_pod_name": f"orders-pool-{b}", "strimzi_io_cluster": "orders"},
            }
            for b, port in reporter.items()
        ]
        jobs = [
            {"job_name": "kafka", "static_configs": [{"targets": [f"127.0.0.1:{p}" for p in jmx.values()]}]},
            {"job_name": "strimzi", "static_configs": pods},
        ]
        config = {"global": {"scrape_interval": "1s"}, "scrape_configs": jobs}
        (folder / "prometheus.yaml").write_text(yaml.safe_dump(config))
        (port,) = free_ports(1)
        output = stack.enter_context((folder / "log").open("wb"))
        process = subprocess.Popen(
            leashed(program, f"--config.file={folder}/prometheus.yaml", f"--storage.tsdb.path={folder}/data",
                    f"--web.listen-address=127.0.0.1:{port}"),
            stdout=output, stderr=output,
        )  # fmt: skip
        stack.callback(process.wait, 90)
        stack.callback(process.terminate)
        yield Scraping(f"http://127.0.0.1:{port}", process, jmx)


class Clock:
    """Stands at a minute; what is waited for elsewhere is real."""

    def __init__(self, minute: int) -> None:
        self.minute = minute

    def now_ms(self) -> int:
        """The wall."""
        return START_MS + self.minute * 60_000 + 700

    def monotonic_s(self) -> float:
        """The same, without steps."""
        return self.minute * 60.0

    def sleep(self, seconds: float) -> None:
        """Return at once."""


def world() -> World:
    """Two partitions of one topic at each of two brokers, one at the third; the first is three times as large."""
    logs = {("clicks", n): Log(replicas=r) for n, r in enumerate([(1, 2, 3), (1, 3, 2), (2, 3, 1), (3, 1, 2)])}
    logs["clicks", 0].start_bytes = 3_000_000
    return World(logs)


def record(world_: World, store: str, minute: int, external: Any) -> SampleReport:
    """A minute as the daemon takes it."""
    clock = Clock(minute)
    state = world_.state(clock.now_ms())

    class Reader:
        def offsets(self, names: Any) -> dict[Any, Offsets]:
            return {n: Offsets(world_.logs[n].earliest, world_.logs[n].high) for n in names}

        def log_ends(self, replicas: Any) -> dict[int, Any]:
            return {}

    return take(Reader(), state, SampleStore(store), clock, writer="w", external=external)  # type: ignore[arg-type]


def policy_of(family: str, scraping: Scraping) -> PrometheusPolicy:
    """How a user would write it down for each family."""
    if family == "jmx":
        by_port = {f"127.0.0.1:{port}": broker for broker, port in scraping.jmx_ports.items()}
        return PrometheusPolicy(url=scraping.url, selector='job="kafka"', brokers=by_port, window_s=WINDOW_S)
    selector = 'strimzi_io_cluster="orders"'
    return PrometheusPolicy(url=scraping.url, names="strimzi-reporter", selector=selector, window_s=WINDOW_S)


def is_near(load: ExternalLoad) -> bool:
    """Whether every figure of every broker is what the brokers' pages say."""
    wanted = {b: (read, PRODUCED_PER_S, REQUESTS_PER_S, CPU) for b, read in READ_PER_S.items()}
    found = {b: (f.bytes_out, f.bytes_in, f.requests, f.cpu) for b, f in load.brokers.items()}
    topics = {(b, "clicks"): read for b, read in READ_PER_S.items()}
    return (
        found.keys() == wanted.keys()
        and all(found[b] == pytest.approx(wanted[b], rel=NEAR) for b in wanted)
        and load.topic_bytes_out == pytest.approx(topics, rel=NEAR)
    )


@pytest.mark.parametrize("family", ["jmx", "strimzi-reporter"])
def test_what_consumers_read_reaches_the_plan(family: str, scraping: Scraping, tmp_path: Path) -> None:
    """Both families of names: broker figures and each partition's share, through the tables to the planner's loads."""
    policy = policy_of(family, scraping)
    until(lambda: scraping.sees(policy.selector), "a rate of every broker")
    seen: list[ExternalLoad] = []

    def external(state: ClusterState) -> ExternalLoad:
        # A scrape that comes late on a busy machine bends a rate, for as long as it is in the window.
        load = PrometheusLoad(policy)
        until(lambda: seen.append(load(state)) or is_near(seen[-1]), "rates as they are", story=lambda: str(seen[-1]))  # type: ignore[func-returns-value]
        return seen[-1]

    world_, store = world(), str(tmp_path)
    for minute in range(3):
        for log in world_.logs.values():
            log.append(120)
        assert record(world_, store, minute, external).missing == ()
    rows = DeltaTable(table_url(store, "samples")).to_pyarrow_table().to_pylist()
    consumed = {n: rows_mean(rows, n) for n in range(4)}
    assert consumed[0] + consumed[1] == pytest.approx(READ_PER_S[1], rel=NEAR)
    assert consumed[0] / consumed[1] == pytest.approx(3, rel=NEAR)
    assert [consumed[2], consumed[3]] == pytest.approx([READ_PER_S[2], READ_PER_S[3]], rel=NEAR)

    appended = 120 * RECORD_BYTES / 60
    hour = datetime.fromtimestamp(START_MS / 1000, UTC)
    model = [
        {
            **{name: rows[0][name] for name in ("cluster", "topic", "topic_id")},
            "partition": number,
            **dict.fromkeys(("as_of", "since"), hour),
            "coverage": 1.0,
            "bytes_in_mean": appended,
            "bytes_out_mean": rate,
        }
        for number, rate in consumed.items()
    ]
    url, schema = table_url(store, "load_model"), arrow_schema(LOAD_MODEL.columns)
    write_deltalake(
        url,
        pa.Table.from_pylist(model, schema=schema),
        partition_by=["cluster"],
        description=describe("load_model", 1),
    )
    history = HistoryPolicy(store=store, measure="mean")
    loads = loads_from_history(world_.state(START_MS), history, now=hour + timedelta(minutes=30))
    assert loads.bytes_out_per_s.tolist() == pytest.approx([consumed[n] + 2 * appended for n in range(4)], abs=1)
    assert not [s for s in loads.assumptions if "consumers" in s]


def rows_mean(rows: list[dict[str, Any]], partition: int) -> float:
    """What consumers read of a partition, mean over its samples."""
    found = [r["bytes_out"] for r in rows if r["partition"] == partition]
    return float(sum(found) / len(found))


def test_a_prometheus_that_is_away_leaves_a_gap_and_costs_no_sample(tmp_path: Path) -> None:
    """The minute is there, what consumers read is unknown in it and not zero, and the report says why."""
    world_, store = world(), str(tmp_path)
    (port,) = free_ports(1)
    away = PrometheusLoad(PrometheusPolicy(url=f"http://127.0.0.1:{port}", timeout_s=2))
    report = record(world_, store, 0, away)
    assert report.recorded
    assert "did not answer" in report.missing[0]
    rows = DeltaTable(table_url(store, "samples")).to_pyarrow_table().to_pylist()
    assert [r["bytes_out"] for r in rows] == [None] * 4
    brokers = DeltaTable(table_url(store, "brokers")).to_pyarrow_table().to_pylist()
    assert {b["bytes_out"] for b in brokers} == {b["cpu"] for b in brokers} == {None}
