"""Rows of the page: what it asks a server with a long past, and what a real browser needs to open a long conversation and to draw a piece.

Times of the browser are processor time of the page's own thread. They need Chromium and the development packages.
"""

import os
import shutil
import time
from collections.abc import Callable
from typing import Any

import uvloop

from bench import prepared
from bench.figures import Figure, Skipped, at_most, plain
from bench.load import Address, Api
from bench.serving import Serving
from bench.setting import Setting

FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-dev-shm-usage"]
PAGE = 100
PIECES, PIECE_S = 200, 0.02
WAIT_MS = 120_000


def asked(setting: Setting) -> list[Figure]:
    """As the page asks: a search with marked excerpts, the list, and the end of a long conversation."""
    sizes = setting.sizes
    home = setting.big_home()
    long = prepared.long_conversation(home, messages=sizes.conversation)
    common, rare = prepared.WORDS[0], prepared.WORDS[-1000]
    paths = {
        "search a common word": f"/api/search?q={common}&limit=30",
        "search a rare word": f"/api/search?q={rare}&limit=30",
        "list": "/api/sessions?limit=100",
        "open": f"/api/sessions/{long}?messages={PAGE}",
    }

    async def requests(address: Address) -> dict[str, list[float]]:
        took: dict[str, list[float]] = {}
        async with Api(address) as api:
            for name, path in paths.items():
                took[name] = [await _timed(api, path) for _ in range(sizes.searches)]
        return took

    def once() -> dict[str, list[float]]:
        with Serving(home, profiles=setting.profiles) as server:
            return uvloop.run(requests(server.address))

    found = setting.measure(once)
    setting.drop(home)
    return [
        at_most(f"search {sizes.messages:,} messages, a common word", "ms", [each["search a common word"] for each in found], 50.0),
        at_most(f"search {sizes.messages:,} messages, a rare word", "ms", [each["search a rare word"] for each in found], 25.0),
        at_most(f"list 100 of {sizes.sessions:,} conversations", "ms", [each["list"] for each in found], 50.0),
        at_most(f"the last {PAGE} of {sizes.conversation:,} messages", "ms", [each["open"] for each in found], 500.0),
    ]


async def _timed(api: Api, path: str) -> float:
    began = time.perf_counter()
    status, _ = await api.request("GET", path)
    if status != 200:
        raise RuntimeError(f"{path}: {status}")
    return 1000 * (time.perf_counter() - began)


def drawn(setting: Setting) -> list[Figure]:
    """In a browser: opening a long conversation, and each piece of an answer, at its end and in a new one."""
    sizes = setting.sizes
    home = setting.home()
    long = prepared.long_conversation(home, messages=sizes.conversation)

    def once() -> dict[str, float]:
        with Serving(home, profiles=setting.profiles) as server:
            return _looked_at(server.address, long)

    found = setting.measure(once)
    setting.drop(home)
    return [
        at_most(f"opening a conversation of {sizes.conversation:,} messages", "ms", [[each["open"]] for each in found], 1000.0),
        at_most("a piece at its end", "ms", [[each["piece, long"]] for each in found], 5.0),
        plain("a piece in a new conversation", "ms", [[each["piece, new"]] for each in found]),
    ]


def _looked_at(address: Address, long: str) -> dict[str, float]:
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        raise Skipped("Playwright is not installed") from None
    browser_path = os.environ.get("HOLDFAST_TEST_BROWSER") or shutil.which("chromium") or shutil.which("google-chrome")
    if browser_path is None:
        raise Skipped("there is no Chromium")
    url = f"http://{address.host}:{address.port}"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path, args=FLAGS)
        page = browser.new_page()
        page.goto(url)
        page.get_by_label("Link or token").fill(address.token)
        page.get_by_test_id("sign-in").click()
        page.get_by_test_id("composer").wait_for(timeout=WAIT_MS)
        used = _thread_time(page)
        took: dict[str, float] = {}
        before = used()
        page.goto(f"{url}/s/{long}")
        page.locator('[data-testid="message"][data-role="assistant"]').last.wait_for(timeout=WAIT_MS)
        page.get_by_test_id("composer").wait_for(timeout=WAIT_MS)
        took["open"] = 1000 * (used() - before)
        took["piece, long"] = _piece_ms(page, used)
        page.get_by_test_id("new-conversation").click()
        took["piece, new"] = _piece_ms(page, used)
        browser.close()
    return took


def _thread_time(page: Any) -> Callable[[], float]:
    """Seconds that the page's main thread has computed."""
    inspector = page.context.new_cdp_session(page)
    inspector.send("Performance.enable", {"timeDomain": "threadTicks"})

    def used() -> float:
        return float(next(each["value"] for each in inspector.send("Performance.getMetrics")["metrics"] if each["name"] == "TaskDuration"))

    return used


def _piece_ms(page: Any, used: Callable[[], float]) -> float:
    answers = page.locator('[data-testid="message"][data-role="assistant"]')
    answer = answers.nth(answers.count())  # The last one may say the same, from an earlier repeat.
    page.get_by_test_id("composer").fill(f"count {PIECES} {PIECE_S}")
    page.get_by_test_id("composer").press("Enter")
    answer.get_by_text("1 2 3 4 5").wait_for(timeout=WAIT_MS)
    before = used()
    answer.get_by_text(f"{PIECES - 1} {PIECES}").wait_for(timeout=WAIT_MS)
    return 1000 * (used() - before) / (PIECES - 5)
