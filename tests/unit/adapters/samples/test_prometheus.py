"""Asking Prometheus: which broker a series is of, and what every kind of trouble costs and says."""

from __future__ import annotations

import base64
import http.server
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest

from ballast.adapters.samples.prometheus import BrokerNames, PrometheusLoad, Series
from ballast.adapters.samples.prometheus_queries import FAMILIES, NONE, PrometheusPolicy, Queries
from ballast.core.cluster import Broker, ClusterState, PartitionRow, Topic, build
from ballast.errors import AuthenticationFailed, Unavailable, UsageError
from ballast.settings.load import validate

HOSTS = {1: "kafka-a.example.org", 2: "kafka-b.example.org", 7: "10.0.0.7"}
ONE_QUERY = Queries(broker_bytes_in=NONE, broker_bytes_out=NONE, broker_requests=NONE, broker_cpu=NONE)


def cluster(hosts: dict[int, str] = HOSTS) -> ClusterState:
    """Brokers at some hosts, and a topic."""
    brokers = tuple(Broker(i, host=host, port=9092) for i, host in hosts.items())
    first = min(hosts)
    return build(
        "c", brokers, (Topic("orders"),), [PartitionRow("orders", 0, first, (first,), (first,))], taken_at_ms=1
    )


Answer = Callable[[http.server.BaseHTTPRequestHandler, str], None]


@contextmanager
def serving(answer: Answer) -> Iterator[str]:
    """A server on the loopback that answers every query with ``answer(handler, expression)``."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            answer(self, parse_qs(body)["query"][0])

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 — the base class named it
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def send(handler: http.server.BaseHTTPRequestHandler, code: int, body: Any, **headers: str) -> None:
    """One whole answer."""
    data = json.dumps(body).encode()
    handler.send_response(code)
    for name, value in {"Content-Length": str(len(data)), **headers}.items():
        handler.send_header(name, value)
    handler.end_headers()
    handler.wfile.write(data)


def vector(*series: tuple[dict[str, str], str]) -> dict[str, Any]:
    """What Prometheus answers."""
    result = [{"metric": labels, "value": [1.0, value]} for labels, value in series]
    return {"status": "success", "data": {"resultType": "vector", "result": result}}


@pytest.mark.parametrize(
    ("labels", "broker"),
    [
        ({"broker_id": "2", "instance": "kafka-a.example.org:7071"}, 2),
        ({"broker_id": "3"}, None),
        ({"instance": "kafka-a.example.org:7071"}, 1),
        ({"instance": "kafka-b:7071"}, 2),
        ({"instance": "10.0.0.7:7071"}, 7),
        ({"instance": "10.0.0.8:7071"}, None),
        ({"instance": "node-1:7071"}, None),
        ({"pod": "prod-broker-7"}, 7),
        ({"kubernetes_pod_name": "prod-broker-2", "instance": "10.1.1.1:9404"}, 2),
        ({"pod": "prod-broker-9"}, None),
        ({"pod": "kafka-a"}, 1),
        ({"instance": "elsewhere:1"}, 1),
        ({}, None),
    ],
)
def test_a_series_is_of_the_broker_that_its_surest_label_names(labels: dict[str, str], broker: int | None) -> None:
    """An id, a host, the first part of a host, a pod's number, or what the settings say; never a guess from a machine's name."""
    names = BrokerNames(cluster(), PrometheusPolicy(brokers={"elsewhere:1": 1}))
    assert names.broker(labels) == broker


def test_a_host_that_several_brokers_share_names_none() -> None:
    """Brokers on one machine are told apart by what the settings say of their ports."""
    policy = PrometheusPolicy(brokers={"127.0.0.1:7072": 2})
    names = BrokerNames(cluster({1: "127.0.0.1", 2: "127.0.0.1"}), policy)
    assert names.broker({"instance": "127.0.0.1:7071"}) is None
    assert names.broker({"instance": "127.0.0.1:7072"}) == 2


def test_two_series_of_one_broker_are_not_added() -> None:
    """Two Prometheus that scrape the same broker saw the same bytes."""
    twice = [Series({"broker_id": "1", "replica": r}, v) for r, v in (("a", 5.0), ("b", 6.0))]
    assert BrokerNames(cluster(), PrometheusPolicy()).lay(twice, by_topic=False) == {1: 6.0}


def test_answers_become_figures_and_what_is_missing_is_said() -> None:
    """Not-a-number is no figure; a refused expression and an empty answer cost that figure alone."""

    def answer(handler: http.server.BaseHTTPRequestHandler, expression: str) -> None:
        if "topic)" in expression:
            one = {"instance": "kafka-a:1", "topic": "orders"}
            send(handler, 200, vector((one, "12.5"), ({**one, "topic": "idle"}, "NaN")))
        elif "bytesin" in expression:
            send(handler, 200, vector(({"instance": "kafka-a:1"}, "3"), ({"instance": "node-exporter:1"}, "9")))
        elif "requests" in expression:
            send(handler, 400, {"status": "error", "error": "parse error: unexpected\n<aggr:sum>"})
        else:
            send(handler, 200, vector())

    with serving(answer) as url:
        load = PrometheusLoad(PrometheusPolicy(url=url))(cluster())
    assert load.topic_bytes_out == {(1, "orders"): 12.5}
    assert {i: (b.bytes_in, b.bytes_out, b.requests, b.cpu) for i, b in load.brokers.items()} == {
        1: (3.0, None, None, None)
    }
    assert [m.split(":")[0] for m in load.missing] == ["broker_bytes_out", "broker_requests", "broker_cpu"]
    assert "parse error: unexpected <aggr:sum>" in load.missing[1]


def test_series_that_match_no_broker_are_a_sentence() -> None:
    """A join that finds nothing must not look like a cluster that no consumer reads."""
    with serving(lambda h, _: send(h, 200, vector(({"instance": "10.9.9.9:7071", "topic": "orders"}, "1")))) as url:
        load = PrometheusLoad(PrometheusPolicy(url=url))(cluster())
    assert load.topic_bytes_out == {}
    assert load.missing == (
        "No series matches a broker (found: 10.9.9.9:7071): see broker_labels and brokers of load.prometheus.",
    )


def test_an_address_that_does_not_answer_is_a_sentence() -> None:
    """The port is closed."""
    with serving(lambda *_: None) as url:
        pass
    with pytest.raises(Unavailable, match="did not answer") as caught:
        PrometheusLoad(PrometheusPolicy(url=url))(cluster())
    assert "load.prometheus.url" in str(caught.value)


@pytest.mark.parametrize("dripping", [False, True])
def test_a_prometheus_that_hangs_costs_its_time_and_no_more(*, dripping: bool) -> None:
    """Frozen from the start, or an answer that comes a byte at a time: all queries together end with the limit."""
    over = threading.Event()

    def answer(handler: http.server.BaseHTTPRequestHandler, _: str) -> None:
        if dripping:
            handler.send_response(200)
            handler.end_headers()
        while not over.wait(0.05):
            if dripping:
                try:
                    handler.wfile.write(b" ")
                except OSError:
                    return

    with serving(answer) as url:
        begun = time.monotonic()
        with pytest.raises(Unavailable, match=r"did not answer|took longer"):
            PrometheusLoad(PrometheusPolicy(url=url, timeout_s=0.6))(cluster())
        took = time.monotonic() - begun
        over.set()
    assert 0.5 < took < 10, "five queries, one limit"


def test_a_refused_token_says_which_setting(tmp_path: Path) -> None:
    """And the token itself is nowhere in the sentence."""
    (tmp_path / "token").write_text("s3cr3t-token\n")
    heard: list[str] = []

    def answer(handler: http.server.BaseHTTPRequestHandler, _: str) -> None:
        heard.append(handler.headers["Authorization"])
        send(handler, 401, {})

    with serving(answer) as url, pytest.raises(AuthenticationFailed, match="HTTP 401") as caught:
        PrometheusLoad(PrometheusPolicy(url=url, bearer_token_file=tmp_path / "token"))(cluster())
    assert heard == ["Bearer s3cr3t-token"]
    assert "s3cr3t" not in str(caught.value)
    with pytest.raises(AuthenticationFailed, match=r"bearer_token_file .*gone cannot be used"):
        PrometheusLoad(PrometheusPolicy(url=url, bearer_token_file=tmp_path / "gone"))(cluster())


def test_a_password_is_read_from_its_file_and_goes_to_no_other_host(tmp_path: Path) -> None:
    """Basic authentication; a redirect is not followed, since its target was never given."""
    (tmp_path / "password").write_text("pa:ss\n")
    reached: list[str] = []

    def elsewhere(handler: http.server.BaseHTTPRequestHandler, _: str) -> None:
        reached.append("elsewhere")
        send(handler, 200, vector())

    with serving(elsewhere) as other:

        def answer(handler: http.server.BaseHTTPRequestHandler, _: str) -> None:
            reached.append(base64.b64decode(handler.headers["Authorization"].removeprefix("Basic ")).decode())
            send(handler, 307, {}, Location=other + "/api/v1/query")

        with serving(answer) as url, pytest.raises(Unavailable, match="HTTP 307"):
            PrometheusLoad(PrometheusPolicy(url=url, username="ann", password_file=tmp_path / "password"))(cluster())
    assert reached == ["ann:pa:ss"]


@pytest.mark.parametrize("body", ["<html>", [], {"status": "success", "data": {"resultType": "vector"}}])
def test_something_else_at_the_address_is_a_sentence(body: Any) -> None:
    """A login page, another API."""
    with serving(lambda h, _: send(h, 200, body)) as url, pytest.raises(Unavailable, match="is not a Prometheus"):
        PrometheusLoad(PrometheusPolicy(url=url, queries=ONE_QUERY))(cluster())


def test_the_selector_and_the_window_reach_every_expression() -> None:
    """Both families, each figure; the braces stay balanced with and without a selector."""
    for names in FAMILIES:
        for selector in ("", 'strimzi_io_cluster="x"'):
            policy = PrometheusPolicy(names=names, selector=selector, window_s=90, broker_labels=("pod",))
            for figure in ("topic_bytes_out", "broker_bytes_in", "broker_bytes_out", "broker_requests", "broker_cpu"):
                expression = policy.expression(figure) or ""
                assert "[90s]" in expression
                assert "by (pod" in expression
                assert selector in expression
                assert "$" not in expression


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"url": "prometheus:9090"}, "url is not an address"),
        ({"url": "http://ann:secret@prometheus:9090"}, "url carries a user"),
        ({"username": "ann"}, "username and password_file belong together"),
        ({"username": "a", "password_file": "p", "bearer_token_file": "t"}, "keep one"),
        ({"queries": {"broker_cpu": "rate(x[$windo])"}}, r"queries\.broker_cpu has a \$"),
        ({"broker_labels": []}, "broker_labels needs"),
        ({"window_s": 0}, "greater than or equal to 1"),
    ],
)
def test_settings_that_could_only_fail_later_are_refused(given: dict[str, Any], sentence: str) -> None:
    """Each mistake names its place, and a password in an address is not repeated."""
    with pytest.raises(UsageError, match=sentence) as caught:
        validate({"load": {"prometheus": given}})
    assert "load.prometheus" in str(caught.value)
    assert "secret" not in str(caught.value)
