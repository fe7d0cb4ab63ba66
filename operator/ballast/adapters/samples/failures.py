"""Why a store cannot be read or written, in one sentence; delta-rs's own texts may carry signed addresses."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from deltalake.exceptions import DeltaError

from ballast.errors import Unavailable


@contextmanager
def store_failures(url: str, *, write: bool = False) -> Iterator[None]:
    """Turn failures at this table into ``Unavailable``; of a folder it says what this process may not do there, and why."""
    try:
        yield
    except (DeltaError, OSError) as failure:
        denied = obstacle(url, write=write)
        if denied is not None:
            raise Unavailable(f"{denied}.", hint="Run as a user who may, or choose another store.") from failure
        doing = "written" if write else "read"
        raise Unavailable(
            f"The table {plain(url)} could not be {doing} ({type(failure).__name__}).",
            hint="Check the store's address and credentials, and that the bucket exists.",
        ) from failure


def obstacle(url: str, *, write: bool = False) -> str | None:
    """What this process may not do in a table's folder; None where it may, and where the store is no folder.

    delta-rs tells of a folder that it may not read or make as of a table that does not exist.
    """
    if "://" in url:
        return None
    for folder in (Path(url).absolute(), Path(url).absolute() / "_delta_log"):
        # Path.exists would raise where a folder above may not be searched.
        nearest = next(place for place in (folder, *folder.parents) if os.path.exists(place))  # noqa: PTH110
        for doing, attempt in (("read", os.listdir), ("write", _write))[: 1 + write]:
            try:
                attempt(nearest)
            except OSError as refused:
                return f"Cannot {doing} {folder}: {(refused.strerror or str(refused)).lower()}"
    return None


def _write(folder: Path) -> None:
    with tempfile.TemporaryFile(dir=folder):
        pass


def plain(url: str) -> str:
    """The address without a user, a password or a query."""
    address = url.split("?", 1)[0]
    scheme, mark, rest = address.partition("://")
    return f"{scheme}{mark}{rest.rpartition('@')[2]}" if mark else address
