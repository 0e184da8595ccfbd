"""What the browser is asked to tell of while nobody looks at the page, and what a press on it does."""

import re
import time
from typing import Any

from playwright.sync_api import Browser, Page, Request, StorageState, expect

from tests.browser.acting import WAIT_MS
from tests.browser.conftest import tab
from tests.e2e.serving import Serving

# Nobody looks at the page from here on, as far as it can tell.
HIDDEN = """() => {
  Object.defineProperty(document, 'visibilityState', { configurable: true, get: () => 'hidden' });
  document.dispatchEvent(new Event('visibilitychange'));
}"""
# As on Android: only the worker may show one.
ANDROID = """window.Notification = class extends window.Notification {
  constructor() { throw new TypeError("Failed to construct 'Notification': Illegal constructor."); }
}"""
SHOWN = """async tag => {
  const worker = await navigator.serviceWorker.ready;
  for (;;) {
    const [shown] = await worker.getNotifications({ tag });
    if (shown) return shown.title;
    await new Promise(resolve => setTimeout(resolve, 50));
  }
}"""
# Tells of each notification that is asked for: the browser itself shows a second one in the place of the first.
COUNTED = """(() => {
  if (!window.ServiceWorkerRegistration) return; // An empty page has none.
  const show = ServiceWorkerRegistration.prototype.showNotification;
  ServiceWorkerRegistration.prototype.showNotification = function (title, options) {
    window.notified(options.tag);
    return show.call(this, title, options);
  };
})()"""
PRESSED = """async tag => {
  const [notification] = await self.registration.getNotifications({ tag });
  self.dispatchEvent(new NotificationEvent('notificationclick', { notification }));
}"""


def told(page: Page, lasting: Serving) -> None:
    page.add_init_script(ANDROID)
    page.context.grant_permissions(["notifications"], origin=lasting.url)
    page.goto(lasting.url)
    page.evaluate("localStorage.setItem('holdfast.notify', 'yes')")
    page.reload()
    page.get_by_test_id("composer").wait_for()


def asked_meanwhile(lasting: Serving) -> str:
    """Somebody is asked something in a conversation that is not open."""
    session = lasting.new_session()
    lasting.post(session, "ask Red or blue?")
    return session


def test_a_phone_whose_browser_takes_notifications_only_from_the_worker_is_told_and_led_there(
    browser: Browser, lasting: Serving, signed_in: StorageState
) -> None:
    with tab(browser, signed_in) as page:
        told(page, lasting)
        page.evaluate("async () => { await navigator.serviceWorker.ready }")
        page.evaluate(HIDDEN)
        session = asked_meanwhile(lasting)
        row = page.locator(f'[data-testid="conversation-item"][data-session-id="{session}"]')
        expect(row).to_have_attribute("data-state", "waiting", timeout=WAIT_MS)
        assert page.evaluate(SHOWN, session) == "ask Red or blue? asks you something"
        page.context.service_workers[0].evaluate(PRESSED, session)
        expect(page).to_have_url(re.compile(session), timeout=WAIT_MS)


def test_a_browser_that_shows_no_notification_still_follows_the_list(browser: Browser, lasting: Serving, signed_in: StorageState) -> None:
    """An exception there must not look like a connection that broke."""
    with tab(browser, signed_in, service_workers="block") as page:
        told(page, lasting)
        expect(page.get_by_test_id("connection")).to_have_attribute("data-state", "live", timeout=WAIT_MS)
        page.evaluate(HIDDEN)
        streams: list[str] = []
        page.on("request", lambda request: streams.append(request.url) if "/api/events" in request.url else None)
        session = asked_meanwhile(lasting)
        row = page.locator(f'[data-testid="conversation-item"][data-session-id="{session}"]')
        expect(row).to_have_attribute("data-state", "waiting", timeout=WAIT_MS)
        expect(page.get_by_test_id("connection")).to_have_attribute("data-state", "live")
        assert streams == []


def told_of(page: Page, session: str) -> None:
    """Waits until the page shows that somebody is asked there, and the browser shows a notification of it."""
    row = page.locator(f'[data-testid="conversation-item"][data-session-id="{session}"]')
    expect(row).to_have_attribute("data-state", "waiting", timeout=WAIT_MS)
    page.wait_for_function("async tag => (await (await navigator.serviceWorker.ready).getNotifications({ tag })).length > 0", arg=session)


def test_of_two_hidden_tabs_one_stays_connected_and_tells_once_and_the_other_takes_over_when_it_is_closed(
    browser: Browser, lasting: Serving, signed_in: StorageState
) -> None:
    """By a lock that the tabs share. Whoever takes over does not tell again what was told already."""
    with tab(browser, signed_in) as first:
        context = first.context
        shown: list[tuple[Page, str]] = []
        streams: list[Request] = []

        def notified(source: dict[str, Any], session: str) -> None:
            shown.append((source["page"], session))

        context.expose_binding("notified", notified)
        context.add_init_script(COUNTED)
        told(first, lasting)
        first.evaluate("async () => { await navigator.serviceWorker.ready }")
        context.on("request", lambda request: streams.append(request) if "/api/events" in request.url else None)
        context.on("requestfailed", lambda request: streams.remove(request) if request in streams else None)
        second = context.new_page()
        second.clock.install()
        for page in (first, second):
            page.goto(lasting.url)
            expect(page.get_by_test_id("connection")).to_have_attribute("data-state", "live", timeout=WAIT_MS)
        for page in (first, second):
            page.evaluate(HIDDEN)
        second.clock.run_for(70_000)
        deadline = time.monotonic() + WAIT_MS / 1000
        while [request.frame.page for request in streams] != [first]:
            assert time.monotonic() < deadline, streams
            second.wait_for_timeout(20)
        expect(first.get_by_test_id("connection")).to_have_attribute("data-state", "live", timeout=WAIT_MS)
        session = asked_meanwhile(lasting)
        told_of(first, session)
        assert shown == [(first, session)]

        with second.expect_request(re.compile("/api/events")):
            first.close()
        told_of(second, session)
        later = asked_meanwhile(lasting)
        told_of(second, later)
        assert shown == [(first, session), (second, later)]
