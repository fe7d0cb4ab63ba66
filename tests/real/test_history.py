"""``ballast sample`` and ``ballast fleet collect`` on real brokers; what is away is named, and the rest is recorded."""

from __future__ import annotations

import json
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from deltalake import DeltaTable
from tests.ports import free_ports

from ballast.adapters.samples.store import table_url
from ballast.pipeline.fleet_rows import from_row
from ballast.pipeline.schemas import FLEET_SNAPSHOT
from ballast.sandbox import Sandbox

pytestmark = pytest.mark.kafka


def ballast(*words: str) -> tuple[int, str, str]:
    """Run a command as a person would."""
    done = subprocess.run(
        [sys.executable, "-m", "ballast", *words], capture_output=True, text=True, timeout=180, check=False
    )
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def topic(kraft: Sandbox) -> str:
    """A topic of the test's own on the shared cluster."""
    name = f"history-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": kraft.bootstrap_server})
    admin.create_topics([NewTopic(name, 3, 2)])[name].result(60)
    return name


def test_a_fleet_is_collected_from_real_brokers_and_one_that_is_away_is_named(
    kraft: Sandbox, topic: str, tmp_path: Path
) -> None:
    """Exit code 7 and the name of the one; the other's whole picture is in the table."""
    fleet, store = tmp_path / "fleet.yaml", str(tmp_path / "store")
    fleet.write_text(
        "clusters:\n"
        f"  - {{name: here, bootstrap_server: '{kraft.bootstrap_server}'}}\n"
        f"  - {{name: away, bootstrap_server: '127.0.0.1:{free_ports(1)[0]}'}}\n"
    )
    code, out, err = ballast("fleet", "collect", str(fleet), "--store", store, "--timeout", "20")
    assert (code, out) == (7, "1 cluster collected.\n"), err
    assert "1 cluster did not answer: away." in err
    rows = DeltaTable(table_url(store, FLEET_SNAPSHOT.name)).to_pyarrow_table()
    (batch,) = rows.combine_chunks().to_batches()
    member = from_row(batch, 0)
    assert member.name == "here"
    assert sorted(b.id for b in member.state.brokers) == [1, 2, 3]
    assert [p for t, p in member.state.index if t == topic] == [0, 1, 2]


def test_a_sample_says_that_its_prometheus_is_away_and_is_taken(kraft: Sandbox, topic: str, tmp_path: Path) -> None:
    """The settings name a Prometheus that does not run: the minute is recorded, the gap is said."""
    settings = tmp_path / "ballast.yaml"
    settings.write_text(
        f"cluster: {{bootstrap_server: '{kraft.bootstrap_server}'}}\n"
        f"samples: {{store: {tmp_path / 'store'}}}\n"
        f"load: {{prometheus: {{url: 'http://127.0.0.1:{free_ports(1)[0]}'}}}}\n"
    )
    code, out, err = ballast("sample", "--config", str(settings), "--output", "json")
    assert code == 0, err
    assert "not known: Prometheus at http://127.0.0.1:" in err
    figures = json.loads(out)
    assert figures["recorded"]
    assert figures["gaps"] >= 1
    rows = DeltaTable(table_url(str(tmp_path / "store"), "samples")).to_pyarrow_table().to_pylist()
    assert {row["partition"] for row in rows if row["topic"] == topic} == {0, 1, 2}
