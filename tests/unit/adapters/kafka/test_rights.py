"""Which right a question takes is part of the question, whatever its words are."""

from __future__ import annotations

import pytest

from ballast.adapters.kafka import rights
from ballast.adapters.kafka.rights import Question, config_change_of, configs_of, explain, explain_denial
from ballast.ports.cluster import ConfigResource


@pytest.mark.parametrize(
    ("asked", "right"),
    [
        (configs_of(ConfigResource("broker", "1")), "DescribeConfigs on the cluster"),
        (configs_of(ConfigResource("topic", "orders")), "DescribeConfigs on the topic"),
        (config_change_of(ConfigResource("broker", "")), "AlterConfigs on the cluster"),
        (config_change_of(ConfigResource("topic", "orders")), "AlterConfigs on the topic"),
        *((found, found.right) for found in vars(rights).values() if isinstance(found, Question)),
    ],
)
def test_a_denial_names_the_question_and_the_right(asked: Question, right: str) -> None:
    """In the sentence of a failure, and beside a broker's own message."""
    assert explain_denial(asked)[0] == f"Not authorized to ask for {asked}: it requires {right}."
    assert explain("CLUSTER_AUTHORIZATION_FAILED", "No.", asked) == f"No; {asked} requires {right}"
    assert explain("CLUSTER_AUTHORIZATION_FAILED", None, asked) == f"{asked} requires {right}"


def test_nothing_is_added_where_no_single_right_is_missing() -> None:
    """Another failure, and a question that takes none of its own."""
    assert explain("POLICY_VIOLATION", "No.", rights.REASSIGNMENT) == "No."
    assert explain("POLICY_VIOLATION", None, rights.REASSIGNMENT) == ""
    assert explain("TOPIC_AUTHORIZATION_FAILED", "No.", "partitions") == "No."
    assert explain_denial("topics of another kind")[0] == "Not authorized to ask for topics of another kind."
