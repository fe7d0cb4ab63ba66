"""Names of new topics: refused here as the controller would refuse them."""

from __future__ import annotations

import pytest

from ballast.core.cluster.topic_names import LONGEST, InvalidTopicName, check_new_topic


@pytest.mark.parametrize("name", ["a", "Orders.v2_x-1", "...", "__own", "x" * LONGEST])
def test_names_that_kafka_takes(name: str) -> None:
    """Letters, digits, dots, underscores and hyphens, up to the longest."""
    check_new_topic(name, ["other", "a-b"])


ADVICE = "Use letters and digits of ASCII, dots, underscores and hyphens."


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "A topic cannot be called ''."),
        (".", "A topic cannot be called '.'."),
        ("..", "A topic cannot be called '..'."),
        ("a b", f"A topic cannot be called 'a b'. {ADVICE}"),
        ("caf\u00e9", f"A topic cannot be called 'caf\u00e9'. {ADVICE}"),
        ("a\n", f"A topic cannot be called 'a\\n'. {ADVICE}"),
        ("a/b", f"A topic cannot be called 'a/b'. {ADVICE}"),
        ("x" * (LONGEST + 1), "A topic's name has 249 characters at most, and this one has 250."),
        (
            "a.b_c",
            (
                "Topic a.b_c would collide with a_b.c, a_b_c: Kafka takes dots and underscores for the same. "
                "Choose a name that differs in more than that."
            ),
        ),
    ],
)
def test_names_that_kafka_refuses(name: str, reason: str) -> None:
    """Each for its own reason and with what to do; names that differ in dots and underscores alone count as the same."""
    with pytest.raises(InvalidTopicName) as caught:
        check_new_topic(name, ["a_b_c", "a_b.c", "a-b-c"])
    assert str(caught.value) == reason
