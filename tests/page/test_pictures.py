"""The pictures of the documents are taken of the page as it is; ``BALLAST_PICTURES=1`` writes them to docs/pictures.

Beside each lies a digest of the words that the page had and of its style sheet: a page that has others by now fails here, and its
picture is to be taken anew, and looked at.  All of it happens at one moment, so that every age and date is always the same.
"""

from __future__ import annotations

import hashlib
import os
import re
import struct
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Page, expect
from tests.page import conftest
from tests.page.conftest import a_day, a_real_plan, a_view, uneven

from ballast.daemon.acting.permission import Situation, permissions
from ballast.daemon.context.figures import measure, sentence
from ballast.daemon.context.view import BalanceView, Board, CheckReport, Role
from ballast.daemon.policy import DaemonPolicy, Mode
from ballast.ports.journal import Request

ROOT: Final = Path(__file__).resolve().parents[2]
PICTURES: Final = ROOT / "docs" / "pictures"
AT_MOST_BYTES: Final = 200_000
MOMENT_MS: Final = 1_795_262_400_000
"""Noon of 21 November 2026, UTC."""
SHOTS: Final = (
    ("page", 1180, 1250, "light", "#/"),
    ("page-telephone", 390, 844, "dark", "#/"),
    ("page-broker", 1180, 700, "light", "#/broker/1"),
)


class StoppedClock:
    """Always that moment."""

    def now_ms(self) -> int:
        """The moment."""
        return MOMENT_MS

    def monotonic_s(self) -> float:
        """Likewise."""
        return MOMENT_MS / 1000

    def sleep(self, seconds: float) -> None:
        """Time does not pass."""


@pytest.mark.chromium
@pytest.mark.parametrize("shot", SHOTS, ids=lambda shot: shot[0])
def test_the_pictures_of_the_page(
    show: Callable[..., tuple[str, Board, list[Request]]],
    open_page: Callable[..., Page],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    shot: tuple[str, int, int, str, str],
) -> None:
    """A cluster that got a sixth broker, and the plan for it, in the product's own words; small enough for a repository."""
    name, width, height, scheme, address = shot
    monkeypatch.setattr(conftest, "now_ms", lambda: MOMENT_MS)
    plan, figures = a_real_plan(), measure(uneven(), threshold_percent=10)
    said = {
        "observe": sentence(figures),
        "leaders": "Preferred leaders OK: the worst broker does not lead 0.0 % of the partitions whose preferred leader it is.",
        "repair": "Nothing needs repair: every broker is alive and replica placement is rack-aware.",
        "balance": f"Waiting for approval of {plan.id}: {', '.join(plan.changes)}.",
    }
    view = a_view(
        mode="approve",
        figures=figures,
        balance=BalanceView(verdict="unbalanced", detail=f"Proposed plan: {', '.join(plan.changes)}."),
        permissions=permissions(
            DaemonPolicy(mode=Mode.APPROVE), Situation(now_ms=MOMENT_MS, role=Role.ACTIVE, reading_age_s=3)
        ),
        checks={n: CheckReport(detail=text, at_ms=MOMENT_MS - 3000, duration_s=0.1) for n, text in said.items()},
        plans=(plan,),
        series=a_day(),
    )
    url, _, _ = show(view, uneven, clock=StoppedClock())
    page = open_page(url, width=width, height=height, scheme=scheme, at_ms=MOMENT_MS)
    expect(page.locator("#brokers")).to_contain_text("zone-c")
    expect(page.locator("#history")).to_contain_text("1119-0400-bc")
    page.goto(url + address)
    expect(page.locator("#detail" if "broker" in address else "#overview")).to_be_visible()
    if "broker" in address:
        expect(page.locator("#detail")).to_contain_text("Broker 1")
    taken = page.screenshot(path=tmp_path / "page.png")
    assert struct.unpack(">II", taken[16:24]) == (width, height)
    assert len(taken) <= AT_MOST_BYTES
    style = (resources.files("ballast.daemon.web") / "static" / "page.css").read_text()
    shown = hashlib.sha256(f"{page.locator('body').inner_text()}\n{style}".encode()).hexdigest()
    if os.environ.get("BALLAST_PICTURES") == "1":
        (PICTURES / f"{name}.png").write_bytes(taken)
        (PICTURES / f"{name}.sha256").write_text(f"{shown}\n")
    kept = (PICTURES / f"{name}.sha256").read_text().strip()
    assert shown == kept, "the picture is of an older page: BALLAST_PICTURES=1 takes it anew; then look at it"


def test_every_picture_of_the_page_is_shown_in_a_document() -> None:
    """And has its digest; a picture that no page shows grows old unseen."""
    documents = "".join(page.read_text() for page in (ROOT / "docs").glob("*.md"))
    taken = {f"{name}.png" for name, *_ in SHOTS}
    assert {picture.name for picture in PICTURES.glob("*.png")} == taken
    assert {digest.stem for digest in PICTURES.glob("*.sha256")} == {name for name, *_ in SHOTS}
    assert taken <= set(re.findall(r"\]\(pictures/([\w.-]+)\)", documents))
