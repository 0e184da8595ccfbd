"""Makes the pictures of the page for the README and the documentation: a real server, a real browser, a real kill. Light and dark, wide and
narrow, empty and full, with the server away. Run it with `.venv/bin/python -m scripts.screenshots`.
"""

import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from tests.browser.acting import send
from tests.browser.conftest import FLAGS, chromium, printed_address
from tests.e2e.serving import Serving

IMAGES = Path(__file__).parents[1] / "docs" / "images"
WIDE, NARROW = {"width": 1280, "height": 800}, {"width": 390, "height": 780}


def shot(page: Page, name: str, *schemes: str) -> None:
    for scheme in schemes or ("light", "dark"):
        page.emulate_media(color_scheme="dark" if scheme == "dark" else "light", reduced_motion="reduce")
        page.wait_for_timeout(150)
        page.screenshot(path=IMAGES / f"{name}-{scheme}.png")


def play(page: Page, serving: Serving) -> None:
    """What the tour in the README does: an answer interrupted by a kill, commands, an approval, a question."""
    send(page, "ask Which week should the notes cover?")
    page.get_by_test_id("question").wait_for()
    page.get_by_test_id("new-conversation").click()
    send(page, "run uname -sr && sleep 0.4 && date -u +%Y")
    page.locator('[data-testid="tool-card"][data-outcome="done"]').wait_for()
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
    with tempfile.TemporaryDirectory() as folder, Serving(Path(folder) / "home") as serving, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        context = browser.new_context(viewport=WIDE, device_scale_factor=1.5)  # type: ignore[arg-type]
        page = context.new_page()
        page.goto(printed_address(serving))
        page.get_by_test_id("kill").wait_for()
        shot(page, "first-run")
        play(page, serving)
        page.get_by_test_id("what-happened").click()
        page.get_by_test_id("story").wait_for()
        shot(page, "page")
        page.set_viewport_size(NARROW)  # type: ignore[arg-type]
        shot(page, "phone-turn", "dark")
        page.get_by_test_id("close-details").click()
        page.wait_for_timeout(400)
        shot(page, "page-phone", "light")
        page.set_viewport_size({"width": 1280, "height": 1000})
        page.goto(f"{serving.url}/operations")
        page.get_by_test_id("day").get_by_role("img").wait_for()
        shot(page, "operations")
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
