"""What a person runs to put throttle settings back by hand, as commands of Kafka's own tool."""

from __future__ import annotations

import shlex

from ballast.core.throttles.settings import LISTS, Ledger, LedgerEntry, Setting, parse_list


def restore_commands(ledger: Ledger, server: str) -> list[str]:
    """One ``kafka-configs`` line for each setting that is owed: a rate goes back to the value from before us, or to none.

    A list is only shown, with our entries beside it: the tool sets a list as a whole, and others may have added to it since.
    A setting that was left to another process or person is not owed.
    """
    return [_line(setting, held, server) for setting, held in sorted(ledger.items()) if held.ours]


def _line(setting: Setting, held: LedgerEntry, server: str) -> str:
    if setting.key not in LISTS:
        change = ["--delete-config", setting.key]
        if held.prior is not None:
            change = ["--add-config", f"{setting.key}={held.prior}"]
        return _command("--alter", setting, server, *change)
    ours = ",".join(sorted(held.ours, key=lambda entry: (len(entry), entry)))
    before = f", and these from before: {held.prior}" if parse_list(held.prior) else ""
    return (
        f"{_command('--describe', setting, server)}  # then --alter --add-config '{setting.key}=[…]' without {ours}; "
        f"keep every other one{before}; where none is left, --alter --delete-config {setting.key}"
    )


def _command(action: str, setting: Setting, server: str, *change: str) -> str:
    entity = ["--entity-type", f"{setting.kind}s"]
    entity += ["--entity-name", setting.name] if setting.name else ["--entity-default"]
    return shlex.join(["kafka-configs.sh", "--bootstrap-server", server, action, *entity, *change])
