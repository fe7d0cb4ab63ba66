"""The settings file is followed while the daemon runs: what is taken over, what waits for a restart, what a mistake does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from ballast.daemon.policy import SettingsChange
from ballast.errors import UsageError
from ballast.settings.load import load_settings
from ballast.settings.model import Settings
from ballast.settings.watch import MISSED_LOOKS, SettingsWatch

Look = Callable[[], SettingsChange | None]
GOOD = "leaders: {imbalance_percentage: 20}\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The file as the daemon found it."""
    path = tmp_path / "ballast.yaml"
    path.write_text(GOOD)
    return path


@pytest.fixture
def look(file: Path) -> Look:
    """The daemon's look at it."""
    return SettingsWatch(file, {}).look


def test_a_change_is_handed_over_with_what_waits_for_a_restart(file: Path, look: Look) -> None:
    """Once; the policy in force from now on, and a sentence that names both kinds of change."""
    assert look() is None
    file.write_text("leaders: {imbalance_percentage: 30}\nweb: {port: 9}\n")
    change = look()
    assert change is not None
    policy, shown, sentence = change
    assert policy.leaders.imbalance_percentage == 30
    assert ("leaders.imbalance_percentage", "30") in shown
    assert sentence == (
        "Settings changed: leaders.imbalance_percentage = 30. Picked up at the next start only: web.port."
    )
    assert look() is None


def test_a_mistake_is_told_once_and_its_end_too(file: Path, look: Look) -> None:
    """Also where the file goes back to what it said before: nothing differs then, and nothing is wrong any more."""
    file.write_text("leaders: {imbalance_percentag: 30}\n")
    with pytest.raises(UsageError, match="imbalance_percentag"):
        look()
    assert look() is None
    file.write_text(GOOD)
    change = look()
    assert change is not None
    policy, _, sentence = change
    assert policy.leaders.imbalance_percentage == 20
    assert sentence == "The settings file is valid again, and its settings are active."
    assert look() is None


def test_a_comment_is_no_change(file: Path, look: Look) -> None:
    """Other text with the same meaning is not worth a word."""
    file.write_text(f"# why 20\n{GOOD}")
    assert look() is None


def test_a_change_while_the_daemon_starts_is_handed_over(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The watch begins before the file is read, so that the first look finds what came in between."""

    def load_and_change(path: Path, environment: Mapping[str, str]) -> Settings:
        settings = load_settings(path, environment)
        file.write_text("leaders: {imbalance_percentage: 30}\n")
        return settings

    with monkeypatch.context() as starting:
        starting.setattr("ballast.settings.watch.load_settings", load_and_change)
        watch = SettingsWatch(file, {})
    assert watch.settings.leaders.imbalance_percentage == 20
    change = watch.look()
    assert change is not None
    assert change[0].leaders.imbalance_percentage == 30


def test_a_file_that_stays_away_is_told_once_and_its_return_too(file: Path, look: Look) -> None:
    """Nothing is said of the moment in which a ConfigMap is swapped."""
    for _ in range(2):
        file.unlink()
        assert [look() for _ in range(MISSED_LOOKS - 1)] == [None] * (MISSED_LOOKS - 1)
        file.write_text(GOOD)
        assert look() is None
    file.unlink()
    assert [look() for _ in range(MISSED_LOOKS - 1)] == [None] * (MISSED_LOOKS - 1)
    with pytest.raises(UsageError, match="Cannot read the settings file"):
        look()
    assert look() is None
    file.write_text(GOOD)
    change = look()
    assert change is not None
    assert change[2] == "The settings file is valid again, and its settings are active."


def test_a_file_that_cannot_be_read_any_more_is_told(file: Path, look: Look) -> None:
    """With the reason; a folder in its place stands for every other one."""
    file.unlink()
    file.mkdir()
    for _ in range(MISSED_LOOKS - 1):
        look()
    with pytest.raises(UsageError, match="Is a directory"):
        look()
