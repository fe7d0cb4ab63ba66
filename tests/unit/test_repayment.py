"""What a person is told to run puts back exactly what stood before."""

from __future__ import annotations

from ballast.core.repayment import repay_commands
from ballast.core.throttles import Held, Setting

LIST = "leader.replication.throttled.replicas"
RATE = "leader.replication.throttled.rate"


def test_each_owed_setting_has_its_command() -> None:
    """With the value from before, in brackets where it is a list, or deleted where there was none."""
    ledger = {
        Setting("topic", "t", LIST): Held("0:1,1:2", frozenset({"2:3"})),
        Setting("broker", "1", RATE): Held("5000", frozenset({"100"})),
        Setting("broker", "2", RATE): Held(None, frozenset({"100"})),
        Setting("broker", "", RATE): Held(None, frozenset({"100"})),
        Setting("broker", "3", RATE): Held("7", frozenset()),
    }
    tool = "kafka-configs.sh --bootstrap-server a:1 --alter"
    assert repay_commands(ledger, "a:1") == [
        f"{tool} --entity-type brokers --entity-default --delete-config {RATE}",
        f"{tool} --entity-type brokers --entity-name 1 --add-config {RATE}=5000",
        f"{tool} --entity-type brokers --entity-name 2 --delete-config {RATE}",
        f"{tool} --entity-type topics --entity-name t --add-config '{LIST}=[0:1,1:2]'",
    ]
