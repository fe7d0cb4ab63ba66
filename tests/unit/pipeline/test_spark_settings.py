"""Which Spark the commands run on: option, environment, settings file, in this order; what is no Spark is refused in a sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ballast.cli.commands.fleet.command import fleet
from ballast.cli.commands.pipeline import pipeline
from ballast.cli.main import main
from ballast.errors import UsageError
from ballast.pipeline.policy import PipelinePolicy, check_master, show_master
from ballast.pipeline.session import SparkPolicy
from ballast.settings.load import load_settings

SIGNED_IN = "sc://spark.example.org:15002/;use_ssl=true;token=hunter2"
FILE = """\
samples: {store: /var/lib/ballast}
pipeline:
  spark: spark://of-the-file:7077
  driver_memory: 3g
  history: {samples_retention_hours: 48}
"""


class Asked(Exception):
    """What a command would run on."""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A settings file, in an environment that says nothing; commands stop where they would start Spark."""
    for name in ("BALLAST_SPARK", "BALLAST__PIPELINE__SPARK", "BALLAST_CONFIG"):
        monkeypatch.delenv(name, raising=False)

    def stop(*arguments: Any, spark: SparkPolicy, **_: Any) -> None:
        raise Asked(spark, arguments)

    monkeypatch.setattr("ballast.wiring.pipeline.run_pipeline", stop)
    monkeypatch.setattr("ballast.wiring.fleet.plan_fleet", stop)
    path = tmp_path / "ballast.yaml"
    path.write_text(FILE)
    return path


def asked(*words: str) -> tuple[SparkPolicy, tuple[Any, ...]]:
    """How a command would start Spark, and what else it would hand on."""
    with pytest.raises(Asked) as found:
        {"pipeline": pipeline, "fleet": fleet}[words[0]].main(list(words[1:]), standalone_mode=False)
    return found.value.args[0], found.value.args[1]


@pytest.mark.parametrize("words", [("pipeline", "run"), ("fleet", "plan")])
def test_option_then_environment_then_file_then_local(
    words: tuple[str, str], file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each step down is reached only when the ones above say nothing."""
    named = (*words, "--config", str(file))
    assert asked(*words, "--store", "/s")[0].master == "local[*]"
    assert asked(*named)[0] == SparkPolicy(master="spark://of-the-file:7077", driver_memory="3g")
    monkeypatch.setenv("BALLAST__PIPELINE__SPARK", "local[3]")
    assert asked(*named)[0].master == "local[3]"
    monkeypatch.setenv("BALLAST_SPARK", "sc://of-the-environment")
    assert asked(*named)[0].master == "sc://of-the-environment"
    assert asked(*named, "--spark", "local[2]", "--driver-memory", "700m")[0] == SparkPolicy(
        master="local[2]", driver_memory="700m"
    )


def test_the_file_says_how_long_tables_are_kept(file: Path) -> None:
    """Beside the store, the jobs are handed the file's own retention."""
    assert asked("pipeline", "run", "--config", str(file))[1] == (
        "/var/lib/ballast",
        PipelinePolicy(samples_retention_hours=48),
    )


@pytest.mark.parametrize(
    "master",
    [
        *(
            "local",
            "local[*]",
            "local[4]",
            "local[4,2]",
            "spark://h:7077",
            "spark://a:7077,b:7077",
            "spark://[::1]:7077",
        ),
        *(
            "k8s://https://kubernetes.default.svc:443",
            "k8s://api:6443",
            "sc://h",
            "sc://h:15002/;use_ssl=true",
            SIGNED_IN,
        ),
    ],
)
def test_every_kind_of_spark_is_known(master: str) -> None:
    """As Spark itself writes them."""
    check_master(master)


@pytest.mark.parametrize(
    "master", ["", "lokal", "local[", "local[0]", "spark://h", "spark:/h:7077", "k8s://", "sc://", "http://h:1"]
)
def test_what_is_no_spark_is_refused_before_anything_starts(master: str) -> None:
    """In the settings with the name of the section, on the command line as what it is."""
    with pytest.raises(UsageError, match=r"^pipeline: spark names no Spark: write local\[\*\], spark://"):
        load_settings(None, {"BALLAST__PIPELINE__SPARK": f'"{master}"'})
    with pytest.raises(ValueError, match="spark names no Spark"):
        check_master(master)


def test_mistakes_on_the_command_line_are_sentences(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 2 and what to write, whatever the settings say."""
    for flags, told in (
        (["--spark", "spark//h:7077"], "spark names no Spark"),
        (["--driver-memory", "2 GB"], "driver_memory is no size of a heap"),
        (["--conf", "spark.x"], "is not KEY=VALUE"),
    ):
        with pytest.raises(SystemExit) as ended:
            main(["pipeline", "run", "--config", str(file), *flags])
        assert ended.value.code == 2
        assert told in capsys.readouterr().err


def test_a_token_is_neither_kept_in_settings_nor_shown() -> None:
    """The refusal does not repeat it either; what is said of a run leaves the parameters out."""
    with pytest.raises(UsageError, match="BALLAST_SPARK") as refused:
        load_settings(None, {"BALLAST__PIPELINE__SPARK": SIGNED_IN})
    assert "hunter2" not in str(refused.value)
    assert show_master(SIGNED_IN) == "sc://spark.example.org:15002"


@pytest.mark.parametrize("wrong", ["token=hunter2==", "hunter2", "token=hunter2;"])
def test_a_parameter_that_pyspark_would_say_aloud_is_refused_first(wrong: str) -> None:
    """Tokens that are written in base64 end in = more often than not; it is to be told how one is written then."""
    with pytest.raises(ValueError, match=r"not name=value: write an = within a value as %3D") as refused:
        check_master(f"sc://spark.example.org/;use_ssl=true;{wrong}")
    assert "hunter2" not in str(refused.value)
    check_master("sc://spark.example.org/;token=hunter2%3D%3D")


@pytest.mark.parametrize(
    ("setting", "value", "told"),
    [
        ("LOAD_HOUR_RETENTION_DAYS", "3", "load_hour_retention_days is too short"),
        ("WINDOW_DAYS", "500", "table_retention_days is shorter than window_days"),
        ("SAMPLES_RETENTION_HOURS", "1", "greater than or equal to 2"),
    ],
)
def test_retention_that_would_lose_what_is_still_needed_is_refused(setting: str, value: str, told: str) -> None:
    """A day is made from its hours as long as late samples of it are taken; a window from its days."""
    with pytest.raises(UsageError, match=told):
        load_settings(None, {f"BALLAST__PIPELINE__HISTORY__{setting}": value})
