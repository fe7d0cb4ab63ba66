"""Who has been left alone for how long: what brokers owe a cluster, they owe it only after a while of health."""

from __future__ import annotations

import math
import threading
import time


class Health:
    """Since when each broker, and the controller, has been well."""

    def __init__(self, brokers: tuple[int, ...], *, since_s: float | None = None) -> None:
        """All of them since this moment of the monotonic clock, or since now."""
        self._controller = time.monotonic() if since_s is None else since_s
        self._since = dict.fromkeys(brokers, self._controller)
        self._turn = threading.Lock()

    def fails(self, broker: int) -> None:
        """It is being hurt."""
        with self._turn:
            self._since[broker] = math.inf

    def returns(self, broker: int) -> None:
        """It has been left alone from now on."""
        with self._turn:
            self._since[broker] = time.monotonic()

    def controller_fails(self) -> None:
        """From now on it may be impossible to change metadata."""
        with self._turn:
            self._controller = math.inf

    def controller_returns(self) -> None:
        """Metadata can be changed again."""
        with self._turn:
            self._controller = time.monotonic()

    def well(self, for_s: float) -> set[int]:
        """The brokers that have been well for so long; none while the metadata could not be changed for so long."""
        before = time.monotonic() - for_s
        with self._turn:
            if self._controller > before:
                return set()
            return {broker for broker, since in self._since.items() if since <= before}
