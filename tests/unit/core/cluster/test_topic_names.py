"""Names of new topics: refused here as the controller would refuse them."""

from __future__ import annotations

import pytest

from ballast.core.cluster.topic_names import LONGEST, InvalidTopicName, check_new_topic


@pytest.mark.parametrize("name", ["a", "Orders.v2_x-1", "...", "__own", "x" * LONGEST])
def test_names_that_kafka_takes(name: str) -> None:
    """Letters, digits, dots, underscores and hyphens, up to the longest."""
    check_new_topic(name, ["other", "a-b"])


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "cannot be called ''"),
        (".", "cannot be called '.'"),
        ("..", "cannot be called '..'"),
        ("a b", "cannot be called 'a b'"),
        ("caf\u00e9", "cannot be called"),
        ("a\n", "cannot be called"),
        ("a/b", "cannot be called"),
        ("x" * (LONGEST + 1), "249 characters at most, and this one has 250"),
        ("a.b_c", "would collide with a_b.c, a_b_c"),
    ],
)
def test_names_that_kafka_refuses(name: str, reason: str) -> None:
    """Each for its own reason; names that differ in dots and underscores alone count as the same."""
    with pytest.raises(InvalidTopicName) as caught:
        check_new_topic(name, ["a_b_c", "a_b.c", "a-b-c"])
    assert reason in str(caught.value)
