"""``ballast daemon`` without a cluster: it never guesses one, and names what its reader can set."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

import ballast.sandbox
import ballast.wiring.daemon
from ballast.cli.commands.daemon import daemon as command
from ballast.errors import UsageError
from ballast.sandbox.current_sandbox import RunningSandbox
from ballast.settings.fields import walk
from ballast.settings.load import load_settings
from ballast.settings.model import Settings
from ballast.wiring.daemon import run_daemon


def test_the_daemon_names_the_setting_that_is_missing() -> None:
    """Its hint names a setting that there is, the variable that every command knows, and the sandbox; ``ballast daemon`` has no option for a server."""
    with pytest.raises(UsageError) as refused:
        run_daemon(None, {})
    assert refused.value.hint is not None
    assert "cluster.bootstrap_server" in {d.name for d in walk(Settings)}
    assert "cluster.bootstrap_server" in refused.value.hint
    assert "--bootstrap-server" not in refused.value.hint
    assert " BALLAST_BOOTSTRAP_SERVER" in refused.value.hint
    assert "--sandbox" in refused.value.hint


def test_the_daemon_runs_on_the_sandbox_where_it_is_told_to(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With its servers and its client properties, over whatever cluster is configured; without a sandbox it says so."""
    monkeypatch.setenv("BALLAST_BOOTSTRAP_SERVER", "elsewhere:9092")
    monkeypatch.setattr(ballast.sandbox, "running", lambda: None)
    refused = CliRunner().invoke(command, ["--sandbox"])
    assert isinstance(refused.exception, UsageError)
    properties = tmp_path / "client.properties"
    properties.write_text("security.protocol=PLAINTEXT\n")
    found = RunningSandbox("127.0.0.1:1", None, {}, properties)
    monkeypatch.setattr(ballast.sandbox, "running", lambda: found)
    seen: list[Settings] = []

    def daemon(config: Path | None, environment: dict[str, str]) -> bool:
        seen.append(load_settings(config, environment))
        return False

    monkeypatch.setattr(ballast.wiring.daemon, "run_daemon", daemon)
    assert CliRunner().invoke(command, ["--sandbox"]).exit_code == 0
    assert seen[0].cluster.bootstrap_server == "127.0.0.1:1"
    assert seen[0].cluster.command_config == properties
