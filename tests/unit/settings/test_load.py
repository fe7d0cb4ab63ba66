"""Settings: from a file and the environment to one value, and a sentence for every mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from ballast.daemon.policy import ActionKind, Mode
from ballast.errors import UsageError
from ballast.settings import Settings, load_settings
from ballast.settings.load import validate
from ballast.settings.show import differences, need_restart
from ballast.settings.watch import SettingsWatch


def load(tmp_path: Path, text: str, **environment: str) -> Settings:
    """Settings from this text."""
    file = tmp_path / "ballast.yaml"
    file.write_text(text)
    return load_settings(file, environment)


def test_defaults_observe_and_never_write() -> None:
    """Without a file and an environment nothing is ever written to a cluster."""
    settings = load_settings(None, {})
    assert settings.mode is Mode.OBSERVE
    assert not settings.daemon.writes
    assert (settings.leaders.imbalance_percentage, settings.leaders.check_interval_s) == (None, None)
    assert not settings.leaders.auto


def test_the_defaults_are_what_a_check_of_them_gives() -> None:
    """Nothing is checked where nothing is given, so the defaults are valid as they are written, to the type."""
    assert repr(validate({})) == repr(Settings())


def test_kafkas_own_names_are_accepted(tmp_path: Path) -> None:
    """Kafka's dotted names land in Ballast's places; its switch lets elections act and nothing else."""
    settings = load(
        tmp_path,
        "leader.imbalance.per.broker.percentage: 5\n"
        "leader.imbalance.check.interval.seconds: 60\n"
        "auto.leader.rebalance.enable: true\n"
        "bootstrap.servers: a:1,b:2\n",
    )
    assert (settings.leaders.imbalance_percentage, settings.leaders.check_interval_s) == (5, 60)
    assert settings.cluster.bootstrap_server == "a:1,b:2"
    modes = {kind: settings.daemon.mode_of(kind) for kind in ActionKind}
    assert modes.pop(ActionKind.ELECTIONS) is Mode.AUTO
    assert set(modes.values()) == {Mode.OBSERVE}


@pytest.mark.parametrize(
    ("text", "one", "other"),
    [
        ("intervals: {lock_s: 60}\n", "intervals.lock_s", "journal.lease_s"),
        ("journal: {lease_s: 3}\n", "intervals.lock_s", "journal.lease_s"),
        ("intervals: {observe_s: 300}\n", "guards.max_reading_age_s", "intervals.observe_s"),
        ("stop: {wait_for_moves: true, grace_s: 10}\n", "stop.wait_for_moves", "stop.grace_s"),
        ("web: {port: 8080, probes_port: 8080}\n", "web.probes_port", "web.port"),
    ],
)
def test_settings_that_contradict_each_other_are_refused_with_both_names(
    tmp_path: Path, text: str, one: str, other: str
) -> None:
    """Each is fine by itself; together they would never act, lose the lock or never start."""
    with pytest.raises(UsageError) as refused:
        load(tmp_path, text)
    assert one in refused.value.message
    assert other in refused.value.message


@pytest.mark.parametrize(
    ("text", "sentence", "hint"),
    [
        ("leeders: {}\n", "'leeders'", "Did you mean leaders?"),
        ("leaders: {imbalance_percent: 1}\n", "'leaders.imbalance_percent'", "leaders.imbalance_percentage?"),
        ("actions: {moves: {window: []}}\n", "'actions.moves.window'", "actions.moves.windows?"),
        (
            'actions: {moves: {windows: [{opens: "0 1 * * *", last_minutes: 1}]}}\n',
            "'actions.moves.windows.0.last_minutes'",
            "lasts_minutes?",
        ),
        ("leader.imbalance.check.interval.secs: 9\n", "does not know", "leader.imbalance.check.interval.seconds?"),
        ("mode: atuo\n", "mode: ", "`ballast config explain mode`"),
        ("leaders: {imbalance_percentage: 101}\n", "leaders.imbalance_percentage", "explain leaders.imb"),
        ('actions: {moves: {windows: [{opens: "0 1 * *", lasts_minutes: 1}]}}\n', "not a cron expression", "windows"),
        (
            'actions: {moves: {windows: [{opens: "0 1 * * *", lasts_minutes: 1, timezone: Mars/Base}]}}\n',
            "not a time zone",
            "",
        ),
        ("mode: auto\nmode: observe\n", "given twice", ""),
        ("mode: auto\n? [observe]\n: 8080\n", "a key is a list or a map", ""),
        ("leaders: {auto: true}\nauto.leader.rebalance.enable: true\n", "sets leaders.auto twice", "Keep one"),
        ("leaders: {auto: true}\nactions: {elections: {mode: observe}}\n", "contradict", "Keep one"),
        ("leaders: {imbalance_percentage: 5, recovered_percentage: 6}\n", "must not be above", ""),
        ("mode: [\n", "not valid YAML in line", ""),
        ("- mode\n", "`name: value`", ""),
        ("execution: {throttle: 0}\n", "would stop replication", ""),
        ("execution: {throttle: fast}\n", "execution.throttle: Input should be 'auto' or 'none'", ""),
    ],
)
def test_every_mistake_is_one_sentence_that_names_its_place(
    tmp_path: Path, text: str, sentence: str, hint: str
) -> None:
    """A mistake is refused with what is wrong, where, and what was probably meant."""
    with pytest.raises(UsageError) as refused:
        load(tmp_path, text)
    assert sentence in refused.value.message
    assert hint in (refused.value.hint or "")


def test_the_environment_wins_and_kubernetes_own_variables_do_not_disturb(tmp_path: Path) -> None:
    """Two underscores tell a setting from what a Service called ``ballast`` puts into every pod."""
    settings = load(
        tmp_path,
        "leaders: {imbalance_percentage: 5}\nmode: approve\n",
        BALLAST__LEADERS__IMBALANCE_PERCENTAGE="7",
        BALLAST_BOOTSTRAP_SERVER="k:9092",
        BALLAST_SERVICE_HOST="10.0.0.1",
        BALLAST_PORT_8080_TCP="tcp://10.0.0.1:8080",
    )
    assert settings.leaders.imbalance_percentage == 7
    assert settings.cluster.bootstrap_server == "k:9092"
    assert settings.mode is Mode.APPROVE
    with pytest.raises(UsageError, match="BALLAST__LEADERS__IMBALANCE"):
        load_settings(None, {"BALLAST__LEADERS__IMBALANCE": "7"})


def test_a_section_given_in_part_keeps_its_other_defaults(tmp_path: Path) -> None:
    """Windows for moves do not lift the cap that moves have by default."""
    settings = load(tmp_path, 'actions: {moves: {windows: [{opens: "0 1 * * *", lasts_minutes: 60}]}}\n')
    assert settings.actions.moves.per_day == Settings().actions.moves.per_day
    assert settings.actions.moves.cool_down_s == Settings().actions.moves.cool_down_s
    assert [name for name, _, _ in differences(settings)] == ["actions.moves.windows"]


def test_what_needs_a_restart_is_named() -> None:
    """Of two changed settings the one that is read once is named."""
    before = load_settings(None, {})
    after = load_settings(None, {"BALLAST__MODE": "approve", "BALLAST__WEB__PORT": "9"})
    assert need_restart(before, after) == ["web.port"]


def test_a_configmaps_symlink_swap_is_noticed(tmp_path: Path) -> None:
    """The kubelet swaps ``..data`` to a new folder; touching a file is no change, and a missing one is none either."""
    for version in ("1", "2"):
        (tmp_path / version).mkdir()
        (tmp_path / version / "ballast.yaml").write_text(f"leaders: {{check_interval_s: {version}}}\n")
    (tmp_path / "..data").symlink_to("1")
    (tmp_path / "ballast.yaml").symlink_to("..data/ballast.yaml")
    watch = SettingsWatch(tmp_path / "ballast.yaml", {})
    assert watch.look() is None
    (tmp_path / "1" / "ballast.yaml").touch()
    assert watch.look() is None
    (tmp_path / "..data_tmp").symlink_to("2")
    (tmp_path / "..data_tmp").rename(tmp_path / "..data")
    assert watch.look() is not None
    assert watch.look() is None
    (tmp_path / "..data").unlink()
    assert watch.look() is None
