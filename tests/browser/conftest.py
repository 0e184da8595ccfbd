"""A real Chromium against a real Holdfast process."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.e2e.serving import Serving

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
]


def chromium() -> str:
    path = os.environ.get("HOLDFAST_TEST_BROWSER") or shutil.which("chromium") or shutil.which("google-chrome")
    assert path, "No Chromium here: `./run test` installs it."
    return path


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Serving]:
    with Serving(tmp_path / "home") as serving:
        yield serving


@pytest.fixture
def page(browser: Browser, serving: Serving) -> Iterator[Page]:
    """Signed in by the address that `serve` printed, as a person would."""
    context = browser.new_context(viewport={"width": 1200, "height": 800})
    page = context.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(printed_address(serving))
    page.get_by_test_id("composer").wait_for()
    yield page
    context.close()
    assert not problems, problems


def printed_address(serving: Serving) -> str:
    return next(word for word in serving.output().split() if "#code=" in word)
