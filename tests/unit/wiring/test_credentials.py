"""Credentials in files: where they are referred to, and what a renewed one changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ballast.adapters.auth.security import Security
from ballast.errors import AuthenticationFailed, Unavailable, UsageError
from ballast.settings.model import ClusterSettings, Settings
from ballast.wiring import daemon
from ballast.wiring.cluster import OpenCluster, open_cluster
from ballast.wiring.credentials import CredentialsWatch

LOGIN = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="ada" password="{}";'


def scram(config: str) -> Security:
    """A SCRAM login in one property."""
    return Security.from_properties(
        {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "SCRAM-SHA-512", "sasl.jaas.config": config}
    )


def test_a_property_refers_to_a_mounted_file_as_kafkas_config_providers_do(tmp_path: Path) -> None:
    """A whole property or a part of one, from a file's content or an entry of a properties file."""
    (tmp_path / "sasl.jaas.config").write_text(LOGIN.format("one") + "\n")
    (tmp_path / "password").write_text("two")
    (tmp_path / "more.properties").write_text("secret=three\n")
    found = {
        scram(f"${{directory:{tmp_path}:sasl.jaas.config}}"): "sasl.jaas.config",
        scram(LOGIN.format(f"${{directory:{tmp_path}:password}}")): "password",
        scram(LOGIN.format(f"${{file:{tmp_path}/more.properties:secret}}")): "more.properties",
    }
    assert [security.password for security in found] == ["one", "two", "three"]
    assert [security.files for security in found] == [{tmp_path / name} for name in found.values()]
    assert "two" not in repr(found)


@pytest.mark.parametrize("reference", ["directory:/nowhere:password", "file:/nowhere.properties:secret"])
def test_a_reference_to_nothing_is_refused(reference: str) -> None:
    """With the file's name; the text of the reference is never taken for a password."""
    with pytest.raises(UsageError, match="nowhere"):
        scram(LOGIN.format(f"${{{reference}}}"))


def test_a_property_of_something_else_is_not_followed(tmp_path: Path) -> None:
    """Its file may be another machine's: it ends no command, and no process waits for it to change."""
    (tmp_path / "password").write_text("two")
    others = ("foo", "schema.registry.ssl.keystore.location", "client.id")
    found = Security.from_properties(
        {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": LOGIN.format(f"${{directory:{tmp_path}:password}}"),
            **dict.fromkeys(others, "${file:/missing:x}"),
        }
    )
    assert [found.password] == ["two"]
    assert found.files == {tmp_path / "password"}


def test_every_file_that_properties_name_is_followed(tmp_path: Path) -> None:
    """Stores, certificates and keys, towards brokers and towards ZooKeeper."""
    names = (
        "ssl.truststore.location",
        "ssl.certificate.location",
        "ssl.key.location",
        "zookeeper.ssl.truststore.location",
    )
    properties = {name: str(tmp_path / name) for name in names}
    assert Security.from_properties({"security.protocol": "SSL", **properties}).files == {tmp_path / n for n in names}


def test_renewed_credentials_are_used_once_they_work(tmp_path: Path) -> None:
    """A mistake, a refusal and brokers that are away change nothing, and each is tried again at the next look."""
    password = tmp_path / "password"
    password.write_text("old")
    outcomes: list[Exception] = []

    def try_them(security: Security) -> None:
        assert security.password == "new"  # noqa: S105 — of this test
        if outcomes:
            raise outcomes.pop(0)

    watch = CredentialsWatch(lambda: scram(LOGIN.format(f"${{directory:{tmp_path}:password}}")), try_them)
    watch.check()
    password.touch()
    watch.check()
    assert not watch.renew
    password.unlink()
    with pytest.raises(UsageError):
        watch.check()
    password.write_text("new")
    outcomes += [AuthenticationFailed("No."), Unavailable("No broker answers.")]
    with pytest.raises(AuthenticationFailed):
        watch.check()
    watch.check()
    assert not watch.renew
    watch.check()
    assert watch.renew


def properties_of(folder: Path, name: str) -> str:
    """Client properties that refer to a mounted password."""
    login = LOGIN.format(f"${{directory:{folder}:{name}}}")
    return f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-512\nsasl.jaas.config={login}\n"


@pytest.mark.parametrize("renewed", ["password", "client.properties"])
def test_what_is_renewed_while_the_daemon_starts_is_noticed_at_the_first_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, renewed: str
) -> None:
    """A Secret that is swapped right after the cluster was opened with the one before."""
    properties = tmp_path / "client.properties"
    properties.write_text(properties_of(tmp_path, "password"))
    (tmp_path / "password").write_text("old")
    (tmp_path / "other").write_text("new")
    new = {"password": "new", "client.properties": properties_of(tmp_path, "other")}

    def open_and_renew(**arguments: Any) -> OpenCluster:
        opened = open_cluster(**arguments)
        (tmp_path / renewed).write_text(new[renewed])
        return opened

    monkeypatch.setattr(daemon, "open_cluster", open_and_renew)
    settings = Settings(cluster=ClusterSettings(bootstrap_server="127.0.0.1:1", command_config=properties))
    opened, watch = daemon.open_followed(settings)
    with opened:
        assert watch is not None
        assert watch.check().startswith("The credentials changed and cannot be tried now:")


def test_properties_that_change_while_their_files_are_looked_up_are_noticed(tmp_path: Path) -> None:
    """The files that are followed are those that the properties named before."""
    properties = tmp_path / "client.properties"
    properties.write_text("one")

    def load() -> Security:
        (tmp_path / "password").write_text("any")
        properties.write_text("two")
        return scram(LOGIN.format(f"${{directory:{tmp_path}:password}}"))

    watch = CredentialsWatch(load, lambda _: None, properties=properties)
    watch.check()
    assert watch.renew
