"""The page as a person meets it: every state, every action, on every screen, without a mouse."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from tests.page.conftest import (
    TOKEN,
    a_day,
    a_plan,
    a_real_plan,
    a_run,
    a_state,
    a_view,
    an_outage,
    figures,
    now_ms,
    permission,
    uneven,
)

from ballast.core.cluster import Gap
from ballast.core.cluster.drain import Drain
from ballast.core.plan import Move, Plan, Purpose
from ballast.core.planner import Decommission
from ballast.daemon.acting.plan_views import plan_view
from ballast.daemon.acting.proposal import Proposal
from ballast.daemon.context.figures import Figures, LogDirError, measure
from ballast.daemon.context.view import (
    NOT_READ,
    Absence,
    Answer,
    BalanceView,
    Board,
    CheckReport,
    LockView,
    Note,
    Other,
    Permission,
    PlanReason,
    Role,
    View,
)
from ballast.daemon.policy import ActionKind, DaemonPolicy, Mode, WebPolicy
from ballast.executor.journal.pause import Pause
from ballast.executor.journal.records import SkippedRun
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.ports.journal import Request

pytestmark = pytest.mark.chromium

VIEWER = "a-token-of-a-viewer"
Show = Callable[..., tuple[str, Board, list[Request]]]
Open = Callable[..., Page]


def headline(page: Page) -> str:
    """The most important thing."""
    expect(page.locator("#verdict .headline")).not_to_have_text("Reading the cluster…")
    return page.locator("#verdict .headline").inner_text()


def first_broker(**changes: Any) -> Figures:
    """A cluster that is well but for its first broker."""
    base = figures()
    first, *rest = base.brokers
    return replace(base, brokers=(replace(first, **changes), *rest))


@pytest.mark.parametrize(
    ("changes", "expected", "tone"),
    [
        ({}, "Cluster is balanced", "good"),
        ({"figures": figures(displaced=True)}, "Leaders of broker 2 are imbalanced", "warn"),
        ({"figures": figures(down=3)}, "Broker 3 is down", "bad"),
        ({"figures": first_broker(reachable=False)}, "Broker 1 does not answer", "bad"),
        (
            {"figures": first_broker(log_dir_errors=(LogDirError("/d1", "KAFKA_STORAGE_ERROR"),))},
            "Log dir of broker 1 has failed",
            "bad",
        ),
        (
            {"figures": first_broker(log_dir_errors=(LogDirError("/d1", "X"),))},
            "Log dir of broker 1 reports an error",
            "bad",
        ),
        (
            {
                "figures": first_broker(
                    log_dir_errors=(LogDirError("/d1", "KAFKA_STORAGE_ERROR"), LogDirError("/d2", "X"))
                )
            },
            "2 log dirs of broker 1 report errors",
            "bad",
        ),
        ({"balance": BalanceView(verdict="unbalanced", detail="Proposed plan.")}, "Cluster is unbalanced", "warn"),
        ({"run": a_run()}, "Moving 3 partitions", "none"),
        ({"figures": None, "outage": an_outage()}, "Cluster unreachable since 21 Nov 2026, 12:00", "bad"),
        ({"outage": an_outage()}, "Cluster unreachable since 21 Nov 2026, 12:00", "bad"),
    ],
)
def test_the_headline_says_what_matters_most(
    show: Show, open_page: Open, changes: dict[str, Any], expected: str, tone: str
) -> None:
    """One sentence, and a tone that is not told by colour alone."""
    url, _, _ = show(a_view(**changes))
    page = open_page(url)
    assert headline(page) == expected
    assert page.locator("#verdict").get_attribute("data-tone") == tone


def test_before_the_first_reading_it_says_so(show: Show, open_page: Open) -> None:
    """Loading is a state with words, not an empty page."""
    url, board, _ = show(a_view(figures=None))
    page = open_page(url)
    expect(page.locator("#verdict .headline")).to_have_text("Reading the cluster…")
    expect(page.locator("#brokers")).to_contain_text("No data yet")
    board.publish(figures=figures())
    assert headline(page) == "Cluster is balanced"


def test_it_updates_by_itself(show: Show, open_page: Open) -> None:
    """What changes in the daemon changes on the page, and focus stays where it was."""
    url, board, _ = show(a_view())
    page = open_page(url)
    assert headline(page) == "Cluster is balanced"
    page.get_by_role("button", name=re.compile("^disk")).click()
    board.publish(figures=figures(down=3))
    expect(page.locator("#verdict .headline")).to_have_text("Broker 3 is down")
    expect(page.get_by_role("button", name=re.compile("^disk"))).to_be_focused()
    expect(page.locator(".broker[data-broker='3']")).to_contain_text("down")


def test_a_broker_is_seen_draining_drained_and_gone(show: Show, open_page: Open) -> None:
    """Each is a word at its bar, and a broker that was emptied and stopped is no loss in the headline or the tiles."""
    base = figures()
    first, *rest = base.brokers

    def seen(**changes: Any) -> View:
        return a_view(figures=replace(base, brokers=(replace(first, controller=False, **changes), *rest)))

    url, board, _ = show(seen(draining=True))
    page = open_page(url)
    mark = page.locator(".broker[data-broker='1'] .note")
    expect(mark).to_have_text("draining")
    board.publish(figures=seen(draining=True, replicas=0).figures)
    expect(mark).to_have_text("draining, empty")
    board.publish(figures=seen(alive=False, replicas=0).figures)
    expect(mark).to_have_text("down, empty")
    assert headline(page) == "Cluster is balanced"
    expect(page.locator("#tiles")).to_contain_text("5 / 5")


def test_an_old_reading_is_shown_as_old(show: Show, open_page: Open) -> None:
    """Stale figures stay on the page with the reason why they are old."""
    url, board, _ = show(a_view(figures=figures(age_s=300)))
    page = open_page(url)
    expect(page.locator("body")).to_have_attribute("data-state", "stale")
    board.publish(outage=an_outage())
    expect(page.locator("body")).to_have_attribute("data-state", "unreachable")
    expect(page.locator("#verdict .detail")).to_contain_text("No broker answers.")
    expect(page.locator("#fresh")).to_contain_text("read 5 min")


def test_bars_follow_the_chosen_resource(show: Show, open_page: Open) -> None:
    """Each tab shows its own figures against its own band."""
    url, _, _ = show(a_view(figures=figures(displaced=True)))
    page = open_page(url)
    # What is out of range opens by itself, on one scale with its range drawn.
    expect(page.locator("#resources [aria-pressed=true]")).to_have_attribute("data-resource", "leader imbalance")
    expect(page.locator(".broker[data-broker='2'] .value")).to_contain_text("80.0 %")
    assert page.locator(".broker .band").count() == 6
    page.get_by_role("button", name=re.compile("^replicas")).click()
    expect(page.locator("#legend")).to_contain_text("±10.0 %")
    expect(page.locator(".broker[data-broker='2'] .value")).to_have_text("30 · +0.0 %")
    assert page.locator(".rack").count() == 3


def test_a_run_shows_how_far_it_is(show: Show, open_page: Open) -> None:
    """Progress, rate, time left, throttle and the moves in flight."""
    url, board, _ = show(a_view(run=a_run()))
    page = open_page(url)
    now = page.locator("#now")
    expect(now).to_contain_text("time left 6 min 25 s")
    expect(now).to_contain_text("rate 49.6 MiB/s")
    expect(now.locator("tbody tr")).to_have_count(3)
    assert float(now.locator("progress").get_attribute("value") or 0) == pytest.approx(0.583, abs=0.01)
    board.publish(run=None)
    expect(now).to_be_hidden()


def test_a_standbys_page_shows_the_run_of_the_one_that_acts(show: Show, open_page: Open) -> None:
    """Whichever replica a person reaches: what goes on, who executes it, and a cancel that reaches them; no false alarm."""
    lock = LockView(holder="ballast daemon on shop-ballast-1", journal_readable=True)
    url, board, asked = show(a_view(role=Role.STANDBY, lock=lock, run_elsewhere=a_run(), throttles_to_restore=3))
    page = open_page(url)
    now = page.get_by_role("region", name="Run in progress")
    expect(now).to_contain_text("Executed by ballast daemon on shop-ballast-1")
    expect(now).to_contain_text(a_run().id)
    expect(now).not_to_contain_text("time left 6 min")
    expect(page.get_by_text("not yet removed")).to_have_count(0)
    now.get_by_role("button", name="Cancel this run…").click()
    page.get_by_label("Token").fill(TOKEN)
    page.get_by_role("button", name="Cancel the run").click()
    expect(page.get_by_role("dialog")).to_be_hidden()
    assert dict(asked[0].body) == {"run": a_run().id}
    board.publish(run_elsewhere=None)
    expect(now).to_be_hidden()


def test_a_journal_that_cannot_be_used_is_told_with_the_reason(show: Show, open_page: Open) -> None:
    """Nothing starts while it lasts, and a person can do something about it."""
    url, board, _ = show(a_view(role=Role.STANDBY))
    board.tell_journal("The journal's record pause has version 2.")
    page = open_page(url)
    banner = page.locator(".banner")
    expect(banner).to_have_text(
        "The journal cannot be used, so nothing starts: The journal's record pause has version 2."
    )
    board.tell_journal()
    expect(banner).to_have_count(0)


def test_approving_needs_the_token_and_reaches_the_daemon(show: Show, open_page: Open) -> None:
    """A wrong token is told in the dialog; the right one hands over exactly the plan that was shown."""
    url, _, asked = show(a_view(plans=(a_plan(),)))
    page = open_page(url)
    plan = page.get_by_role("article")
    expect(plan).to_contain_text("Pending approval")
    expect(plan).to_contain_text("lower bound 43.3 GiB")
    expect(plan).to_contain_text("81–124 %, 3 brokers out of range")  # noqa: RUF001
    plan.get_by_role("button", name="Approve…").click()
    page.get_by_label("Your name").fill("Ada")
    page.get_by_label("Token").fill("a wrong one, but long")
    page.get_by_role("button", name="Approve", exact=True).click()
    expect(page.get_by_role("alert")).to_have_text("The token is missing or wrong.")
    assert asked == []
    page.get_by_label("Token").fill(TOKEN)
    page.get_by_role("button", name="Approve", exact=True).click()
    expect(page.locator("dialog")).to_be_hidden()
    (request,) = asked
    assert (request.kind, request.by, dict(request.body)) == ("approve", "Ada", {"plan": "moves-1"})


@pytest.mark.parametrize(
    ("moves", "said"),
    [
        ((Move("orders", 0, (1, 2), (2, 1), 7),), "changes 1 replica list change (no data copied)"),
        ((Move("orders", 0, (1, 2), (1, 3)),), "changes 1 move (unknown size)"),
        ((Move("orders", 0, (1, 2), (1, 3), 0),), "changes 1 move (0 B)"),
        ((Move("orders", 0, (1, 2), (1, 2), 7, log_dirs=("/d", "any")),), "changes 1 move between log dirs"),
        ((Move("orders", 0, (1, 2, 3), (1, 2), 7),), "changes 1 partition with fewer replicas (no data copied)"),
    ],
)
def test_a_card_says_what_the_plan_does_as_every_command_does(
    show: Show, open_page: Open, moves: tuple[Move, ...], said: str
) -> None:
    """No plan that copies is called free: one whose bytes are not known, or whose partitions are empty, is told apart."""
    made = Plan("balance", "c", "f", moves)
    proposal = Proposal(id="moves-1", kind=ActionKind.MOVES, plan=made)
    view = plan_view(proposal, pending_approval=True, policy=ExecutionPolicy(), pace=None)
    url, _, _ = show(a_view(mode="approve", plans=(view,)))
    page = open_page(url)
    card = page.get_by_role("article")
    expect(card.locator(".facts")).to_contain_text(said)
    card.get_by_role("button", name="Approve…").click()
    expect(page.locator("#ask-text")).to_have_text(
        f"{said.removeprefix('changes ')}. It starts once no guard refuses it."
    )


@pytest.mark.parametrize(
    ("changes", "detail"),
    [
        ({}, "Balance the cluster: 9 moves, 3 replica list changes; 5 of 12 partitions done."),
        (
            {"intent": "elect preferred", "purpose": Purpose("elect"), "changes": ("4 preferred leader elections",), "moves_total": 0, "moves_verified": 0,
             "bytes_total": 0, "bytes_left": 0, "elections_total": 4, "elections_completed": 1},
            "Elect preferred leaders: 4 preferred leader elections; 1 of 4 elections completed.",
        ),
    ],
)  # fmt: skip
def test_the_headline_counts_a_run_as_its_plan_does(
    show: Show, open_page: Open, changes: dict[str, Any], detail: str
) -> None:
    """Each kind by the plan's word, then how far all of them are; a run of elections alone has no partitions to count."""
    url, _, _ = show(a_view(run=replace(a_run(), **changes)))
    page = open_page(url)
    expect(page.locator("#verdict .detail")).to_have_text(detail)
    expect(page.locator("#run .facts")).to_contain_text(f"changes {', '.join(replace(a_run(), **changes).changes)}")
    expected = 0.25 if changes else 0.583
    assert float(page.locator("#run progress").get_attribute("value") or 0) == pytest.approx(expected, abs=0.01)


def test_pausing_works_without_a_mouse(show: Show, open_page: Open) -> None:
    """Tab to the button, answer the dialog, Enter; Escape leaves it."""
    url, board, asked = show(a_view())
    page = open_page(url)
    headline(page)
    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.locator("#pause")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    page.keyboard.press("Enter")
    page.get_by_label("Your name").fill("Ada")
    page.get_by_label("Token").fill(TOKEN)
    page.get_by_label("Reason").fill("release night")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_be_hidden()
    assert [(r.kind, dict(r.body)) for r in asked] == [("pause", {"reason": "release night"})]
    board.publish(pause=Pause(by="Ada", since_ms=now_ms(), reason="release night"))
    expect(page.locator("#pause")).to_have_text("Resume")
    expect(page.locator("#banners")).to_contain_text("Paused by Ada")


def test_cancelling_can_also_undo(show: Show, open_page: Open) -> None:
    """The box in the dialog makes a rollback of a cancel."""
    url, _, asked = show(a_view(run=a_run()))
    page = open_page(url)
    page.get_by_role("button", name="Cancel this run…").click()
    page.get_by_label("Token").fill(TOKEN)
    page.get_by_label("Also roll back completed moves").check()
    page.get_by_role("button", name="Cancel the run").click()
    expect(page.get_by_role("dialog")).to_be_hidden()
    assert [(r.kind, dict(r.body)) for r in asked] == [("rollback", {"run": "1121-0102-ab"})]


def test_names_from_the_cluster_are_text_and_never_markup(show: Show, open_page: Open) -> None:
    """A topic, a reason or a name that looks like HTML is shown as it is."""
    evil = '<img src=x onerror="document.title=1">'
    run = a_run()
    run = replace(run, intent=evil, detail=evil, moves=tuple(replace(m, topic=evil, detail=evil) for m in run.moves))
    url, _, _ = show(a_view(name=evil, run=run, pause=Pause(by=evil, since_ms=0, reason=evil)))
    page = open_page(url)
    expect(page.locator("#now")).to_contain_text(evil)
    assert page.locator("main img").count() == 0
    assert page.title() != "1"


@pytest.mark.parametrize(("width", "height"), [(320, 640), (390, 844), (1280, 900), (3840, 2160)])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_every_screen(show: Show, open_page: Open, width: int, height: int, scheme: str) -> None:
    """Nothing sticks out sideways, and text is readable against its ground in both themes."""
    view = a_view(
        run=a_run(), plans=(a_plan(),), figures=figures(displaced=True),
        others=(Other(code="cruise-control", detail="Cruise Control is installed here.", blocking=True),),
        permissions=(permission("moves", code="foreign-activity", detail="Waiting for another balancer or reassignment: Cruise Control is installed here."),),
    )  # fmt: skip
    url, _, _ = show(view)
    page = open_page(url, width=width, height=height, scheme=scheme)
    headline(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    poor = page.evaluate(CONTRAST)
    assert poor == []


CONTRAST = """
() => {
  const parse = (c) => (c.match(/[\\d.]+/g) || [0, 0, 0, 0]).map(Number);
  const lum = ([r, g, b]) => {
    const f = (v) => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; };
    return 0.2126 * f(r) + 0.7152 * f(g) + 0.0722 * f(b);
  };
  const ground = (el) => {
    for (let node = el; node; node = node.parentElement) {
      const c = parse(getComputedStyle(node).backgroundColor);
      if (c.length < 4 || c[3] > 0.99) return c;
    }
    return [255, 255, 255];
  };
  const poor = [];
  for (const el of document.querySelectorAll("body *")) {
    const own = [...el.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!own || !el.checkVisibility()) continue;
    const a = lum(parse(getComputedStyle(el).color)), b = lum(ground(el));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) poor.push(`${el.tagName}.${el.className} ${ratio.toFixed(2)} ${el.textContent.slice(0, 30)}`);
  }
  return poor;
}
"""


def test_every_control_and_region_has_a_name(show: Show, open_page: Open) -> None:
    """What a screen reader announces: no button, field, table or section without words."""
    url, _, _ = show(a_view(run=a_run(), plans=(a_plan(),)))
    page = open_page(url)
    headline(page)
    nameless = page.evaluate(
        """() => [...document.querySelectorAll("button, input, section, [role=region], progress")]
          .filter((e) => e.checkVisibility() && !(e.textContent.trim() || e.getAttribute("aria-label")
            || e.getAttribute("aria-labelledby") || (e.labels && e.labels.length)))
          .map((e) => e.outerHTML.slice(0, 80))"""
    )
    assert nameless == []
    assert page.locator("h1").count() == 1
    assert page.locator("html").get_attribute("lang") == "en"


def test_without_a_token_file_the_page_is_read_only(serve: Callable[..., Any], open_page: Open) -> None:
    """No button that acts is there, and the API refuses with a sentence."""
    daemon = serve(DaemonPolicy(mode=Mode.APPROVE))
    daemon.until(lambda v: v.figures is not None)
    page = open_page(daemon.url + "/")
    headline(page)
    expect(page.locator("#pause")).to_be_hidden()
    expect(page.locator("#what")).to_contain_text("web.token_file")
    answer = page.request.post(daemon.url + "/api/v1/actions/pause", data={"by": "Ada"})
    assert answer.status == 403
    assert "read-only" in answer.json()["detail"]


def test_a_topics_page_has_the_lag_of_each_partition(serve: Callable[..., Any], open_page: Open) -> None:
    """Read when it is looked at; where partitions of many topics are listed a column of it would say nothing in any row."""
    daemon = serve()
    daemon.until(lambda v: v.figures is not None)
    page = open_page(daemon.url + "/")
    page.goto(daemon.url + "/#/topic/orders")
    heads = page.get_by_role("columnheader")
    expect(heads.filter(has_text="lag")).to_have_count(1)
    expect(page.locator("#detail td[data-label='lag']")).to_have_text(["0"] * 12)
    daemon.world.kill(3)
    daemon.until(lambda v: v.figures is not None and v.figures.under_replicated == 12)
    page.goto(daemon.url + "/#/partitions/under-replicated")
    expect(page.locator("#detail td[data-label='ISR']")).to_have_count(12)
    expect(heads.filter(has_text="lag")).to_have_count(0)


def test_a_lag_that_no_broker_has_told_is_unknown(show: Show, open_page: Open) -> None:
    """Never a zero."""
    url, _, _ = show(a_view(), uneven)
    page = open_page(url)
    page.goto(url + "#/topic/orders")
    expect(page.locator("#detail td[data-label='lag']").first).to_have_text("unknown")


def test_a_person_pauses_a_real_daemon(serve: Callable[..., Any], open_page: Open, tmp_path: Path) -> None:
    """From the button to the loop and back to the page."""
    token = tmp_path / "token"
    token.write_text(TOKEN)
    daemon = serve(DaemonPolicy(), web=WebPolicy(port=0, token_file=token))
    daemon.until(lambda v: v.figures is not None)
    page = open_page(daemon.url + "/")
    page.get_by_role("button", name="Pause").click()
    page.get_by_label("Your name").fill("Ada")
    page.get_by_label("Token").fill(TOKEN)
    page.get_by_role("dialog").get_by_role("button", name="Pause").click()
    expect(page.locator("#banners")).to_contain_text("Paused by Ada")
    assert daemon.board.view.pause is not None


def test_a_reader_gives_the_token_once(serve: Callable[..., Any], open_page: Open, tmp_path: Path) -> None:
    """Where reading takes one the page asks for it, refuses a wrong one in words, keeps a right one, and shows the cluster."""
    token = tmp_path / "token"
    token.write_text(f"ada operator {TOKEN}\nbob viewer {VIEWER}\n")
    daemon = serve(web=WebPolicy(port=0, token_file=token, read_needs_token=True))
    daemon.until(lambda v: v.figures is not None)
    page = open_page(daemon.url + "/")
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Token").fill("no-one-has-this-token")
    dialog.get_by_role("button", name="Read").click()
    expect(dialog.get_by_role("alert")).not_to_be_empty()
    expect(dialog.get_by_label("Your name")).to_be_hidden()
    dialog.get_by_role("button", name="Cancel").click()
    expect(page.locator("#verdict")).to_contain_text("needs a token")
    page.get_by_role("button", name="Give the token…").click()
    dialog.get_by_label("Token").fill(VIEWER)
    dialog.get_by_role("button", name="Read").click()
    expect(dialog).to_be_hidden()
    expect(page.locator("#brokers")).to_contain_text("Rack a")
    page.reload()
    expect(page.locator("#brokers")).to_contain_text("Rack a")


def test_a_daemon_that_is_gone_is_told(serve: Callable[..., Any], open_page: Open) -> None:
    """The page keeps what it knew, says that it is old, and finds the daemon again by itself."""
    daemon = serve()
    daemon.until(lambda v: v.figures is not None)
    page = open_page(daemon.url + "/")
    headline(page)
    # In one step: the next answer of the daemon, which may come at any moment, takes the banner away.
    told = page.evaluate(
        """() => { heardAt = nowMs() - 60000; checkAges(); return document.querySelector("#banners").textContent; }"""
    )
    assert "Connection to Ballast lost" in told
    expect(page.locator("#banners")).to_have_text("")


def test_the_resource_that_is_out_of_range_opens(show: Show, open_page: Open) -> None:
    """With leaders in place and an uneven disk, the disk's bars; a tab that a person chose stays."""
    url, board, _ = show(a_view(figures=measure(uneven(), threshold_percent=10)), uneven)
    page = open_page(url)
    pressed = page.locator("#resources [aria-pressed=true]")
    worst = max(measure(uneven(), threshold_percent=10).ranges, key=lambda r: (len(r.brokers_out_of_range), r.skew))
    expect(pressed).to_have_attribute("data-resource", worst.label)
    page.get_by_role("button", name=re.compile("^leader imbalance")).click()
    board.publish(figures=measure(uneven(), threshold_percent=10))
    expect(pressed).to_have_attribute("data-resource", "leader imbalance")


def test_a_plan_pictures_only_what_it_changes(show: Show, open_page: Open) -> None:
    """One that reorders replica lists has nothing to say about disks."""
    plan = a_real_plan()
    same = tuple(b | {"after": b["after"] | {"disk": b["before"]["disk"]}} for b in plan.brokers)
    url, _, _ = show(a_view(mode="approve", plans=(replace(plan, brokers=same),)))
    pictures = open_page(url).locator(".compare figcaption b")
    expect(pictures).to_have_text(["replicas", "preferred leaders"])


@pytest.mark.parametrize("width", [1280, 390])
def test_bars_of_one_scale_are_equally_long(show: Show, open_page: Open, width: int) -> None:
    """Whatever figures stand beside them: of a plan's resource, and of the brokers in one rack."""
    url, _, _ = show(
        a_view(mode="approve", plans=(a_real_plan(),), figures=measure(uneven(), threshold_percent=10)), uneven
    )
    page = open_page(url, width=width, height=900)
    expect(page.locator(".compare").first).to_be_visible()
    lengths = page.evaluate(
        """() => [...document.querySelectorAll(".compare, .rack")].map(
          (e) => [...e.querySelectorAll(".gauge")].map((g) => Math.round(g.getBoundingClientRect().width)))"""
    )
    assert len(lengths) >= 4
    assert all(len(set(of)) == 1 and of[0] > 20 for of in lengths), lengths


def test_a_plan_shows_why_how_long_and_each_broker_before_and_after(show: Show, open_page: Open) -> None:
    """What the planner made of an uneven cluster: one count of brokers out of range on the card and on the tab."""
    plan = a_real_plan()
    url, _, asked = show(a_view(mode="approve", plans=(plan,), figures=measure(uneven(), threshold_percent=10)), uneven)
    page = open_page(url)
    card = page.get_by_role("article")
    expect(card).to_contain_text("Balance the cluster")
    expect(card).to_contain_text("at 8.0 MiB/s into each broker, the first rate of the automatic throttle")
    expect(card.locator("figure.compare")).to_have_count(len(plan.resources))
    expect(card.locator("figure.compare").first.locator(".pair")).to_have_count(6)
    before = {r["label"]: r["before"]["out_of_range"] for r in plan.resources}
    for label, count in before.items():
        tab = page.locator(f"#resources [data-resource='{label}']")
        expect(tab).to_have_text(f"{label} {count} out" if count else label)
    card.get_by_role("button", name="Reject…").click()
    page.get_by_label("Token").fill(TOKEN)
    page.get_by_label("Reason").fill("not today")
    page.get_by_role("button", name="Reject", exact=True).click()
    expect(page.get_by_role("dialog")).to_be_hidden()
    assert [(r.kind, dict(r.body)) for r in asked] == [("reject", {"plan": plan.id, "reason": "not today"})]


def test_a_plan_that_changes_shares_counts_now_as_the_tabs_do(show: Show, open_page: Open) -> None:
    """A broker is drained: before is by the shares of now, and the legend says that after is not; elections have Kafka's words."""
    plan = a_real_plan(Decommission(brokers=frozenset({4})))
    assert {r["shares_change"] for r in plan.resources} == {True}
    url, _, _ = show(a_view(mode="approve", plans=(plan,), figures=measure(uneven(), threshold_percent=10)), uneven)
    page = open_page(url)
    card = page.get_by_role("article")
    for r in plan.resources:
        count = r["before"]["out_of_range"]
        tab = page.locator(f"#resources [data-resource='{r['label']}']")
        expect(tab).to_have_text(f"{r['label']} {count} out" if count else r["label"])
    expect(card.locator(".legend")).to_contain_text("before of that of now")
    drained = card.locator(".compare .pair[data-broker='4'] .value")
    expect(drained).to_have_text([re.compile("→ 0( B)?$")] * len(plan.resources))
    assert plan.elections
    expect(card).to_contain_text(f"{plan.elections} preferred leader elections (no data copied)")


@pytest.mark.parametrize(
    ("button", "body"),
    [
        ("Balance now…", {"intent": "balance"}),
        ("Drain a broker…", {"intent": "drain", "broker": "4"}),
        ("Elect preferred leaders…", {"intent": "elect"}),
    ],
)
def test_plans_are_asked_for_with_a_button(show: Show, open_page: Open, button: str, body: dict[str, str]) -> None:
    """Each makes a plan and nothing else; what came of it is told on the page."""
    url, board, asked = show(a_view())
    page = open_page(url)
    page.get_by_role("button", name=button).click()
    page.get_by_label("Token").fill(TOKEN)
    if "broker" in body:
        page.locator("#ask-number").select_option(body["broker"])
    page.get_by_role("button", name="Make the plan").click()
    expect(page.get_by_role("dialog")).to_be_hidden()
    (request,) = asked
    assert (request.kind, dict(request.body)) == ("plan", body)
    board.publish(answers=(Answer(request=request.id, detail="No plan is needed.", ok=True, at_ms=now_ms()),))
    expect(page.locator("#answers")).to_have_text("No plan is needed.")


def test_a_drained_broker_is_shown_and_its_drain_ended_with_a_button(show: Show, open_page: Open) -> None:
    """Who drained it and since when, in a line of its own, on its bars, and a button for an operator."""
    url, _, asked = show(a_view(drains=(Drain(broker=4, by="Ada", since_ms=now_ms() - 60_000),)))
    page = open_page(url)
    line = page.locator("#drains [data-broker='4']")
    expect(line).to_contain_text("Drain of broker 4 (Ada,")
    line.get_by_role("button", name="End the drain…").click()
    page.get_by_label("Token").fill(TOKEN)
    page.get_by_role("dialog").get_by_role("button", name="End the drain").click()
    expect(page.get_by_role("dialog")).to_be_hidden()
    assert [(r.kind, dict(r.body)) for r in asked] == [("end-drain", {"broker": "4"})]


def test_a_plan_that_was_approved_says_by_whom(show: Show, open_page: Open) -> None:
    """On every replica's page, while guards hold it back; past runs that Ballast may not read are told."""
    plan = replace(a_plan(pending_approval=False), approved_by="Ada")
    held = (permission("moves", code="unsettled", detail="Waiting for replicas to be in sync."),)
    view = a_view(mode="approve", plans=(plan,), permissions=held, history=(), history_problem="Not allowed.")
    url, _, _ = show(view)
    page = open_page(url)
    expect(page.get_by_role("article")).to_contain_text("Waiting for replicas to be in sync.")
    expect(page.get_by_role("article")).to_contain_text("Approved by Ada")
    expect(page.get_by_role("button", name="Approve…")).to_have_count(0)
    expect(page.locator("#history")).to_contain_text("Not allowed.")


def test_a_past_run_that_cannot_be_shown_is_named(show: Show, open_page: Open) -> None:
    """Beside those that can."""
    url, _, _ = show(
        a_view(
            history_skipped=(
                SkippedRun(
                    id="1118-0000-zz", code="other-version", parameters={}, detail="Its records are of a newer version."
                ),
            )
        )
    )
    page = open_page(url)
    expect(page.locator("#history")).to_contain_text("1118-0000-zz")
    expect(page.locator("#history")).to_contain_text("Its records are of a newer version.")
    expect(page.locator("#history")).to_contain_text("1120-2300-aa")


@pytest.mark.parametrize(
    ("purpose", "title"),
    [
        (Purpose("decommission", (3, 4)), "Empty brokers 3, 4"),
        (Purpose("evacuate", (3,)), "Rebuild replicas of broker 3"),
        (Purpose("evacuate", (), ("a", "b")), "Rebuild replicas of rack a and rack b"),
        (Purpose("evacuate-offline", (3,)), "Rebuild offline replicas of broker 3"),
        (Purpose("replace", (9, 3)), "Replace broker 9 with 3"),
        (Purpose("elect-unclean"), "Elect leaders, unclean"),
        (Purpose("rollback"), "the words: night"),
        (Purpose("constructor"), "the words: night"),
    ],
)
def test_what_a_run_is_for_is_told_by_its_code(show: Show, open_page: Open, purpose: Purpose, title: str) -> None:
    """And by its words, which are the tooltip, where the page has no title for the code."""
    url, _, _ = show(a_view(run=replace(a_run(), intent="the words: night", purpose=purpose)))
    named = open_page(url).locator("#run b").first
    expect(named).to_have_text(title)
    expect(named).to_have_attribute("title", "the words: night")


def test_a_countdown_closes_nothing_that_a_user_has_opened(show: Show, open_page: Open) -> None:
    """The reason why a plan is blocked counts on in its place, under a list of changes that stays open."""

    def held(seconds: int) -> tuple[Permission, ...]:
        return (permission("moves", code="unsettled", detail=f"A broker came or went; {seconds} s to wait."),)

    url, board, _ = show(a_view(mode="approve", plans=(a_real_plan(),), permissions=held(60)))
    page = open_page(url)
    page.get_by_text("Show ").click()
    expect(page.get_by_role("article")).to_contain_text("60 s to wait")
    board.publish(permissions=held(58))
    expect(page.get_by_role("article")).to_contain_text("58 s to wait")
    assert page.locator("article details").evaluate("(e) => e.open")


def test_a_repair_says_why_it_waits_for_approval(show: Show, open_page: Open) -> None:
    """Whatever the mode: a person sees what is beyond the bounds of repair before approving."""
    why = Note(code="whole-rack", parameters={"racks": ["c"]}, detail="no broker of rack c is up")
    url, _, _ = show(a_view(plans=(replace(a_plan(), objections=(why,)),)))
    expect(open_page(url).get_by_role("article")).to_contain_text("Waits for approval: no broker of rack c is up.")


def test_nothing_is_offered_while_the_cluster_is_unreachable(show: Show, open_page: Open) -> None:
    """Neither a plan to approve nor a button that makes one; the figures stay, greyed, with their age."""
    url, _, _ = show(a_view(plans=(a_plan(),), outage=an_outage(), figures=figures(age_s=300)))
    page = open_page(url)
    assert headline(page).startswith("Cluster unreachable since")
    expect(page.locator("#plans-card")).to_be_hidden()
    expect(page.locator("#actions")).to_be_hidden()
    expect(page.locator("#fresh")).to_contain_text("read 5 min")
    assert "grayscale" in page.locator("#tiles").evaluate("(e) => getComputedStyle(e).filter")


@pytest.mark.parametrize(
    ("counts", "first"),
    [
        ({}, ""),
        ({"offline": 2}, "2 partitions offline"),
        ({"under_min_isr": 2}, "2 partitions under min ISR"),
        ({"min_isr_unknown": 2}, "2 partitions may be under min ISR"),
    ],
)
def test_a_down_brokers_countdown_is_beside_whatever_is_worse(
    show: Show, open_page: Open, counts: dict[str, Any], first: str
) -> None:
    """In the headline, or in the line under it where partitions lack more than replicas; by the mode of repair, counting by itself."""
    absence = Absence(broker=3, since_ms=now_ms(), repair_at_ms=now_ms() + 605_000)
    url, _, _ = show(a_view(figures=replace(figures(down=3), **counts), absences=(absence,)))
    page = open_page(url)
    assert not first or headline(page) == first
    line = page.locator("#verdict .detail" if first else "#verdict .headline")
    expect(line).to_contain_text("Broker 3 is down")
    told = line.inner_text()
    assert re.search(r"Broker 3 is down: replicas rebuilt in \d+ min( \d+ s)?", told), told
    expect(line).not_to_have_text(told)


def test_of_several_down_brokers_the_next_repair_counts_down(show: Show, open_page: Open) -> None:
    """The one whose replicas are rebuilt first, whatever its number."""
    absences = tuple(
        Absence(broker=b, since_ms=now_ms(), repair_at_ms=now_ms() + s * 1000) for b, s in ((3, 7200), (4, 590))
    )
    down = figures(down=3)
    brokers = tuple(replace(b, alive=b.alive and b.id != 4) for b in down.brokers)
    url, _, _ = show(a_view(figures=replace(down, brokers=brokers), absences=absences))
    assert headline(open_page(url)).startswith("Brokers 3, 4 are down: replicas rebuilt in 9 min")


@pytest.mark.parametrize(
    ("silent", "detail"),
    [((1,), "The cluster still lists it as alive."), ((1, 2), "The cluster still lists them as alive.")],
)
def test_brokers_that_do_not_answer_are_told_in_their_number(
    show: Show, open_page: Open, silent: tuple[int, ...], detail: str
) -> None:
    """One is it, two are them."""
    base = figures()
    brokers = tuple(replace(b, reachable=b.id not in silent) for b in base.brokers)
    url, _, _ = show(a_view(figures=replace(base, brokers=brokers)))
    page = open_page(url)
    headline(page)
    expect(page.locator("#verdict .detail")).to_have_text(detail)


def test_counts_lead_to_lists_and_names_to_their_pages(show: Show, open_page: Open) -> None:
    """From the number of under-replicated partitions to the list, from there to the topic and the broker, and back."""
    url, _, _ = show(a_view(figures=figures(down=3)), lambda: a_state(down=3))
    page = open_page(url)
    page.locator("#tiles a", has_text="30").first.click()
    detail = page.locator("#detail")
    expect(detail.locator("h2").first).to_have_text("Under-replicated partitions")
    expect(detail.locator("tbody tr")).to_have_count(30)
    expect(page.locator("#overview")).to_be_hidden()
    detail.get_by_role("link", name="orders").first.click()
    expect(detail.locator("h2").first).to_have_text("Topic orders")
    expect(detail.locator("tbody tr")).to_have_count(60)
    detail.get_by_role("link", name="1", exact=True).first.click()
    expect(detail.locator("h2").first).to_have_text("Broker 1")
    expect(detail).to_contain_text("/var/lib/kafka")
    expect(detail).to_contain_text("kafka-1:9092")
    page.get_by_role("link", name="← Overview").click()
    expect(page.locator("#overview")).to_be_visible()


@pytest.mark.parametrize(
    ("measured", "title"),
    [
        (0, "Bytes in (growth of logs)"),
        (144, "Bytes in (measured by brokers)"),
        (44, "Bytes in (measured by brokers, else growth of logs)"),
    ],
)
def test_the_chart_of_bytes_in_names_its_source(show: Show, open_page: Open, measured: int, title: str) -> None:
    """What brokers measure is drawn where it is known; growth of logs, which is less, is not passed off as it."""
    day = a_day()
    told = tuple(
        replace(p, measured_bytes_in_per_s=90 * 2**20 if n >= 144 - measured else None) for n, p in enumerate(day)
    )
    url, _, _ = show(a_view(series=told))
    chart = open_page(url).locator("#series figure", has_text="Bytes in")
    expect(chart.locator("b")).to_have_text(title)
    if measured:
        expect(chart.locator("figcaption span")).to_contain_text("90.0 MiB/s")


def test_changed_settings_are_marked_and_the_others_folded(show: Show, open_page: Open) -> None:
    """The one that was changed is read at once."""
    url, _, _ = show(a_view())
    page = open_page(url)
    page.get_by_text("Active settings").click()
    box = page.locator("#settings")
    expect(box.locator("tbody tr", has_text="changed")).to_have_count(1)
    expect(box.get_by_text("web.port")).to_be_hidden()
    box.get_by_text("2 settings with their default").click()
    expect(box.get_by_text("web.port")).to_be_visible()


@pytest.mark.parametrize("address", ["", "#/broker/1", "#/topic/orders", "#/partitions/under-replicated"])
def test_no_column_is_cut_on_a_telephone(show: Show, open_page: Open, address: str) -> None:
    """At 390 px nothing is to be scrolled sideways, inside no table either, and every cell carries its column's name."""
    view = a_view(run=a_run(), plans=(a_real_plan(),), series=a_day(), figures=figures(down=3))
    url, _, _ = show(view, lambda: a_state(down=3))
    page = open_page(url, width=390, height=844)
    headline(page)
    page.goto(url + address)
    expect(page.locator(".stack td" if address else "#history .stack td").first).to_be_visible()
    cut = page.evaluate(
        """() => [...document.querySelectorAll(".scroll")].filter((e) => e.checkVisibility() && e.scrollWidth > e.clientWidth + 1)
          .map((e) => e.getAttribute("aria-label"))"""
    )
    assert cut == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_each_check_carries_its_age_and_is_greyed_once_it_tells_no_more(show: Show, open_page: Open) -> None:
    """A check of an earlier cluster says so; in an outage nothing reassuring of before is left."""
    before = now_ms() - 300_000
    said = CheckReport(detail="Preferred leaders OK.", at_ms=before, duration_s=0.1, reading_ms=before)
    url, board, _ = show(a_view(checks={"leaders": said}, changed_at_ms=before))
    page = open_page(url)
    line = page.locator("#checks li[data-check='leaders']")
    expect(line).to_contain_text("Preferred leaders OK.")
    expect(line.locator("[data-since]")).to_contain_text("5 min")
    assert line.get_attribute("data-stale") is None
    board.publish(changed_at_ms=before + 1)
    expect(line).to_have_attribute("data-stale", "earlier-reading")
    expect(line.locator("[data-since]")).to_contain_text("5 min")
    board.publish(outage=replace(an_outage(), since_ms=now_ms()))
    expect(line).to_have_attribute("data-stale", "outage")
    expect(line).not_to_contain_text("Preferred leaders OK.")


def test_the_headline_names_several_brokers_as_several(show: Show, open_page: Open) -> None:
    """Leaders of brokers, not of broker, 1 and 2."""
    base = figures()
    one, two, *rest = base.brokers
    url, _, _ = show(
        a_view(
            figures=replace(base, brokers=(replace(one, over_threshold=True), replace(two, over_threshold=True), *rest))
        )
    )
    assert headline(open_page(url)) == "Leaders of brokers 1, 2 are imbalanced"


def test_times_in_sentences_are_those_of_the_page(show: Show, open_page: Open) -> None:
    """One way to write a time: the browser's own, in what the daemon says as well."""
    held = replace(permission("moves"), allowed=False, code="paused", detail="Paused since 2026-11-21 12:00 UTC.")
    url, _, _ = show(a_view(permissions=(held,)))
    page = open_page(url)
    expect(page.locator("#permissions")).to_contain_text(re.compile(r"Paused since 21 Nov 2026, \d\d:\d\d\."))


def test_runs_are_not_said_to_be_none_before_the_journal_was_read(show: Show, open_page: Open) -> None:
    """Not known yet is what the list says."""
    url, _, _ = show(a_view(history=(), history_problem=NOT_READ))
    expect(open_page(url).locator("#history")).to_contain_text("Past runs are not known")


def test_partitions_being_reassigned_are_those_that_the_run_moves(show: Show, open_page: Open) -> None:
    """While a run moves three partitions the tile says three, however old the reading is; and a run's plan leaves no headline."""
    base = replace(figures(), reassigning=0)
    url, board, _ = show(a_view(figures=base, run=a_run()))
    tiles = open_page(url).locator("#tiles .tile", has_text="being reassigned")
    expect(tiles.locator("dd")).to_have_text("3")
    board.publish(run=None)
    expect(tiles.locator("dd")).to_have_text("0")


def test_what_a_reading_lacks_is_told_once_for_each_reason(show: Show, open_page: Open) -> None:
    """What a broker that is down or does not answer has not told is part of its own state."""
    base = figures(down=3)
    brokers = tuple(replace(b, reachable=b.id != 4) for b in base.brokers)
    gaps = (
        *(Gap.of_broker(b, "log dirs", "the broker does not answer") for b in (3, 4)),
        *(
            Gap(f"topic {name}", "configs", "DescribeConfigs is not allowed")
            for name in ("orders", "payments", "users")
        ),
        Gap.of_broker(2, "log dirs", "Describe on the cluster is not allowed"),
    )
    url, board, _ = show(a_view(figures=replace(base, brokers=brokers, gaps=gaps)), lambda: a_state(down=3))
    page = open_page(url)
    expect(page.locator("#banners .banner")).to_have_text(
        [
            "Missing: configs of topic orders and 2 more (DescribeConfigs is not allowed)",
            "Missing: log dirs of broker 2 (Describe on the cluster is not allowed)",
        ]
    )
    board.publish(figures=base)
    expect(page.locator("#banners .banner")).to_have_count(0)


def test_the_reason_of_a_plan_is_told_in_words(show: Show, open_page: Open) -> None:
    """By the labels of resources, not by the names of settings."""
    plan = replace(a_plan(), reasons=(PlanReason("preferred-leaders", 5), PlanReason("not-preferred", 2)))
    url, _, _ = show(a_view(plans=(plan,)))
    expect(open_page(url).locator("#plans")).to_contain_text(
        "Reason: preferred leaders unevenly spread (5), the preferred leader does not lead (2)."
    )


@pytest.mark.parametrize("width", [320, 390, 1280])
def test_what_a_broker_is_does_not_lie_under_its_bar(show: Show, open_page: Open, width: int) -> None:
    """Its state, down or unreachable, stands beside the bar or above it, and the button of a run not on its last row."""
    figured = figures(down=3)
    brokers = tuple(replace(b, reachable=b.id != 4) for b in figured.brokers)
    url, _, _ = show(a_view(run=a_run(), figures=replace(figured, brokers=brokers)), lambda: a_state(down=3))
    page = open_page(url, width=width, height=844)
    expect(page.locator("#brokers")).to_contain_text("unreachable")
    hidden = page.evaluate(
        """() => [...document.querySelectorAll(".broker .note")].filter((note) => {
          const said = note.getBoundingClientRect(), bar = note.closest(".broker").querySelector(".gauge").getBoundingClientRect();
          return said.right > bar.left && said.bottom > bar.top;
        }).map((note) => note.textContent)"""
    )
    assert hidden == []
    room = page.evaluate(
        """() => document.querySelector("#run .buttons").getBoundingClientRect().top
          - document.querySelector("#run table").getBoundingClientRect().bottom"""
    )
    assert room >= 8
