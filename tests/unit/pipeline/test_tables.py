"""The documented tables are the tables."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from ballast.adapters.samples.arrow_schema import arrow_schema
from ballast.adapters.samples.load_model import LOAD_MODEL as READ_NAME
from ballast.adapters.samples.load_model import LOAD_MODEL_VERSION
from ballast.adapters.samples.store import check_layout, describe
from ballast.core.samples import Table
from ballast.errors import Refused, Unavailable, UsageError
from ballast.pipeline.schemas import LOAD_MODEL, TABLES
from ballast.pipeline.tables import among, literal, translate_errors

DOCS = "".join(
    (Path(__file__).resolve().parents[3] / "docs" / name).read_text() for name in ("pipeline.md", "fleet.md")
)


@pytest.mark.parametrize("table", TABLES.values(), ids=list(TABLES))
def test_every_column_is_documented_and_has_a_type(table: Table) -> None:
    """Name and meaning stand in the docs; the type is one that Arrow, Delta and Spark share."""
    assert f"### {table.name}\n" in DOCS
    for column in table.columns:
        assert f"| `{column.name}` |" in DOCS
        assert column.meaning in DOCS
    assert arrow_schema(table.columns).names == table.names


def test_the_planner_s_reader_knows_the_model_s_layout() -> None:
    """It lives below the pipeline and repeats the name and version; they must not drift apart."""
    assert (LOAD_MODEL.name, LOAD_MODEL.version) == (READ_NAME, LOAD_MODEL_VERSION)


def test_a_newer_layout_is_refused_and_a_foreign_table_too() -> None:
    """Reading on would be guessing."""
    check_layout("load_model", describe("load_model", 1), known=1)
    with pytest.raises(UsageError, match="layout 2"):
        check_layout("load_model", describe("load_model", 2), known=1)
    with pytest.raises(UsageError, match="not one of Ballast"):
        check_layout("load_model", "another's", known=1)


JAVA = """An error occurred while calling o26.save.
: {first}
\tat org.apache.spark.Something(Something.scala:1)
"""


@pytest.mark.parametrize("module", ["py4j.protocol", "pyspark.errors"])
def test_spark_s_failures_are_one_sentence_whichever_library_raises_them(module: str) -> None:
    """It is for another try, and a bug of ours stays one."""
    theirs = type("Theirs", (Exception,), {"__module__": module})
    with (
        pytest.raises(
            Unavailable, match=r"^Spark failed while making load_hour: java\.io\.IOException: disk full Nothing"
        ),
        translate_errors("making load_hour"),
    ):
        raise theirs(JAVA.format(first="java.io.IOException: disk full"))
    with pytest.raises(ZeroDivisionError), translate_errors("making load_hour"):
        raise ZeroDivisionError


TRACEBACK = """Traceback (most recent call last):
  File "worker.py", line 2, in main
    process()
OSError: Generic S3 error at https://bucket/?X-Amz-Signature=secret

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "worker_plans.py", line 3, in plans
    yield from planned(batch)
    ^^^^^^^^^^^^^^^^^^^^^^^^^
ballast.errors.Unavailable: A worker could not read the samples (OSError). Check it.
"""


@pytest.mark.parametrize(
    "text",
    [
        f"\n  An exception was thrown from the Python worker. Please see the stack trace below.\n{TRACEBACK}",
        JAVA.format(first=f"org.apache.spark.api.python.PythonException: {TRACEBACK}")
        + f"JVM stacktrace:\nx: {TRACEBACK}",
    ],
)
def test_a_worker_s_failure_is_what_it_says_itself(text: str) -> None:
    """Neither the word traceback, nor what the store's own text may carry."""
    theirs = type("Theirs", (Exception,), {"__module__": "pyspark.errors"})
    with pytest.raises(Unavailable) as told, translate_errors("making load_hour"):
        raise theirs(text)
    assert str(told.value).startswith(
        "Spark failed while making load_hour: A worker could not read the samples (OSError). Check it. Nothing"
    )


def test_a_conflict_is_refused_and_not_an_error_of_spark() -> None:
    """Of two runs at once, the one that Delta sends back says that another one was there."""
    theirs = type("Theirs", (Exception,), {"__module__": "delta.exceptions.captured"})
    with pytest.raises(Refused, match="Another pipeline run changed the table"), translate_errors("making load_hour"):
        raise theirs("[DELTA_CONCURRENT_TRANSACTION] This error occurs when multiple streaming queries ...")


@pytest.mark.parametrize("asked", ["getCondition", "getErrorClass"])
@pytest.mark.parametrize(
    ("condition", "expected"),
    [("DELTA_CONCURRENT_APPEND", Refused), ("DELTA_TABLE_NOT_FOUND", Unavailable), (None, Refused)],
)
def test_the_condition_that_an_exception_names_decides_and_not_its_text(
    asked: str, condition: str | None, expected: type[Exception]
) -> None:
    """Its text may speak of other conditions; without a name it is all that there is."""
    theirs = type("Theirs", (Exception,), {"__module__": "delta.exceptions.captured", asked: lambda _: condition})
    text = "It is not there." if condition == "DELTA_CONCURRENT_APPEND" else "This is no ConcurrentAppendException."
    with pytest.raises(expected), translate_errors("making load_hour"):
        raise theirs(text)


def test_literals_are_what_they_say_whatever_a_name_holds() -> None:
    """Predicates are text: hours are UTC, and a name cannot end its quotes."""
    hour = datetime(2026, 11, 21, 15, tzinfo=timezone(timedelta(hours=1)))
    assert among("hour", [hour]) == "hour IN (TIMESTAMP '2026-11-21 14:00:00')"
    assert among("date", [hour.date()]) == "date IN (DATE '2026-11-21')"
    assert literal("a'b\\c") == "'a\\'b\\\\c'"
