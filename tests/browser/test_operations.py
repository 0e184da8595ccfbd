"""The operator's view in a real browser: what runs in the background, what is planned, how processes ended, and in which language."""

import re
from pathlib import Path

from playwright.sync_api import Browser, Locator, Page, StorageState, expect

from tests.browser.acting import WAIT_MS, answers, send
from tests.browser.conftest import printed_address, tab
from tests.e2e.command_line import holdfast
from tests.e2e.serving import Serving
from tests.fakes.telegram.server import TOKEN
from tests.fakes.telegram.thread import TelegramThread

DASH = "\N{EN DASH}"


def operate(page: Page, serving: Serving) -> None:
    page.goto(serving.url + "/operations")
    expect(page.get_by_test_id("day").get_by_role("img")).to_be_visible(timeout=WAIT_MS)


def answered(page: Page, count: int = 1) -> None:
    expect(answers(page).nth(count - 1)).to_have_attribute("data-status", "complete", timeout=WAIT_MS)


def test_five_figures_are_shown_and_the_others_are_behind_a_fold(page: Page, lasting: Serving) -> None:
    operate(page, lasting)
    figures = page.locator(".figs > li")
    expect(figures.filter(visible=True)).to_have_count(5)
    page.get_by_test_id("more-figures").get_by_text("More figures").click()
    expect(figures.filter(visible=True)).to_have_count(10)
    expect(page.get_by_test_id("more-figures")).to_contain_text("Memory")


def test_a_figure_that_is_not_known_is_a_dash_and_not_a_zero(browser: Browser, lasting: Serving, signed_in: StorageState) -> None:
    """Nothing is said of what nobody could be asked about, and nothing of what was not measured yet."""
    with tab(browser, signed_in, service_workers="block") as page:
        unknown = re.compile(r"/api/(ops/|events|status)")
        page.route(unknown, lambda route: route.abort())
        page.goto(lasting.url + "/operations")
        page.get_by_test_id("more-figures").get_by_text("More figures").click()
        figures = page.locator(".figs > li")
        expect(figures.locator(".v")).to_have_text([DASH] * 10, timeout=WAIT_MS)
        assert not re.search(r"\d", " ".join(figures.all_inner_texts()))
        expect(page.get_by_test_id("section").filter(has_text=re.compile(r"\d"))).to_have_count(0)
        page.unroute(unknown)
        series = {
            "since": "2026-01-01T00:00:00Z",
            "step_s": 10,
            "series": {"inbox_lag_ms": [None, 0.0, None, None, None], "commit_ms": [None, 0.0]},
        }
        page.route("**/api/ops/series", lambda route: route.fulfill(json=series))
        page.reload()
        page.get_by_test_id("more-figures").get_by_text("More figures").click()
        expect(figure(page, "Commit")).to_have_text("0 ms", timeout=WAIT_MS)
        for name in ("First text", "Loop lag", "Memory"):  # Never measured.
            expect(figure(page, name)).to_have_text(DASH)
        lag = page.locator(".figs > li").filter(has=page.get_by_role("heading", name="Inbox lag", exact=True))
        expect(lag.locator(".v")).to_have_text("0 ms")
        expect(lag.locator(".fig-foot")).to_have_text(re.compile(r"\d:\d\d"))  # That it was long ago, and when.
        for name in ("Running turns", "Outbox", "Needs a person", "Inbox", "Suspended"):
            expect(figure(page, name)).to_have_text(re.compile(r"^\d+$"), timeout=WAIT_MS)


def figure(page: Page, title: str) -> Locator:
    return page.locator(".figs > li").filter(has=page.get_by_role("heading", name=title, exact=True)).locator(".v")


def test_a_background_process_is_shown_and_ended_by_a_person_who_was_asked_first(page: Page, lasting: Serving) -> None:
    send(page, "background sleep 4321")
    answered(page)
    operate(page, lasting)
    card = page.get_by_test_id("processes")
    row = card.get_by_test_id("process").filter(has_text="sleep 4321")
    expect(row).to_be_visible(timeout=WAIT_MS)
    expect(page.get_by_test_id("section").filter(has_text="Background processes")).to_have_text(re.compile(r"\d$"))
    row.get_by_test_id("end-process").click()
    expect(page.get_by_test_id("confirm")).to_contain_text("is ended with everything it started")
    page.get_by_role("button", name="Cancel").click()
    expect(row).to_be_visible()
    row.get_by_test_id("end-process").click()
    page.get_by_test_id("confirm-yes").click()
    expect(row).to_have_count(0, timeout=WAIT_MS)


def test_a_schedule_is_paused_and_continued(page: Page, lasting: Serving) -> None:
    send(page, "/remind every day 4:44 water the cactus")
    expect(page.locator('[data-testid="message"][data-role="notice"]').first).to_be_visible(timeout=WAIT_MS)
    operate(page, lasting)
    row = page.get_by_test_id("schedule").filter(has_text="water the cactus")
    expect(row).to_have_attribute("data-paused", "false", timeout=WAIT_MS)
    row.get_by_test_id("pause-schedule").click()
    expect(row).to_have_attribute("data-paused", "true", timeout=WAIT_MS)
    expect(row).to_contain_text("paused")
    assert "paused" in next(line for line in holdfast(lasting.home, "schedules").out.splitlines() if "water the cactus" in line)
    row.get_by_role("button", name="Continue").click()
    expect(row).to_have_attribute("data-paused", "false", timeout=WAIT_MS)
    row.get_by_test_id("remove-schedule").click()
    page.get_by_test_id("confirm-yes").click()
    expect(row).to_have_count(0, timeout=WAIT_MS)


def test_a_timeline_wider_than_the_window_begins_at_its_end_and_stays_where_a_reader_moves_it(page: Page, lasting: Serving) -> None:
    """With what its colours mean in sight; and what waits for a person stands before the rest."""
    page.set_viewport_size({"width": 390, "height": 780})
    operate(page, lasting)
    box = page.get_by_test_id("day").locator(".plot")
    place = "box => [box.scrollLeft, box.scrollWidth - box.clientWidth]"
    left, most = box.evaluate(place)
    assert left == most > 100
    in_sight = box.locator(".legend").evaluate("legend => legend.getBoundingClientRect().left")
    assert 0 <= in_sight < 390
    box.evaluate("box => box.scrollTo(0, 0)")
    with page.expect_response("**/api/ops/turns"), page.expect_response("**/api/ops/platforms"):
        page.get_by_test_id("day").get_by_text("restarts, hand-overs").click()
    page.wait_for_timeout(100)
    assert box.evaluate(place)[0] == 0
    tops = [page.get_by_test_id(card).evaluate("card => card.getBoundingClientRect().top") for card in ("running", "needs", "boxes")]
    assert tops == sorted(tops)


def test_every_pause_is_a_band_in_the_timeline_also_after_it_is_over_and_after_a_restart(own_page: Page, serving: Serving) -> None:
    """C21, P8"""
    assert holdfast(serving.home, "pause").code == 0
    operate(own_page, serving)
    marks = own_page.get_by_test_id("pause-mark")
    expect(marks).to_have_attribute("data-holds", "true", timeout=WAIT_MS)
    expect(marks).to_contain_text("Paused by")
    own_page.get_by_test_id("unpause").click()
    expect(marks).to_have_attribute("data-holds", "false", timeout=WAIT_MS)
    own_page.get_by_test_id("pause").click()
    own_page.get_by_test_id("confirm-yes").click()
    expect(marks).to_have_count(2, timeout=WAIT_MS)
    own_page.get_by_test_id("unpause").click()
    serving.stop()
    serving.start()
    operate(own_page, serving)
    expect(marks).to_have_count(2, timeout=WAIT_MS)
    for number in range(2):
        expect(marks.nth(number)).to_have_attribute("data-holds", "false", timeout=WAIT_MS)
    expect(own_page.get_by_test_id("day").get_by_role("img")).to_have_attribute("aria-label", re.compile("Paused by"))


def test_a_hand_over_is_told_from_a_crash_and_what_it_cost_is_said(own_page: Page, serving: Serving) -> None:
    """P8: which process served when, how it ended, what was interrupted and how soon that continued."""
    send(own_page, "count 200 0.05")
    expect(answers(own_page).first).to_contain_text("1 2 3", timeout=WAIT_MS)
    serving.kill()
    serving.start()
    expect(answers(own_page).first).to_contain_text("199 200", timeout=WAIT_MS)
    assert holdfast(serving.home, "restart").code == 0
    operate(own_page, serving)
    lives = own_page.get_by_test_id("life")
    expect(lives.nth(2)).to_be_attached(timeout=WAIT_MS)
    assert [lives.nth(number).get_attribute("data-end") for number in range(3)] == ["crash", "hand_over", "serves"]
    expect(lives.nth(0)).to_contain_text(re.compile(r"found dead: 1 turn interrupted, 1 continued .+ after the restart"))
    expect(lives.nth(1)).to_contain_text("handed over: no turn interrupted")
    expect(own_page.get_by_test_id("state-sentence")).to_contain_text("The process before it handed over to it. No turn was interrupted.")
    speaks_german(own_page, serving)


def test_an_update_of_a_chat_that_could_not_be_read_is_told_with_what_to_do_also_after_a_restart(browser: Browser, tmp_path: Path) -> None:
    """The count is of this process; why the newest could not be read is kept."""
    with TelegramThread() as telegram, tab(browser) as page:
        made = Serving(tmp_path / "home", telegram_token=TOKEN, telegram_base_url=telegram.url, telegram_allowed_users="100")
        with made as serving:
            telegram.do(lambda server: server.deliver(message="what?"))
            page.goto(printed_address(serving))
            page.get_by_test_id("composer").wait_for()
            operate(page, serving)
            told = page.get_by_test_id("platforms").get_by_test_id("unreadable")
            expect(told).to_contain_text(
                re.compile(r"Telegram: One update could not be read\. The last one came at \d\d:\d\d: .+\."), timeout=WAIT_MS
            )
            expect(told).to_contain_text("Everything else is read.")
            expect(told.locator("code")).to_have_text("holdfast logs")
            serving.kill()
            page.reload()
            expect(page.get_by_test_id("log")).to_contain_text("Not known while Holdfast is away", timeout=WAIT_MS)
            answered: list[str] = []
            page.on("response", lambda response: answered.append(response.url.rpartition("/")[2].partition("?")[0]))
            serving.start()
            expect(told).to_contain_text("Telegram: An earlier update could not be read.", timeout=WAIT_MS)
            expect(page.get_by_test_id("log")).to_contain_text("Nothing was decided in this time.", timeout=WAIT_MS)
            assert answered[: answered.index("log")].count("turns") <= 2, "what is asked for rarely came late"


def speaks_german(page: Page, serving: Serving) -> None:
    """Also the facts that rules looked at, and what was decided."""
    page.evaluate("localStorage['holdfast.language'] = 'de'")
    operate(page, serving)
    expect(page.get_by_test_id("life").nth(0)).to_contain_text("1 Durchgang unterbrochen")
    log = page.get_by_test_id("log")
    expect(log).to_contain_text("fortgesetzt", timeout=WAIT_MS)
    for english in ("interrupted", "continued", "completed", "crash", "earlier"):
        expect(log).not_to_contain_text(english)
    log.get_by_role("link").first.click()
    expect(answers(page).first).to_have_attribute("data-status", "complete", timeout=WAIT_MS)
    page.get_by_test_id("details-button").click()
    why = page.get_by_test_id("why").first
    expect(why).to_contain_text("Kein Stopp ist vermerkt.", timeout=WAIT_MS)
    expect(why).to_contain_text(re.compile(r"Sein letztes Lebenszeichen war vor .+\."))
    expect(why).to_contain_text("Keine andere Regel trifft zu.")
    for english in ("Interrupted", "interrupted", "ago", "on record", "rule"):
        expect(why).not_to_contain_text(english)
