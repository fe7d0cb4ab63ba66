"""One retry policy: what is worth another try gets it, within a bound, and somebody hears of it."""

from __future__ import annotations

import pytest

from ballast.adapters.retry import RetryPolicy
from ballast.errors import AuthenticationFailed, BallastError, Unavailable


class Script:
    """A function that fails as scripted, then succeeds."""

    def __init__(self, *failures: BallastError) -> None:
        self.failures = list(failures)
        self.calls = 0

    def __call__(self) -> str:
        """Fail or succeed, as scripted."""
        self.calls += 1
        if self.failures:
            raise self.failures.pop(0)
        return "done"


def quick(total_s: float = 5.0, **options: object) -> RetryPolicy:
    """A policy whose pauses are too short to notice."""
    return RetryPolicy(total_s=total_s, first_wait_s=0.001, longest_wait_s=0.002, **options)  # type: ignore[arg-type]


def test_a_passing_failure_is_tried_again_and_told() -> None:
    """Each repeated failure reaches the observer, and the connection is recovered before each new try."""
    heard: list[tuple[str, int, str]] = []
    recovered: list[int] = []
    script = Script(Unavailable("away"), Unavailable("still away"))
    policy = quick(observer=lambda operation, attempt, failure, _: heard.append((operation, attempt, failure.message)))
    assert policy.call("metadata", script, recover=lambda: recovered.append(1)) == "done"
    assert heard == [("metadata", 1, "away"), ("metadata", 2, "still away")]
    assert len(recovered) == 2


@pytest.mark.parametrize("failure", [AuthenticationFailed("wrong password"), ValueError("a bug")])
def test_what_will_not_pass_is_not_tried_again(failure: BallastError) -> None:
    """A wrong password and a bug come out at once."""
    script = Script(failure)
    with pytest.raises(type(failure)):
        quick().call("metadata", script)
    assert script.calls == 1


def test_the_whole_is_bounded() -> None:
    """When time is up the last failure comes out; with no time at all there is one try."""
    script = Script(*[Unavailable(str(i)) for i in range(10_000)])
    with pytest.raises(Unavailable):
        quick(total_s=0.05).call("metadata", script)
    assert 1 < script.calls < 10_000
    once = Script(Unavailable("away"))
    with pytest.raises(Unavailable):
        quick(total_s=0).call("metadata", once)
    assert once.calls == 1
