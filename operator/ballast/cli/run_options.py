"""Options that every command which changes the cluster shares, and the policy they make."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

import click

from ballast.cli.option_types import TIME, Time

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from ballast.app.runs import Session
    from ballast.app.user_interface import UserInterface
    from ballast.executor.machine.policy import ExecutionPolicy
    from ballast.wiring.cluster import OpenCluster
    from ballast.wiring.runs import Writer

F = TypeVar("F", bound=Callable[..., Any])

GUARD_TIMEOUT_S: Final = 300.0
"""How long guards may refuse every move of a command; a daemon waits for ever."""
_UNITS: Final[Mapping[str, int]] = {
    "": 1,
    "b": 1,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "kib": 1 << 10,
    "mib": 1 << 20,
    "gib": 1 << 30,
}


def rate_of(text: str) -> int:
    """Bytes per second; raises ``ValueError`` with a sentence."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmg]?i?b?)", text.strip().lower().removesuffix("/s"))
    if found is None or (unit := found[2] + ("" if not found[2] or found[2].endswith("b") else "b")) not in _UNITS:
        raise ValueError(f"{text!r} is not a rate; write for example 50MB, 50MiB or 50000000 (bytes per second).")
    rate = int(float(found[1]) * _UNITS[unit])
    if rate <= 0:
        raise ValueError("a rate of zero would stop replication; --no-throttle copies without one.")
    return rate


class Rate(click.ParamType[int]):
    """Bytes per second: ``50MB``, ``50MiB``, ``50000000``."""

    name = "rate"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Bytes per second."""
        try:
            return rate_of(str(value))
        except ValueError as wrong:
            self.fail(str(wrong), param, ctx)


class NetworkRate(Rate):
    """What a network carries: nothing is no rate of one."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Bytes per second."""
        if re.fullmatch(r"[0.]+\D*", str(value).strip()):
            self.fail("a network that carries nothing copies nothing; write for example 1GB/s.", param, ctx)
        return super().convert(value, param, ctx)


@dataclass(frozen=True, slots=True)
class Throttle:
    """What ``--throttle`` said."""

    default: int | None = None
    """Bytes per second of every broker that is not named."""
    brokers: Mapping[int, int] = field(default_factory=dict)
    """Bytes per second by broker."""
    auto: bool = False


class ThrottleType(click.ParamType[Throttle]):
    """One rate, one for each broker, or ``auto``."""

    name = "throttle"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Throttle:
        """``50MB``, ``1=20MB,2=50MB,default=30MB`` (``default=auto``) or ``auto``."""
        if isinstance(value, Throttle):
            return value
        text = str(value).strip().lower()
        if text == "auto":
            return Throttle(auto=True)
        try:
            return _by_broker(text) if "=" in text else Throttle(rate_of(text))
        except ValueError as wrong:
            self.fail(str(wrong), param, ctx)


def _by_broker(text: str) -> Throttle:
    default: int | None = None
    auto = False
    brokers: dict[int, int] = {}
    for part in text.split(","):
        who, sign, rate = (piece.strip() for piece in part.partition("="))
        if not sign or not (who == "default" or (who.isascii() and who.isdigit())):
            raise ValueError(f"{part.strip()!r} is not BROKER=RATE; write for example 1=20MB,2=50MB,default=30MB.")
        if rate == "auto" and who != "default":
            raise ValueError("auto is for the brokers that are not named: write for example 1=20MB,default=auto.")
        known = auto or default is not None if who == "default" else int(who) in brokers
        if known:
            raise ValueError(f"{who} is given twice; keep one rate for each broker.")
        if rate == "auto":
            auto = True
        elif who == "default":
            default = rate_of(rate)
        else:
            brokers[int(who)] = rate_of(rate)
    return Throttle(default, brokers, auto)


_EXECUTION_OPTIONS: Final[dict[str, Mapping[str, Any]]] = {
    "--throttle": {
        "type": ThrottleType(),
        "metavar": "RATE|B=RATE,…|auto",
        "help": (
            "Replication bytes per second of each broker involved: one for all (50MB), one for each "
            "(1=20MB,2=50MB,default=30MB), or auto, which starts each broker by its network, its traffic and the size of its copies, "
            "raises the rate while it is used, and halves it when other replicas fall behind.  [default: auto]"
        ),
    },
    "--no-throttle": {"is_flag": True, "help": "Copy as fast as disks and network allow."},
    "--raise-throttle": {"is_flag": True, "help": "Raise a throttle that is below the inbound rate."},
    "--keep-rates": {
        "is_flag": True,
        "help": "Keep existing broker throttles and copy within them, also beside throttled moves of others.",
    },
    "--network": {
        "type": NetworkRate(),
        "metavar": "RATE",
        "help": "What each broker's network carries in each direction: auto keeps within what is left of it.",
    },
    "--moves-in": {
        "type": click.IntRange(1),
        "metavar": "N",
        "help": "Maximum concurrent incoming replicas per broker.",
    },
    "--moves-out": {
        "type": click.IntRange(1),
        "metavar": "N",
        "help": "Maximum concurrent moves of partitions that one broker leads.",
    },
    "--moves-at-once": {"type": click.IntRange(1), "metavar": "N", "help": "Maximum concurrent moves in the cluster."},
    "--bytes-at-once": {"type": Rate(), "metavar": "BYTES", "help": "Maximum bytes that are copied at a time."},
    "--one-batch": {"is_flag": True, "help": "Start the next moves only when all before have ended."},
    "--cancel-stalled-after": {
        "type": Time(minimum=1),
        "help": "Cancel a move that is stalled for this long; without it, it is reported and waited for.",
    },
    "--guard-timeout": {
        "type": TIME,
        "help": (
            "Maximum time that guards may refuse every move before the command gives up (exit code 5).  "
            f"[default: settings, else {GUARD_TIMEOUT_S / 60:.0f}m]"
        ),
    },
    "--journal-lost": {
        "type": click.Choice(["finish", "leave"]),
        "default": "finish",
        "show_default": True,
        "help": "When the journal is deleted or truncated during the run: recreate it from memory and finish, or leave the run open.",
    },
    "--unknown-disk-space": {
        "type": click.Choice(["refuse", "allow"]),
        "help": (
            "Whether to copy where a broker's free disk space, or a partition's size, is not known.  "
            "[default: settings, else refuse]"
        ),
    },
    "--replicas-below-min-isr": {
        "type": click.Choice(["refuse", "allow"]),
        "help": (
            "Whether to add a replica where there are fewer than min.insync.replicas: writes with acks=all are rejected "
            "meanwhile.  [default: settings, else refuse]"
        ),
    },
}
"""Flag to the arguments of its ``click.option``, in the order of ``--help``."""


def execution_options(command: F) -> F:
    """Add throttle, batch and waiting options; they arrive in ``policy_options`` as one mapping."""
    names = [flag.removeprefix("--").replace("-", "_") for flag in _EXECUTION_OPTIONS]

    @functools.wraps(command)
    def call(*args: Any, **kwargs: Any) -> Any:
        return command(*args, policy_options={n: kwargs.pop(n) for n in names}, **kwargs)

    wrapped: Any = call
    for flag, attributes in reversed(_EXECUTION_OPTIONS.items()):
        wrapped = click.option(flag, **attributes)(wrapped)
    return wrapped  # type: ignore[no-any-return]


def policy_from(options: Mapping[str, Any], settings: ExecutionPolicy | None = None) -> ExecutionPolicy:
    """The policy these options make; what was not given is as the settings say (``execution``), or as the defaults do."""
    from dataclasses import replace

    from ballast.errors import UsageError
    from ballast.executor.machine.policy import ExecutionPolicy

    if options["throttle"] is not None and options["no_throttle"]:
        raise UsageError("--throttle and --no-throttle exclude each other.", hint="Give one of them.")
    base = settings or ExecutionPolicy()
    if options["throttle"] is not None or options["no_throttle"]:
        said: Throttle = options["throttle"] or Throttle()
        rate: Literal["auto", "none"] | int = "auto" if said.auto else said.default or "none"
        base = replace(base, throttle=rate, throttle_per_broker=said.brokers)
    if options["network"] is not None and not base.auto:
        raise UsageError(
            "--network only means something to --throttle auto.", hint="Leave the rate out, or drop --network."
        )
    guard_timeout_s = GUARD_TIMEOUT_S if base.guard_timeout_s is None else base.guard_timeout_s
    given = {
        "network_bytes_per_s": options["network"],
        "moves_in_per_broker": options["moves_in"],
        "moves_out_per_broker": options["moves_out"],
        "moves_at_once": options["moves_at_once"],
        "bytes_at_once": options["bytes_at_once"],
        "cancel_stalled_after_s": options["cancel_stalled_after"],
        "guard_timeout_s": guard_timeout_s if options["guard_timeout"] is None else options["guard_timeout"],
        "journal_lost": options["journal_lost"],
        "unknown_disk_space": options["unknown_disk_space"],
        "replicas_below_min_isr": options["replicas_below_min_isr"],
    }
    return replace(
        base,
        raise_throttle=options["raise_throttle"] or base.raise_throttle,
        keep_existing_rates=options["keep_rates"] or base.keep_existing_rates,
        one_batch_at_a_time=options["one_batch"] or base.one_batch_at_a_time,
        **{k: v for k, v in given.items() if v is not None},
    )


@dataclass(frozen=True, slots=True)
class LockOptions:
    """What the person said about the journal and its lock."""

    journal: str | None
    wait_s: float
    take_over: bool

    def writer(self, opened: OpenCluster, command: str) -> AbstractContextManager[Writer]:
        """The lock for the block; raises ``LockHeld``."""
        from ballast.wiring.runs import open_writer

        return open_writer(
            opened, command=command, journal=self.journal, lock_wait_s=self.wait_s, take_over=self.take_over
        )

    def session(self, opened: OpenCluster, user_interface: UserInterface, command: str) -> Session:
        """The same for a command that executes runs."""
        from ballast.app.runs import Session

        return Session(opened, user_interface, command, self.journal, self.wait_s, self.take_over)


def lock_options(command: F) -> F:
    """Add ``--journal``, ``--lock-wait`` and ``--take-over``, and pass them on as one ``lock`` argument."""

    @functools.wraps(command)
    def call(*args: Any, journal: str | None, lock_wait: float, take_over: bool, **kwargs: Any) -> Any:
        return command(*args, lock=LockOptions(journal, lock_wait, take_over), **kwargs)

    wrapped: Any = call
    for option in (
        click.option(
            "--take-over",
            is_flag=True,
            help="Request the lock from its current holder; a daemon acquires it again when you are done.",
        ),
        click.option(
            "--lock-wait",
            type=TIME,
            default="20s",
            show_default=True,
            help="Time to wait for the lock lease.",
        ),
        click.option(
            "--journal", metavar="file:PATH", help="Keep the journal in a file, for a cluster that cannot store it."
        ),
    ):
        wrapped = option(wrapped)
    return wrapped  # type: ignore[no-any-return]


def confirm(question: str, *, yes: bool) -> None:
    """Ask a person; without a terminal only ``--yes`` is an answer."""
    import sys

    from ballast.errors import Interrupted, UsageError

    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError(
            "This changes the cluster, and standard input is not a terminal that could confirm it.", hint="Give --yes."
        )
    if not click.confirm(question, err=True):
        raise Interrupted("Nothing was done.")
