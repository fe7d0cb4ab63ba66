"""Regular expressions that people write."""

from __future__ import annotations

import warnings

import pytest

from ballast.core.planner import PlannerPolicy, Selection, TopicRule
from ballast.core.planner.cross_rack.policy import ClientRacks
from ballast.core.regex import mistake_in
from ballast.errors import UsageError

WRONG = ["(", "a{99999999999999999999}", "(?P<a>x)(?P<a>y)"]


@pytest.mark.parametrize("pattern", WRONG)
def test_what_is_none_is_refused_with_its_mistake(pattern: str) -> None:
    """Wherever one may be written; too large a number is a mistake like any other."""
    assert mistake_in(pattern)
    for refuses in (
        lambda: Selection(topics=pattern),
        lambda: TopicRule(topics=pattern, ignore_racks=True),
        lambda: ClientRacks(topics=pattern, producers={"a": 1.0}),
        lambda: PlannerPolicy(pinned_topics=pattern),
    ):
        with pytest.raises(UsageError, match="is not a regular expression"):
            refuses()


def test_what_python_may_read_in_another_way_one_day_is_no_warning() -> None:
    """A command's stderr is for what its user can act on."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert mistake_in("[[a]x]") is None
