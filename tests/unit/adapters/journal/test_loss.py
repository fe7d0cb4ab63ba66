"""When a topic counts as lost: by its id, by its end, and only when it stays so."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import confluent_kafka as ck
import pytest

from ballast.adapters.journal import loss as journal_loss
from ballast.adapters.journal.loss import BELIEVED_S, NO_ID, TopicMark
from ballast.errors import JournalLost


class Brokers:
    """Answer for one topic: its id (None: there is none) and its end (None: its leader does not say)."""

    def __init__(self, *answers: tuple[str | None, int | None]) -> None:
        self._answers = list(answers)

    def describe_topics(self, topics: Any, **_: object) -> dict[str, Future[Any]]:
        """The next id; the last one is told for ever."""
        answer: Future[Any] = Future()
        found = self._answers[0][0]
        if found is None:
            answer.set_exception(ck.KafkaException(ck.KafkaError(ck.KafkaError.UNKNOWN_TOPIC_OR_PART)))
            self._next()
        else:
            answer.set_result(SimpleNamespace(topic_id=found))
        return {"t": answer}

    def list_offsets(self, places: dict[Any, Any], **_: object) -> dict[Any, Future[Any]]:
        """The next end."""
        answer: Future[Any] = Future()
        end = self._answers[0][1]
        if end is None:
            answer.set_exception(ck.KafkaException(ck.KafkaError(ck.KafkaError.LEADER_NOT_AVAILABLE)))
        else:
            answer.set_result(SimpleNamespace(offset=end))
        self._next()
        return dict.fromkeys(places, answer)

    def _next(self) -> None:
        if len(self._answers) > 1:
            self._answers.pop(0)


@pytest.fixture(autouse=True)
def wait(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """A second look follows at once; lets time pass."""
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    monkeypatch.setattr(journal_loss, "time", SimpleNamespace(monotonic=lambda: now[0], sleep=sleep))
    return sleep


def looked(mark: TopicMark, *answers: tuple[str | None, int | None]) -> str | None:
    """How it is lost; None where it is not."""
    try:
        mark.check_not_lost(Brokers(*answers), now=True)
    except JournalLost as lost:
        return lost.how
    return None


def known(id_: str, end: int) -> TopicMark:
    """A topic that was seen so."""
    mark = TopicMark("t")
    assert looked(mark, (id_, end)) is None
    mark.note_read(end)
    return mark


@pytest.mark.parametrize(
    ("answers", "how"),
    [
        ([("a", 9)], None),
        ([("a", 12)], None),
        ([(None, 0)], "deleted"),
        ([("b", 50)], "recreated"),
        ([("a", 8)], "truncated"),
        ([(None, 0), ("a", 9)], None),
        ([("a", 3), ("a", 3), ("a", 9)], None),
    ],
)
def test_a_loss_is_believed_when_it_stays(answers: list[tuple[str | None, int]], how: str | None) -> None:
    """A broker that has just started may not know the topic, or not its end."""
    assert looked(known("a", 9), *answers) == how


@pytest.mark.parametrize("later", ["a", NO_ID])
def test_what_was_never_seen_cannot_be_lost(wait: Callable[[float], None], later: str) -> None:
    """A process that has just made the topic, or come while another makes it again: brokers hear of it seconds later."""
    mark = TopicMark("t")
    assert looked(mark, (None, None)) is None
    wait(BELIEVED_S)
    assert looked(mark, (None, None), (later, 0)) is None
    assert looked(mark, (later, 0)) is None
    assert looked(mark, (None, None)) == "deleted"


def test_without_topic_ids_the_end_tells() -> None:
    """On brokers before 2.8."""
    assert looked(known(NO_ID, 9), (NO_ID, 2)) == "truncated"
    assert looked(known(NO_ID, 9), (NO_ID, 9)) is None


def test_a_record_of_ours_where_another_one_stood_tells_too() -> None:
    """The broker gives its offset with the acknowledgement."""
    mark = known("a", 9)
    mark.note_written(9)
    with pytest.raises(JournalLost):
        mark.note_written(5)


def test_a_leader_that_does_not_say_ends_no_suspicion_of_a_cut(wait: Callable[[float], None]) -> None:
    """An end that was too low is believed as soon as it shows again; one that is as it should be ends the suspicion."""
    for answers, how in (
        ([("a", 4), ("a", None)], "truncated"),
        ([("a", 4), ("a", 9)], None),
    ):
        mark = known("a", 9)
        assert looked(mark, *answers) is None
        wait(BELIEVED_S)
        assert looked(mark, ("a", 4), ("a", 9)) == how


def test_a_leader_that_does_not_say_ends_the_suspicion_that_the_topic_was_deleted(
    wait: Callable[[float], None],
) -> None:
    """The topic is there, with its own id: a broker that has just started had not heard of it."""
    mark = known("a", 9)
    assert looked(mark, (None, 0), ("a", None)) is None
    wait(BELIEVED_S)
    assert looked(mark, (None, 0), ("a", 9)) is None
