"""What a journal in a file suffers that a topic does not, and the form of what is written."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ballast.adapters.journal.file import FileJournal
from ballast.errors import Fenced, JournalLost, Unavailable, UsageError
from ballast.ports.journal import Corrupt, Holder, OtherVersion, Record
from ballast.ports.journal_codec import JournalView, decode_value, encode_record, encode_value
from ballast.wiring.journal import open_journal, this_process


def holder(who: str) -> Holder:
    """A holder with a long lease."""
    return Holder(who, who, lease_s=60)


def test_a_file_journal_survives_what_files_suffer(tmp_path: Path) -> None:
    """A torn last line does not count; a damaged middle is refused; compaction loses nothing; a bad path is a sentence."""
    path = tmp_path / "journal"
    journal = FileJournal(path, compact_from_bytes=20_000)
    journal.acquire(holder("ana"))
    for i in range(300):
        journal.append([Record(f"k/{i % 7}", {"n": i, "filler": "x" * 100})])
    assert path.stat().st_size < 60_000, "the file is kept short"
    expected = {f"k/{i % 7}": i for i in range(300)}
    torn = path.read_bytes()
    path.write_bytes(torn + b'0123456789abcdef [["record/k/1",')
    reader = FileJournal(path)
    assert {r.key: (r.value or {})["n"] for r in reader.read()} == expected
    journal.append([Record("k/8", {"n": 8})])
    assert {r.key: (r.value or {})["n"] for r in FileJournal(path).read()} == {**expected, "k/8": 8}
    whole = path.read_bytes()
    path.write_bytes(whole[:50] + b"!" + whole[51:])
    with pytest.raises(Corrupt, match="damaged at byte 0"):
        FileJournal(path).read()
    with pytest.raises(UsageError, match="cannot be used"):
        FileJournal(tmp_path / "no" / "such" / "folder").acquire(holder("ana"))
    with pytest.raises(UsageError, match="say file:PATH"):
        open_journal({}, journal="somewhere")


def test_a_newer_version_is_refused_and_never_guessed() -> None:
    """What a later Ballast wrote stops this one; what no Ballast wrote is called corrupt."""
    newer, head = json.dumps({"version": 2, "value": {}}).encode(), "record/k"
    for read, entry in ((lambda: decode_value("k", newer), "k"), (JournalView([(head, newer)]).records, head)):
        with pytest.raises(OtherVersion) as refused:
            read()
        assert refused.value.values == {"record": entry, "version": 2, "reads": 1}
    for data in (b"not json", b"[]", b"{}", b'{"version": "x"}'):
        with pytest.raises(Corrupt):
            decode_value("k", data)


def test_pieces_that_do_not_fit_together_are_refused() -> None:
    """A record of which a piece is gone is not half a record."""
    entries = list(encode_record(Record("k", {"text": "x" * 1000}), piece_bytes=100))
    assert len(entries) > 10
    whole = JournalView(entries)
    assert whole.records() == (Record("k", {"text": "x" * 1000}),)
    assert whole.pieces("k") == len(entries) - 1
    with pytest.raises(Corrupt, match="incomplete"):
        JournalView(entries[1:]).records()


def test_a_value_may_look_like_our_own_envelope() -> None:
    """Keys named like the codec's are the caller's."""
    value = {"pieces": 3, "sha256": "x", "version": 9, "value": {"value": 1}}
    assert JournalView([("record/k", encode_value(value))]).records() == (Record("k", value),)


def test_a_process_names_itself_so_that_a_person_finds_it() -> None:
    """User, host and command in the description; the id differs for every start."""
    one, two = this_process("ballast apply"), this_process("ballast apply")
    assert one.id != two.id
    assert one.description.endswith("(ballast apply)")
    assert "@" in one.description


def test_the_file_is_its_owners_alone(tmp_path: Path) -> None:
    """Whatever the umask allows: plans name topics."""
    before = os.umask(0)
    try:
        journal = FileJournal(tmp_path / "journal", compact_from_bytes=1_000)
        journal.acquire(holder("ana"))
        for i in range(60):
            journal.append([Record("k", {"n": i, "filler": "x" * 100})])
    finally:
        os.umask(before)
    assert {p.stat().st_mode & 0o777 for p in tmp_path.iterdir()} == {0o600}


AT_ITS_LIMIT = """
import resource, signal, sys
from pathlib import Path
from ballast.adapters.journal.file import FileJournal
from ballast.errors import Unavailable
from ballast.ports.journal import Holder, Record

path = Path(sys.argv[1])
journal = FileJournal(path)
journal.acquire(Holder("ana", "ana", lease_s=60))
journal.append([Record("k", {"n": 1})])
whole = path.read_bytes()
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (len(whole) + 10, hard))
try:
    journal.append([Record("k", {"n": 2})])
except Unavailable as failure:
    print(failure.message)
assert path.read_bytes() == whole, (path.stat().st_size, len(whole))
assert [r.value for r in FileJournal(path).read()] == [{"n": 1}]
resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
journal.append([Record("k", {"n": 3})])
assert [r.value for r in FileJournal(path).read()] == [{"n": 3}]
"""
"""A process whose files may grow by ten bytes more: the kernel writes a part of the line, then refuses."""


def test_a_file_that_cannot_grow_is_a_sentence_and_loses_nothing(tmp_path: Path) -> None:
    """No part of the line stays, and what is written after there is room again follows what was there."""
    command = [sys.executable, "-c", AT_ITS_LIMIT, str(tmp_path / "journal")]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 0, ended.stderr
    assert "cannot be written: File too large." in ended.stdout


def kept(path: Path) -> FileJournal:
    """A journal that is held and has something in it."""
    journal = FileJournal(path)
    journal.acquire(holder("ana"))
    journal.append([Record("run/1", {"n": 1}), Record("run/2", {"n": 2})])
    return journal


def there(path: Path) -> list[str]:
    """What a process that opens it now finds."""
    return [r.key for r in FileJournal(path).read()]


def empty(path: Path) -> None:
    """Same file, same inode, nothing in it: as where a file system gives the inode of a deleted file to the next one."""
    os.truncate(path, 0)


@pytest.mark.parametrize("lose", [Path.unlink, empty])
def test_a_file_that_is_gone_is_named_and_made_again(tmp_path: Path, lose: Callable[[Path], None]) -> None:
    """Whatever inode stands there now, and also where the first write fails."""
    path = tmp_path / "journal"
    journal = kept(path)
    lose(path)
    with pytest.raises(JournalLost):
        journal.append([Record("b", {})])
    full = pytest.MonkeyPatch()
    with full.context() as patch:
        patch.setattr(os, "fsync", failing)
        with pytest.raises(Unavailable):
            journal.remake()
    with pytest.raises(JournalLost):
        journal.append([Record("b", {})])
    journal.remake()
    journal.append([Record("b", {})])
    assert there(path) == ["run/1", "run/2", "b"]


def failing(_: int) -> None:
    """A full disk."""
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_the_holder_of_a_lost_file_makes_it_again_when_asked_to_take_the_lock(tmp_path: Path) -> None:
    """No other process remembers what stood in it."""
    path = tmp_path / "journal"
    journal = kept(path)
    path.unlink()
    before = journal.term
    journal.acquire(holder("ana"))
    journal.append([])
    assert there(path) == ["run/1", "run/2"]
    assert journal.term == before + 1


def test_another_ones_lock_in_the_new_file_is_left_to_them(tmp_path: Path) -> None:
    """Its epoch is as high as the one that is lost."""
    path = tmp_path / "journal"
    journal = kept(path)
    path.unlink()
    other = FileJournal(path)
    other.acquire(holder("ben"))
    with pytest.raises(JournalLost):
        journal.append([Record("b", {})])
    with pytest.raises(Fenced):
        journal.remake()
    other.append([Record("run/9", {})])
    assert there(path) == ["run/9"]


@pytest.mark.parametrize("lose", [Path.unlink, empty])
def test_a_file_that_another_process_made_is_not_removed(tmp_path: Path, lose: Callable[[Path], None]) -> None:
    """Who wants to remove the one that is gone learns of the loss; the other one's records stay."""
    path = tmp_path / "journal"
    journal = kept(path)
    lose(path)
    other = FileJournal(path)
    other.acquire(holder("ben"))
    other.append([Record("run/9", {})])
    with pytest.raises(JournalLost):
        journal.remove()
    assert there(path) == ["run/9"]
