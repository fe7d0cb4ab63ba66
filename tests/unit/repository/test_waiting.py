"""What tests wait with."""

from __future__ import annotations

import pytest
from tests.waiting import until


def test_the_answer_comes_back_and_a_wait_in_vain_tells_its_story() -> None:
    """The first answer that counts as true; otherwise what was waited for, how long, and what the log said."""
    answers = iter([None, "", "there"])
    assert until(lambda: next(answers), every_s=0) == "there"
    with pytest.raises(AssertionError, match=r"in vain for 0 s: the rain\nclear sky"):
        until(lambda: False, "the rain", within_s=0, story=lambda: "clear sky")
