"""What a person runs to put throttle settings back by hand, as commands of Kafka's own tool."""

from __future__ import annotations

import shlex

from ballast.core.throttles import Ledger, Setting


def repay_commands(ledger: Ledger, server: str) -> list[str]:
    """One ``kafka-configs`` line for each setting that is owed: to the value from before us, or to none.

    A setting that was left to somebody else is not owed.
    """
    return [_command(setting, held.prior, server) for setting, held in sorted(ledger.items()) if held.ours]


def _command(setting: Setting, prior: str | None, server: str) -> str:
    entity = ["--entity-type", f"{setting.kind}s"]
    entity += ["--entity-name", setting.name] if setting.name else ["--entity-default"]
    # The tool takes commas as the beginning of another setting, except within brackets.
    value = f"[{prior}]" if prior is not None and "," in prior else prior
    change = ["--delete-config", setting.key] if value is None else ["--add-config", f"{setting.key}={value}"]
    return shlex.join(["kafka-configs.sh", "--bootstrap-server", server, "--alter", *entity, *change])
