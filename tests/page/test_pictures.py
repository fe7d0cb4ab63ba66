"""The pictures of the documents are taken of the page as it is; ``BALLAST_PICTURES=1`` writes them to docs/pictures."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from tests.page.conftest import a_plan, a_view, figures

from ballast.daemon.view import Board, LevelView, View
from ballast.ports.journal import Request

pytestmark = pytest.mark.chromium

PICTURES = Path(__file__).resolve().parents[2] / "docs" / "pictures"
AT_MOST_BYTES = 200_000


def test_the_picture_of_the_page(
    show: Callable[[View], tuple[str, Board, list[Request]]], open_page: Callable[..., Page], tmp_path: Path
) -> None:
    """A cluster that is out of balance, and the plan for it; small enough for a repository."""
    uneven = LevelView(verdict="uneven", sentence="A plan would level it.")
    url, _, _ = show(a_view(figures=figures(displaced=True), level=uneven, plans=(a_plan(),)))
    page = open_page(url, width=1180, height=820)
    expect(page.locator("#brokers")).to_contain_text("zone-c")
    taken = page.screenshot(path=tmp_path / "page.png")
    assert struct.unpack(">II", taken[16:24]) == (1180, 820)
    assert len(taken) <= AT_MOST_BYTES
    if os.environ.get("BALLAST_PICTURES") == "1":
        (PICTURES / "page.png").write_bytes(taken)
