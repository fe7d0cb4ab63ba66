"""Everything that says who we are is renewed under a daemon with a run in flight, on brokers that ask for all of it."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType
from tests.real.daemon_process import Daemon, start, until
from tests.waiting import becomes

from ballast.sandbox import Sandbox
from ballast.sandbox.security import ADMIN, EC_KEY, create_scram_users

pytestmark = [pytest.mark.kafka, pytest.mark.openssl, pytest.mark.timeout(900)]

PARTITIONS = 12
SLOW, FAST = 100_000, 20_000_000
"""Bytes a second: the run outlasts three rounds of restarts on a busy machine, and ends soon once a person raises its rates."""
NEW_PASSWORD = "renewed-by-the-operator"  # noqa: S105 — of this test


class Authority:
    """A certificate authority in a folder of its own."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder
        folder.mkdir()
        self._openssl(
            "req", "-x509", *EC_KEY, "-keyout", "ca.key", "-out", "ca.crt", "-subj", f"/CN={name}", "-days", "2"
        )

    @property
    def certificate(self) -> str:
        """Its own certificate."""
        return (self.folder / "ca.crt").read_text()

    def issue(self, name: str) -> tuple[str, str]:
        """A certificate for the loopback and its key."""
        self._openssl("req", *EC_KEY, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
        (self.folder / "names").write_text("subjectAltName=IP:127.0.0.1,DNS:localhost\n")
        self._openssl(
            "x509", "-req", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
            "-in", f"{name}.csr", "-out", f"{name}.crt", "-extfile", "names",
        )  # fmt: skip
        return (self.folder / f"{name}.crt").read_text(), (self.folder / f"{name}.key").read_text()

    def _openssl(self, *words: str) -> None:
        subprocess.run(["openssl", *words], cwd=self.folder, capture_output=True, timeout=60, check=True)


def mount(folder: Path, content: dict[str, str]) -> None:
    """Lay a Secret down as the kubelet does: links into a folder that is swapped as a whole."""
    folder.mkdir(exist_ok=True)
    data = folder / f"..{sum(1 for _ in folder.iterdir())}"
    data.mkdir()
    for name, text in content.items():
        (data / name).write_text(text)
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(f"..data/{name}")
    (folder / "..data_tmp").symlink_to(data.name)
    (folder / "..data_tmp").replace(folder / "..data")


def user_secret(authority: Authority, name: str, password: str) -> dict[str, str]:
    """What Strimzi writes for a KafkaUser, of both kinds in one."""
    certificate, key = authority.issue(name)
    login = (
        f'org.apache.kafka.common.security.scram.ScramLoginModule required username="{ADMIN}" password="{password}";'
    )
    return {"user.crt": certificate, "user.key": key, "password": password, "sasl.jaas.config": login}


def guard_brokers(sandbox: Sandbox, authority: Authority, trusted: str) -> None:
    """Give the brokers certificates of this authority, one broker after the other."""
    certificates = sandbox.folder / "certificates"
    certificate, key = authority.issue("broker")
    (certificates / "broker.pem").write_text(key + certificate)
    (certificates / "authority.pem").write_text(trusted)
    for broker in sandbox.broker_ids:
        sandbox.stop_broker(broker)
        sandbox.start_broker(broker)


def test_authority_certificate_key_and_password_are_renewed_in_mid_run(
    own_cluster: Callable[..., Sandbox], daemons: list[Daemon], tmp_path: Path
) -> None:
    """In the order in which Strimzi does it; the run goes on to its end, in the same process, and nothing secret is logged."""
    sandbox = own_cluster(
        brokers=4, racks=1, security="sasl-tls", broker_configs={"listener.name.client.ssl.client.auth": "required"}
    )
    plain = ",".join(f"127.0.0.1:{port}" for port in sandbox.ports.internals.values())
    old, new = (Authority(tmp_path / name, name) for name in ("old", "new"))
    guard_brokers(sandbox, old, old.certificate)
    fill(plain)
    user, ca = tmp_path / "strimzi-user", tmp_path / "strimzi-ca"
    old_password = sandbox.librdkafka_properties["sasl.password"]
    mount(user, user_secret(old, "client", old_password))
    mount(ca, {"ca.crt": old.certificate})
    daemon = start(
        "pod-0",
        tmp_path,
        sandbox.bootstrap_server,
        # Moves alone, in a run that is under way all the while.
        {
            "mode": "auto",
            "execution": {"throttle": SLOW},
            "actions": {
                "elections": {"mode": "observe"},
                "replica_list_changes": {"mode": "observe"},
                "moves": {"cool_down_s": 1, "per_day": 50},
            },
        },
        environment={
            "BALLAST_KAFKA_SECURITY_PROTOCOL": "SASL_SSL",
            "BALLAST_KAFKA_SSL_CERTIFICATE_LOCATION": f"{user}/user.crt",
            "BALLAST_KAFKA_SSL_KEY_LOCATION": f"{user}/user.key",
            "BALLAST_KAFKA_SSL_CA_LOCATION": f"{ca}/ca.crt",
            "BALLAST_KAFKA_SASL_MECHANISM": "SCRAM-SHA-512",
            "BALLAST_KAFKA_SASL_JAAS_CONFIG": f"${{directory:{user}:sasl.jaas.config}}",
        },
    )
    daemons.append(daemon)

    def renewals() -> int:
        return sum("made anew" in m for m in daemon.messages())

    def copying() -> str | None:
        run = daemon.status.get("run") or {}
        return run["id"] if (run.get("bytesLeft") or 0) < (run.get("bytesTotal") or 0) else None

    # One of which nothing is written down yet is not begun where the process ends.
    run = until("a run that copies", copying, daemons)

    both = old.certificate + new.certificate
    mount(ca, {"ca.crt": both})
    until("both authorities", lambda: renewals() == 1, daemons)
    until("the lock again", lambda: daemon.role == "active", daemons)
    guard_brokers(sandbox, new, both)
    until("the lock again", lambda: daemon.role == "active", daemons)

    # The password is changed where it is checked, and its file follows; a key that does not fit yet changes nothing.
    create_scram_users(plain, {ADMIN: NEW_PASSWORD})
    secret = user_secret(new, "client", NEW_PASSWORD)
    mount(user, secret | {"user.key": (tmp_path / "old" / "client.key").read_text()})
    until("the mistake", lambda: any("cannot be loaded" in m for m in daemon.messages()), daemons)
    assert daemon.process.poll() is None
    mount(user, secret)
    until("new credentials", lambda: renewals() == 2, daemons)
    # Whatever is mounted before the process is back is what it comes back with.
    until("the lock again", lambda: daemon.role == "active", daemons)
    mount(ca, {"ca.crt": new.certificate})
    until("the new authority alone", lambda: renewals() == 3, daemons)
    guard_brokers(sandbox, new, new.certificate)

    until("the lock again", lambda: daemon.role == "active", daemons)
    # The page shows a run that was taken up a moment after the role.
    until("the same run", lambda: (daemon.status.get("run") or {}).get("id") == run, daemons)
    raise_rates(plain, sandbox.broker_ids)
    until("the end of the run", lambda: any(m == f"Run {run} ended: done." for m in daemon.messages()), daemons, 400)
    becomes(lambda: daemon.metrics["ballast_throttles_to_restore"], 0)
    written = daemon.log.read_text()
    assert NEW_PASSWORD not in written
    assert old_password not in written
    assert not [m for m in daemon.messages() if m.startswith("A bug")]
    assert daemon.stop() == 0


def raise_rates(bootstrap_server: str, brokers: Iterable[int]) -> None:
    """As a person does who will not wait: the rates are theirs from then on."""
    rates = [
        ConfigEntry(f"{side}.replication.throttled.rate", str(FAST), incremental_operation=AlterConfigOpType.SET)
        for side in ("leader", "follower")
    ]
    admin = AdminClient({"bootstrap.servers": bootstrap_server})
    for broker in brokers:
        resource = ConfigResource(ResourceType.BROKER, str(broker), incremental_configs=rates)
        admin.incremental_alter_configs([resource])[resource].result(60)


def fill(bootstrap_server: str) -> None:
    """A topic whose replicas are all on three of four brokers, with data that takes a throttled run a while."""
    admin = AdminClient({"bootstrap.servers": bootstrap_server})
    crowded = [[1 + (p + k) % 3 for k in range(2)] for p in range(PARTITIONS)]
    admin.create_topics([NewTopic("orders", PARTITIONS, replica_assignment=crowded)])["orders"].result()
    producer = Producer({"bootstrap.servers": bootstrap_server, "linger.ms": 50})
    # Many times the megabyte of each replica that passes at once, before its throttle is felt, after each restart as well.
    for n in range(PARTITIONS * 250):
        producer.produce("orders", b"x" * 50_000, partition=n % PARTITIONS)
        producer.poll(0)
    assert producer.flush(240) == 0
