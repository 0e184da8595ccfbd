"""The watch around every browser test: what it has to find."""

import contextlib
import time

from playwright.sync_api import Browser, Error, StorageState

from tests.browser.acting import WAIT_MS
from tests.browser.conftest import watched
from tests.e2e.serving import Serving

FAULTS = {
    "policy": "document.body.append(Object.assign(document.createElement('script'), { textContent: 'window.ran = true' }))",
    "error": "setTimeout(() => { throw new Error('planted') })",
    "console": "console.error('planted')",
    "request": "location.href = 'http://localhost:9/elsewhere'",
}


def test_a_broken_policy_an_error_a_complaint_and_a_request_to_another_server_are_all_found(
    browser: Browser, lasting: Serving, signed_in: StorageState
) -> None:
    """Without this, a test that sees nothing wrong may only have looked away."""
    for name, fault in FAULTS.items():
        with browser.new_context(storage_state=signed_in, service_workers="block") as context:
            problems = watched(context)
            page = context.new_page()
            page.goto(lasting.url)
            page.get_by_test_id("composer").wait_for(timeout=WAIT_MS)
            assert problems == []
            with contextlib.suppress(Error):  # One of them leaves the page while it is evaluated.
                page.evaluate(f"() => {{ {fault} }}")
            deadline = time.monotonic() + WAIT_MS / 1000
            while not any(each.startswith(f"{name}: ") for each in problems):
                assert time.monotonic() < deadline, (name, problems)
                page.wait_for_timeout(20)
