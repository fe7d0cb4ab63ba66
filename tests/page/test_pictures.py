"""The pictures of the documents are taken of the page as it is; ``BALLAST_PICTURES=1`` writes them to docs/pictures."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from tests.page.conftest import a_day, a_real_plan, a_view, uneven

from ballast.daemon.context.view import BalanceView, Board
from ballast.daemon.observing.figures import measure
from ballast.ports.journal import Request

pytestmark = pytest.mark.chromium

PICTURES = Path(__file__).resolve().parents[2] / "docs" / "pictures"
AT_MOST_BYTES = 200_000


@pytest.mark.parametrize(
    "shot",
    [
        ("page", 1180, 1180, "light", "#/"),
        ("page-telephone", 390, 844, "dark", "#/"),
        ("page-broker", 1180, 700, "light", "#/broker/1"),
    ],
)
def test_the_pictures_of_the_page(
    show: Callable[..., tuple[str, Board, list[Request]]],
    open_page: Callable[..., Page],
    tmp_path: Path,
    shot: tuple[str, int, int, str, str],
) -> None:
    """A cluster that got a sixth broker, and the plan for it; small enough for a repository."""
    name, width, height, scheme, address = shot
    view = a_view(
        mode="approve",
        figures=measure(uneven(), threshold_percent=10),
        balance=BalanceView(verdict="unbalanced", sentence="A plan is proposed below."),
        plans=(a_real_plan(),),
        series=a_day(),
    )
    url, _, _ = show(view, uneven)
    page = open_page(url, width=width, height=height, scheme=scheme)
    expect(page.locator("#brokers")).to_contain_text("zone-c")
    page.goto(url + address)
    expect(page.locator("#detail" if "broker" in address else "#overview")).to_be_visible()
    taken = page.screenshot(path=tmp_path / "page.png")
    assert struct.unpack(">II", taken[16:24]) == (width, height)
    assert len(taken) <= AT_MOST_BYTES
    if os.environ.get("BALLAST_PICTURES") == "1":
        (PICTURES / f"{name}.png").write_bytes(taken)
