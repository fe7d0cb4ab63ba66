"""Why a store cannot be read or written, in one sentence; delta-rs's own texts may carry signed addresses."""

from __future__ import annotations

import errno
import os
import shlex
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from deltalake.exceptions import DeltaError

from ballast.errors import Unavailable

_RIGHTS: Final = frozenset({errno.EACCES, errno.EPERM})
_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT})


@dataclass(frozen=True, slots=True)
class Denial:
    """What this process may not do in a table's folder, and what would let it."""

    message: str
    hint: str


@contextmanager
def store_failures(url: str, *, write: bool = False) -> Iterator[None]:
    """Turn failures at this table into ``Unavailable``; of a folder it says what this process may not do there, and why."""
    try:
        yield
    except (DeltaError, OSError) as failure:
        denied = denial(url, write=write)
        if denied is not None:
            raise Unavailable(denied.message, hint=denied.hint) from failure
        doing = "written" if write else "read"
        raise Unavailable(
            f"The table {plain(url)} could not be {doing} ({type(failure).__name__}).",
            hint="Check the store's address and credentials, and that the bucket exists.",
        ) from failure


def denial(url: str, *, write: bool = False) -> Denial | None:
    """What this process may not do in a table's folder; None where it may, and where the store is no folder.

    delta-rs tells of a folder that it may not read or make as of a table that does not exist.
    """
    if "://" in url:
        return None
    table = Path(url).absolute()
    for folder in (table, table / "_delta_log"):
        # Path.exists would raise where a folder above may not be searched.
        nearest = next(place for place in (folder, *folder.parents) if os.path.exists(place))  # noqa: PTH110
        for doing, attempt in (("read", os.listdir), ("write", _write))[: 1 + write]:
            try:
                attempt(nearest)
            except OSError as refused:
                reason = (refused.strerror or str(refused)).lower()
                return Denial(f"Cannot {doing} {folder}: {reason}.", _remedy(table.parent, refused.errno, write=write))
    return None


def _remedy(store: Path, code: int | None, *, write: bool) -> str:
    """What a person can do about a store that is a folder."""
    another = "or choose another store."
    if code == errno.EROFS:
        return f"Mount a volume that can be written at {store}, {another}"
    if code in _ROOM:
        return f"Make room in {store}, {another}"
    if write and code in _RIGHTS:
        user, group = os.geteuid(), os.getegid()
        folder = shlex.quote(str(store))
        make = "" if os.path.exists(store) else f"mkdir -p {folder} && "  # noqa: PTH110 — see above
        return f"Give it to user {user} and group {group}, with `{make}chown -R {user}:{group} {folder}`, {another}"
    return f"Run as a user who may, {another}"


def _write(folder: Path) -> None:
    with tempfile.TemporaryFile(dir=folder):
        pass


def plain(url: str) -> str:
    """The address without a user, a password or a query."""
    address = url.split("?", 1)[0]
    scheme, mark, rest = address.partition("://")
    return f"{scheme}{mark}{rest.rpartition('@')[2]}" if mark else address
