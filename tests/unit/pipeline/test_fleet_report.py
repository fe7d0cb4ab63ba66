"""The fleet's report tells of every cluster of the list: of one that does not answer, and of one that is listed twice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from deltalake import DeltaTable, write_deltalake
from tests.documents import validated
from tests.spark.fleets import member
from tests.unit.pipeline.test_fleet import section

from ballast.adapters.samples.arrow_schema import arrow_schema
from ballast.adapters.samples.store import ensure_table, table_url
from ballast.cli.commands.fleet.command import fleet
from ballast.cli.commands.fleet.page import page
from ballast.core.cluster import ClusterState
from ballast.core.what_if import Member
from ballast.errors import Unavailable, UsageError
from ballast.pipeline.fleet_rows import moment, plan_row, record_batch
from ballast.pipeline.fleet_store import read_report
from ballast.pipeline.schemas import FLEET_PLAN, FLEET_SNAPSHOT
from ballast.wiring.fleet import Entry, collect, read_list


class Opened:
    """An open cluster that has nothing to close."""

    def __init__(self, cluster: Any) -> None:
        self.cluster = cluster

    def __enter__(self) -> None:
        """Nothing is opened."""

    def __exit__(self, *_: object) -> None:
        """Nothing is closed."""


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> dict[str, ClusterState]:
    """What each bootstrap server answers; a server that is not in it does not."""
    found: dict[str, ClusterState] = {}

    def open_cluster(*, bootstrap_server: str, **_: Any) -> Any:
        if bootstrap_server not in found:
            raise Unavailable(f"Connection refused at {bootstrap_server}.")
        return Opened(SimpleNamespace(snapshot=lambda: found[bootstrap_server]))

    monkeypatch.setattr("ballast.wiring.fleet.open_cluster", open_cluster)
    return found


def told(store: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """The report for programs."""
    (found,) = validated(report(store, capsys, "--output", "json"))
    return found


def read(store: Path, *names: str) -> Mapping[str, object]:
    """Collect a list in which each cluster is called as its server; the failures by name."""
    return collect([Entry(n, bootstrap_server=n) for n in names], str(store), timeout_s=1, on_line=lambda _: None)[1]


def plan(store: Path, *members: Member) -> None:
    """What ``fleet plan`` writes of these, without Spark."""
    rows = [plan_row(m, "balance", "") | {"seconds": 0.1} for m in members]
    columns = {c.name: [row[c.name] for row in rows] for c in FLEET_PLAN.columns}
    batch = record_batch(FLEET_PLAN, columns)
    table = ensure_table(str(store), FLEET_PLAN)
    assert batch.schema.names == arrow_schema(FLEET_PLAN.columns).names
    write_deltalake(table, batch, mode="overwrite")


def report(store: Path, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What ``ballast fleet report`` prints."""
    fleet.main(["report", "--store", str(store), *words], standalone_mode=False)
    return capsys.readouterr().out


def test_a_cluster_that_does_not_answer_is_in_the_report(
    answers: dict[str, ClusterState], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With what it was like when it was last read, or without figures where it never was; until it answers again."""
    kept, away = member(1), member(2)
    answers.update(here=kept.state, gone=away.state)
    assert read(tmp_path, "here", "gone") == {}
    plan(tmp_path, replace(kept, name="here"), replace(away, name="gone"))
    assert read_report(str(tmp_path)).unreachable == ()

    del answers["gone"]
    assert set(read(tmp_path, "here", "gone", "it's new")) == {"gone", "it's new"}
    found = told(tmp_path, capsys)
    read_at = [(u["name"], u["lastRead"] and datetime.fromisoformat(u["lastRead"])) for u in found["unreachable"]]
    assert read_at == [("gone", moment(away.state.taken_at_ms)), ("it's new", None)]
    assert all(u["detail"] and datetime.fromisoformat(u["triedAt"]).tzinfo for u in found["unreachable"])
    lines = report(tmp_path, capsys).splitlines()
    assert [("unreachable" in line, line.split()[0]) for line in lines[1:]] == [
        (True, "gone"),
        (True, "it's"),
        (False, "here"),
    ]
    text = page(read_report(str(tmp_path)), made_at="now")
    assert [line[0] for line in section(text, "Unreachable")] == ["gone", "it&#x27;s new"]
    assert {line[0]: line[-1] == "unreachable" for line in section(text, "Clusters")} == {"here": False, "gone": True}

    answers["gone"] = away.state
    read(tmp_path, "gone")
    assert [c.name for c in read_report(str(tmp_path)).unreachable] == ["it's new"], "another list leaves it as it is"


def test_a_fleet_of_which_no_cluster_ever_answered_has_a_report(
    answers: dict[str, ClusterState], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And one that was neither collected nor planned is told to be planned."""
    assert answers == {}
    with pytest.raises(UsageError):
        report(tmp_path, capsys)
    read(tmp_path, "a", "b")
    assert [line.split()[0] for line in report(tmp_path, capsys).splitlines()[1:]] == ["a", "b"]
    assert "2 clusters (2 unreachable)" in page(read_report(str(tmp_path)), made_at="now")


def test_a_cluster_that_was_read_after_the_newest_plan_is_in_the_report(
    answers: dict[str, ClusterState], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Named as not planned yet; without any plan the report says to plan."""
    answers.update(a=member(1).state, b=member(2).state)
    read(tmp_path, "a", "b")
    with pytest.raises(UsageError):
        report(tmp_path, capsys)
    plan(tmp_path, replace(member(1), name="a"))
    assert told(tmp_path, capsys)["unplanned"] == ["b"]
    assert [line.split()[0] for line in report(tmp_path, capsys).splitlines()[1:]] == ["a", "b"]


def test_one_cluster_under_two_names_is_refused(answers: dict[str, ClusterState], tmp_path: Path) -> None:
    """By its cluster id, whatever its addresses; nothing is written, not even of the others."""
    answers.update(a=member(1).state, b=member(2).state, c=member(1).state)
    with pytest.raises(UsageError) as refused:
        read(tmp_path, "a", "b", "c")
    assert member(1).state.cluster_id in refused.value.message
    assert "a, c" in refused.value.message
    assert list(tmp_path.iterdir()) == []
    read(tmp_path, "a", "b")
    names = DeltaTable(table_url(str(tmp_path), FLEET_SNAPSHOT.name)).to_pyarrow_table(columns=["name"]).to_pylist()
    assert sorted(row["name"] for row in names) == ["a", "b"]


def test_one_name_for_two_clusters_is_refused(tmp_path: Path) -> None:
    """Before anything is read."""
    path = tmp_path / "fleet.yaml"
    path.write_text(
        "clusters:\n  - {name: a, bootstrap_server: 'x:1'}\n  - {name: a, bootstrap_server: 'y:1'}\n", encoding="utf-8"
    )
    with pytest.raises(UsageError) as refused:
        read_list(path)
    assert refused.value.hint


def test_a_cluster_that_was_renamed_is_noted(
    answers: dict[str, ClusterState], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Readings under the old name stay in the store, and are planned beside the new ones."""
    assert answers == {}
    one = member(1)
    plan(tmp_path, replace(one, name="old"), replace(one, name="new"), member(2))
    found = told(tmp_path, capsys)
    assert found["sameCluster"] == [{"cluster": one.state.cluster_id, "names": ["new", "old"]}]
    assert one.state.cluster_id in page(read_report(str(tmp_path)), made_at="now")


def test_a_cluster_without_a_load_model_is_named(answers: dict[str, ClusterState], tmp_path: Path) -> None:
    """Its traffic and growth are unknown in the row, and that is said where it is collected."""
    answers["a"] = member(1).state
    said: list[str] = []
    members, _ = collect([Entry("a", bootstrap_server="a")], str(tmp_path), timeout_s=1, on_line=said.append)
    assert [m.traffic for m in members] == [None]
    assert any(line.startswith("a: traffic and growth are not known") for line in said)
