"""The options by which every command finds its cluster, and the one call that opens it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ballast.cli.option_types import TIME

if TYPE_CHECKING:
    from ballast.settings.model import Settings
    from ballast.wiring.cluster import OpenCluster

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """What the person said about the cluster; turned into connections only when a command needs them."""

    bootstrap_server: str | None
    command_config: Path | None
    zookeeper: str | None
    config: Path | None
    timeout_s: float

    def open(self) -> OpenCluster:
        """Connect; raises ``UsageError`` when the options contradict each other or name no cluster.

        What is said explicitly wins; where no option names a cluster, the running sandbox is meant.
        """
        from ballast.wiring.cluster import open_cluster

        if self.bootstrap_server is None and self.zookeeper is None and self.config is None:
            from ballast.sandbox import running

            sandbox = running()
            if sandbox is not None:
                return open_cluster(
                    bootstrap_server=sandbox.bootstrap_server,
                    command_config=self.command_config,
                    zookeeper=sandbox.zookeeper,
                    timeout_s=self.timeout_s,
                    properties=sandbox.client_properties,
                )
        return open_cluster(
            bootstrap_server=self.bootstrap_server,
            command_config=self.command_config,
            zookeeper=self.zookeeper,
            config=self.config,
            timeout_s=self.timeout_s,
        )

    def settings(self) -> Settings:
        """The settings file and the environment; the defaults where there is neither."""
        import os

        from ballast.settings import load_settings

        return load_settings(self.config, os.environ)

    def imbalance_percentage(self) -> float | None:
        """The leader imbalance that the settings tolerate; None where they say nothing."""
        return self.settings().leaders.imbalance_percentage


def cluster_options(command: F) -> F:
    """Add the connection options and pass them on as one ``cluster`` argument."""

    @functools.wraps(command)
    def call(
        *args: Any,
        bootstrap_server: str | None,
        command_config: Path | None,
        zookeeper: str | None,
        config: Path | None,
        timeout: float,
        **kwargs: Any,
    ) -> Any:
        options = ClusterOptions(bootstrap_server, command_config, zookeeper, config, timeout)
        return command(*args, cluster=options, **kwargs)

    wrapped: Any = call
    file = click.Path(exists=True, dir_okay=False, path_type=Path)
    for option in (
        click.option("--timeout", type=TIME, default="30s", show_default=True, help="Request timeout."),
        click.option("--config", type=file, envvar="BALLAST_CONFIG", help="Ballast's settings file (YAML)."),
        click.option(
            "--zookeeper",
            envvar="BALLAST_ZOOKEEPER",
            metavar="HOST:PORT[/CHROOT]",
            help="For clusters that still have ZooKeeper: finds their brokers as well.",
        ),
        click.option(
            "--command-config",
            type=file,
            envvar="BALLAST_COMMAND_CONFIG",
            help="Client properties in Kafka's own form (security).",
        ),
        click.option(
            "--bootstrap-server",
            "-b",
            envvar="BALLAST_BOOTSTRAP_SERVER",
            metavar="HOST:PORT,…",
            help="The cluster; without it, the brokers in ZooKeeper where --zookeeper is given, else the running sandbox.",
        ),
    ):
        wrapped = option(wrapped)
    return wrapped  # type: ignore[no-any-return]
