"""Times and brokers are written in one way, whichever command takes them."""

from __future__ import annotations

import re
from typing import Final

import click
import pytest
from click.testing import CliRunner
from tests.unit.cli.test_shell import ALL

from ballast.cli.commands.reassign import StockCommand
from ballast.cli.option_types import BROKERS, PLACEMENT, TIME, Time
from ballast.cli.run_options import LockOptions, lock_options
from ballast.core.named_brokers import NamedBrokers
from ballast.core.placement.placer import ALGORITHMS
from ballast.errors import UsageError

TIMES: Final = {
    "--restart-after",
    "--cancel-stalled-after",
    "--deadline",
    "--follow",
    "--give-up-after",
    "--interval",
    "--lock-wait",
    "--measure",
    "--guard-timeout",
    "--timeout",
}


def options() -> list[tuple[str, click.Option, click.Context]]:
    """Every option of every command but the one that has the stock tool's."""
    return [
        (f"{context.command_path} {parameter.opts[0]}", parameter, context)
        for context in ALL
        if not isinstance(context.command, StockCommand)
        for parameter in context.command.params
        if isinstance(parameter, click.Option)
    ]


def test_every_placement_is_of_one_type() -> None:
    """All algorithms that there are, and auto."""
    found = [o for name, o, _ in options() if o.opts[0] == "--placement"]
    assert len(found) == 3
    assert all(o.type is PLACEMENT for o in found)
    assert PLACEMENT.choices == ("auto", *ALGORITHMS)


@pytest.mark.parametrize(
    ("flag", "kept"),
    [
        ("--config", "settings file"),
        ("--store", "samples"),
        ("--brokers", ""),
        ("--replication-factor", "replica"),
        ("--report", "HTML"),
        ("--save", "rite"),
    ],
)
def test_a_name_of_an_option_means_one_thing(flag: str, kept: str) -> None:
    """Its help says so in every command; the sandbox is what it is made of."""
    found = [(n, o) for n, o, _ in options() if o.opts[0] == flag and not n.startswith("ballast sandbox")]
    assert len(found) >= 2
    assert [name for name, o in found if kept.lower() not in (o.help or "").lower()] == []


@pytest.mark.parametrize(
    "retired",
    [
        "--algorithm",
        "--broker",
        "--gently",
        "--history",
        "--html",
        "--rf",
        "--settings-file",
        "--tidy",
        "--to",
    ],
)
def test_another_name_for_the_same_thing_is_gone(retired: str) -> None:
    """Nothing is released, so none is kept as an alias."""
    assert [name for name, o, _ in options() if retired in (*o.opts, *o.secondary_opts)] == []


def test_every_time_is_of_one_type() -> None:
    """With a unit, and shown as TIME."""
    found = [(name, o, c) for name, o, c in options() if o.opts[0] in TIMES]
    assert {o.opts[0] for _, o, _ in found} == TIMES
    assert [name for name, o, c in found if not isinstance(o.type, Time) or o.make_metavar(c) != "TIME"] == []


def test_no_other_unit_is_shown() -> None:
    """Neither seconds nor minutes alone."""
    assert [name for name, o, _ in options() if "SECOND" in (o.metavar or "") or "MINUTE" in (o.metavar or "")] == []


@pytest.mark.parametrize(
    ("text", "seconds"), [("30s", 30.0), ("10m", 600.0), ("2h", 7200.0), ("1d", 86_400.0), ("90", 90.0), ("0.5", 0.5)]
)
def test_a_time_is_read_with_its_unit(text: str, seconds: float) -> None:
    """A bare number is seconds."""
    assert TIME.convert(text, None, None) == seconds


@pytest.mark.parametrize("text", ["", "soon", "-5", "10 minutes", "1e3", "nan", "5x"])
def test_what_is_no_time_is_refused_with_an_example(text: str) -> None:
    """In a sentence that shows how one is written."""
    with pytest.raises(click.BadParameter, match="30s, 10m or 2h"):
        TIME.convert(text, None, None)


def test_a_time_may_have_a_least() -> None:
    """A pause of nothing would ask the cluster without end."""
    with pytest.raises(click.BadParameter, match="more than 0"):
        Time(positive=True).convert("0", None, None)
    with pytest.raises(click.BadParameter, match="1s or more"):
        Time(minimum=1).convert("0.5s", None, None)
    assert Time(minimum=1).convert("1", None, None) == 1.0


@pytest.mark.parametrize(
    ("text", "among"), [("4", {4}), ("1,2,5-7", {1, 2, 5, 6, 7}), ("1.", {10, 11}), ("[12]", {1, 2}), ("1|10", {1, 10})]
)
def test_brokers_are_ids_or_an_expression_on_the_whole_id(text: str, among: set[int]) -> None:
    """Of a cluster with ids 1 to 11; both ways of asking agree."""
    named = BROKERS.convert(text, None, None)
    known = range(1, 12)
    assert named.among(known) == among
    assert {b for b in known if re.fullmatch(named.regex, str(b))} == among


def test_several_namings_are_one() -> None:
    """As when an option or argument is repeated."""
    both = NamedBrokers.parse("1,3") | NamedBrokers.parse("1|10")
    assert both.among(range(12)) == {1, 3, 10}
    assert not NamedBrokers()


def test_an_id_stays_though_the_cluster_lacks_it_and_an_expression_must_match() -> None:
    """The command itself says that there is no such broker; an expression that matches none would do nothing."""
    assert NamedBrokers.parse("9").among([1, 2]) == {9}
    with pytest.raises(UsageError, match=r"No broker's id matches '9\.'"):
        NamedBrokers.parse("9.").among([1, 2])


@pytest.mark.parametrize("text", ["", "7-5", "1-99999", "(", "a{99999999999999}"])
def test_what_names_no_brokers_is_refused(text: str) -> None:
    """Ranges that are reversed or endless, and expressions that are none."""
    with pytest.raises(click.BadParameter):
        BROKERS.convert(text, None, None)


def test_the_flag_is_an_option_of_its_command() -> None:
    """Said on the command line it counts for that command, and for no other."""
    told: list[bool] = []

    @click.command()
    @lock_options
    def act(*, lock: LockOptions) -> None:
        assert (lock.journal, lock.wait_s) == (None, 20.0)
        told.append(lock.take_over)

    for words in (["--take-over"], []):
        assert CliRunner().invoke(act, words).exit_code == 0
    assert told == [True, False]
