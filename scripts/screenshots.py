"""Makes the README's pictures: a real server, a real browser, a real kill. Run it with `.venv/bin/python -m scripts.screenshots`."""

import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from tests.browser.acting import send
from tests.browser.conftest import FLAGS, chromium, printed_address
from tests.e2e.serving import Serving

IMAGES = Path(__file__).parents[1] / "docs" / "images"
SIZE = {"width": 1180, "height": 760}


def play(page: Page, serving: Serving) -> None:
    """What the tour in the README does: an answer interrupted by a kill, a command, a question."""
    send(page, "run uname -sr && date -u +%Y")
    page.locator('[data-testid="tool-card"][data-outcome="done"]').wait_for()
    send(page, "count 60 0.05")
    page.get_by_text("1 2 3 4 5 6 7 8 9 10", exact=False).last.wait_for()
    serving.kill()
    page.locator('[data-testid="connection"][data-state="reconnecting"]').wait_for()
    serving.start()
    page.get_by_text("58 59 60", exact=False).last.wait_for()
    send(page, "ask Shall I continue?")
    page.get_by_test_id("question").wait_for()


def main() -> int:
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, Serving(Path(folder) / "home") as serving, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        context = browser.new_context(viewport=SIZE, color_scheme="light", device_scale_factor=1.5)  # type: ignore[arg-type]
        page = context.new_page()
        page.goto(printed_address(serving))
        page.get_by_test_id("composer").wait_for()
        play(page, serving)
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            page.screenshot(path=IMAGES / f"page-{scheme}.png")
        page.set_viewport_size({"width": 390, "height": 780})
        page.wait_for_timeout(600)  # The list slides away.
        page.screenshot(path=IMAGES / "page-phone.png")
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
