"""Makes the pictures of the page for the README and the documentation: a real server, a real browser, a real kill. Every view light and
dark, wide and narrow. Run it with `.venv/bin/python -m scripts.screenshots`; it replaces `docs/images`.
"""

import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from tests.browser.acting import open_session, send
from tests.browser.conftest import FLAGS, chromium, printed_address
from tests.e2e.serving import Serving

IMAGES = Path(__file__).parents[1] / "docs" / "images"
WIDE, NARROW = {"width": 1280, "height": 800}, {"width": 390, "height": 780}
TALL = {"width": 1280, "height": 1480}
# Enough for the small lines of the operator's view to be lines.
MEASURED_MS = 35_000


def shot(page: Page, name: str, *, tall: bool = False) -> None:
    for width, size in (("", TALL if tall else WIDE), ("-phone", NARROW)):
        page.set_viewport_size(size)  # type: ignore[arg-type]
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme="dark" if scheme == "dark" else "light", reduced_motion="reduce")
            page.wait_for_timeout(250)
            page.screenshot(path=IMAGES / f"{name}{width}-{scheme}.png")
    page.set_viewport_size(WIDE)  # type: ignore[arg-type]


def name(page: Page, serving: Serving, title: str) -> None:
    """As a model would: the demo agent makes no titles."""
    with serving.client() as client:
        client.patch(f"/api/sessions/{open_session(page)}", json={"title": title}).raise_for_status()


def play(page: Page, serving: Serving) -> None:
    """What the tour in the README does: an answer interrupted by a kill, commands, an approval, a question."""
    send(page, "ask Which week should the notes cover?")
    page.get_by_test_id("question").wait_for()
    name(page, serving, "Notes of the week")
    page.get_by_test_id("new-conversation").click()
    send(page, "/remind every day at 9:00 Write the notes of the day")
    page.locator('[data-testid="message"][data-role="notice"]').first.wait_for()
    name(page, serving, "Release 0.7 to staging")
    send(page, "run uname -sr && sleep 0.4 && date -u +%Y")
    page.locator('[data-testid="tool-card"][data-outcome="done"]').wait_for()
    send(page, "background sleep 600")
    send(page, "count 60 0.05")
    page.get_by_text("1 2 3 4 5 6 7 8 9 10", exact=False).last.wait_for()
    serving.kill()
    page.get_by_test_id("away").get_by_text("Holdfast is not answering").wait_for()
    page.wait_for_timeout(400)
    shot(page, "away")
    serving.start()
    page.get_by_text("58 59 60", exact=False).last.wait_for()
    send(page, "approve ./deploy staging 0.7.0 --hand-over")
    page.get_by_test_id("approval").wait_for()


def main() -> int:
    IMAGES.mkdir(exist_ok=True)
    for old in IMAGES.glob("*.png"):
        old.unlink()
    with tempfile.TemporaryDirectory() as folder, Serving(Path(folder) / "home") as serving, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        page = browser.new_page(viewport=WIDE)  # type: ignore[arg-type]
        page.goto(serving.url)
        page.get_by_test_id("token").wait_for()
        shot(page, "sign-in")
        page.goto(printed_address(serving))
        page.get_by_test_id("kill").wait_for()
        shot(page, "first-run")
        play(page, serving)
        shot(page, "page")
        page.keyboard.press("Control+k")
        page.get_by_test_id("palette-field").wait_for()
        shot(page, "palette")
        page.keyboard.press("Escape")
        page.get_by_test_id("what-happened").click()
        page.get_by_test_id("story").wait_for()
        shot(page, "turn")
        page.goto(f"{serving.url}/operations")
        page.get_by_test_id("day").get_by_role("img").wait_for()
        page.wait_for_timeout(MEASURED_MS)
        shot(page, "operations", tall=True)
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
