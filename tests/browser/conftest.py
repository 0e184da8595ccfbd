"""A real Chromium against a real Holdfast process."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, StorageState, expect, sync_playwright

from tests.browser.acting import WAIT_MS
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


AXE = Path(__file__).parent / "node_modules" / "axe-core" / "axe.min.js"
EVERYTHING = {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}

Check = Callable[..., None]


def chromium() -> str:
    path = os.environ.get("HOLDFAST_TEST_BROWSER") or shutil.which("chromium") or shutil.which("google-chrome")
    assert path, "No Chromium here: `./run test` installs it."
    return path


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    expect.set_options(timeout=WAIT_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """One process for all tests that leave it alive; each test has conversations of its own."""
    with Serving(tmp_path_factory.mktemp("lasting") / "home") as serving:
        yield serving


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Serving]:
    """A process of the test's own, to be killed."""
    with Serving(tmp_path / "home") as serving:
        yield serving


@pytest.fixture(scope="session")
def signed_in(browser: Browser, lasting: Serving) -> StorageState:
    """What a browser keeps that has signed in once."""
    context = browser.new_context()
    page = context.new_page()
    with page.expect_response("**/api/login"):  # The page is drawn before that.
        page.goto(printed_address(lasting))
    state = context.storage_state()
    context.close()
    return state


@pytest.fixture
def page(browser: Browser, lasting: Serving, signed_in: StorageState) -> Iterator[Page]:
    with tab(browser, signed_in) as page:
        page.goto(lasting.url)
        page.get_by_test_id("composer").wait_for()
        yield page


@pytest.fixture
def own_page(browser: Browser, serving: Serving) -> Iterator[Page]:
    """Signed in by the address that `serve` printed, as a person would."""
    with tab(browser) as page:
        page.goto(printed_address(serving))
        page.get_by_test_id("composer").wait_for()
        yield page


@contextmanager
def tab(browser: Browser, state: StorageState | None = None, **options: Any) -> Iterator[Page]:
    """A page under watch: it may not throw, complain, break the server's policy, or ask any other server for anything."""
    context = browser.new_context(**({"viewport": {"width": 1200, "height": 800}} | options), storage_state=state)
    context.set_default_timeout(WAIT_MS)
    problems = watched(context)
    yield context.new_page()
    context.close()
    assert not problems, problems


# What a browser says of a server that is killed, or that refuses: the page shows both in its own words.
EXPECTED = "Failed to load resource"


def watched(context: BrowserContext) -> list[str]:
    """What is wrong with the pages of a context, as it happens. Listens before the first script of a page runs."""
    problems: list[str] = []
    context.expose_binding("violated", lambda _, what: problems.append(f"policy: {what}"))
    context.add_init_script(
        "document.addEventListener('securitypolicyviolation', e => window.violated(e.violatedDirective + ' ' + e.blockedURI))"
    )
    context.on("weberror", lambda error: problems.append(f"error: {error.error}"))
    context.on(
        "console",
        lambda message: problems.append(f"console: {message.text}") if message.type == "error" and EXPECTED not in message.text else None,
    )
    context.on("request", lambda request: problems.append(f"request: {request.url}") if _is_foreign(request.url) else None)
    return problems


def _is_foreign(url: str) -> bool:
    return not url.startswith(("http://127.0.0.1:", "data:", "blob:"))


def printed_address(serving: Serving) -> str:
    return next(word for word in serving.output().split() if "#code=" in word)


@pytest.fixture(scope="session")
def check() -> Check:
    """Fails with what axe found on the page as it is now."""
    assert AXE.exists(), "Axe is not here: `./run test tests/browser` installs it."
    source = AXE.read_text()

    def found(page: Page, where: str, only: dict[str, Any] = EVERYTHING) -> None:
        if not page.evaluate("'axe' in window"):
            page.evaluate(source)
        result: Any = page.evaluate("only => axe.run(document, {runOnly: only, resultTypes: ['violations']})", only)
        problems = [f"{each['id']}: {[node['target'] for node in each['nodes']]}" for each in result["violations"]]
        assert not problems, f"{where}: {problems}"

    return found
