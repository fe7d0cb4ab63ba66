"""What every librdkafka client is told besides its own business: where its lines go, and that a token can be had.

Left alone, librdkafka writes ``%4|…`` to stderr, past every log format.  With a Python logger its lines wait in the client
until it is polled, as its error events do with any client.  Whoever keeps a client must therefore poll it now and then, or
what it has to say piles up in memory while a broker is down.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

LOGGER: Final = "ballast.librdkafka"


def speaking(config: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration of a client that works by itself: it speaks to our logger when it is polled."""
    return {**_with_token(config), "logger": logging.getLogger(LOGGER)}


def silent(config: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration of a client that is only asked: it writes no lines, since its failures come back from the calls."""
    return {**_with_token(config), "log_level": 0}


def _with_token(config: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration; raises our own error now where there is no token to log in with.

    A client fetches its first token while it is made and renews it on a thread of its own, polled or not.  What goes wrong
    there is lost: it gives up after ten seconds with "token not set".  Asked here, the source keeps the token for the client.
    """
    fetch = config.get("oauth_cb")
    if fetch is not None:
        fetch("")
    return dict(config)
