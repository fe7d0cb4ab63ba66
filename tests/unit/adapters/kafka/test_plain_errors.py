"""What is told of the client library's errors."""

from __future__ import annotations

import errno
import os

import pytest
from kafka import errors

from ballast.adapters.kafka.kafka_python import code_name, plain


@pytest.mark.parametrize(
    "failure",
    [
        errors.KafkaConnectionError(f"{errno.ECONNREFUSED} ECONNREFUSED"),
        errors.NodeNotReadyError(3),
        errors.KafkaConnectionError("DNS failure"),
    ],
)
def test_no_class_of_the_library_is_told(failure: errors.KafkaError) -> None:
    """Nor an errno's name."""
    assert type(failure).__name__ not in plain(failure)
    assert "ECONN" not in plain(failure)


def test_an_errno_is_told_in_the_systems_words() -> None:
    """As every other program on the machine tells it."""
    refused = errors.KafkaConnectionError(f"{errno.ECONNREFUSED} ECONNREFUSED")
    assert plain(refused) == os.strerror(errno.ECONNREFUSED).lower()


def test_an_error_code_has_the_name_of_kafkas_errors() -> None:
    """Also where the client library calls it otherwise."""
    assert code_name(-1) == "UNKNOWN_SERVER_ERROR"
    assert code_name(56) == "KAFKA_STORAGE_ERROR"
