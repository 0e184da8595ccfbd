"""What a person does on the page and looks at, in the words of the tests."""

import re

from playwright.sync_api import Locator, Page

WAIT_MS = 60_000


def send(page: Page, text: str) -> None:
    page.get_by_test_id("composer").fill(text)
    page.get_by_test_id("composer").press("Enter")


def answers(page: Page) -> Locator:
    return page.locator('[data-testid="message"][data-role="assistant"]')


def words(page: Page) -> str:
    """What the first answer says, without the interruptions and calls that stand in it."""
    return " ".join(" ".join(answers(page).first.locator(".prose").all_inner_texts()).split())


def notices(page: Page) -> Locator:
    return page.locator('[data-testid="message"][data-role="notice"]')


def said(page: Page, status: str) -> Locator:
    return page.locator(f'[data-testid="message"][data-role="user"][data-status="{status}"]')


def open_session(page: Page) -> str:
    page.wait_for_url(re.compile(r"/s/"))
    return page.url.rsplit("/", 1)[1]


def go_to(page: Page, session: str) -> None:
    page.locator(f'[data-session-id="{session}"] > a').click()
