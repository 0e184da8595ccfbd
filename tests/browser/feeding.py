"""A conversation of which the test itself is the server: what the page is shown at first, and then event by event, as fast as it likes."""

import json
import re
from collections.abc import Iterable
from typing import Any

from playwright.sync_api import Page, expect

from tests.browser.acting import WAIT_MS
from tests.e2e.serving import Serving

# The one stream of the page is ours. `fed` resolves once two frames have been drawn since.
STREAM = """(() => {
  const real = window.fetch.bind(window);
  const encoder = new TextEncoder();
  window.fetch = (path, init) => {
    if (!String(path).startsWith('/api/events')) return real(path, init);
    const stream = new ReadableStream({ start(controller) {
      window.feed = text => controller.enqueue(encoder.encode(text));
      init.signal.addEventListener('abort', () => controller.error(new Error('aborted')));
    } });
    return Promise.resolve(new Response(stream, { status: 200, headers: { 'content-type': 'text/event-stream' } }));
  };
  const frame = () => new Promise(requestAnimationFrame);
  window.fed = async texts => { for (const text of texts) { window.feed(text); await frame(); await frame(); } };
})()"""
SHOWN = re.compile(r"/api/sessions/[^/]+\?messages=")


class Fed:
    """A conversation with one answer that is being written."""

    def __init__(self, page: Page, serving: Serving) -> None:
        self._page, self._serving = page, serving
        session_id = serving.new_session()
        serving.post(session_id, "hello")
        self._session = serving.wait_for(session_id)
        self._turn: dict[str, Any] = self._session["turns"][0] | {"state": "running", "outcome": None, "ended_at": None}
        self._log, _, seq = self._session["cursor"].rpartition(".")
        self._seq = int(seq)
        page.add_init_script(STREAM)

    def show(self, *texts: str) -> None:
        """With an answer whose steps say this so far."""
        turn_id = self._turn["id"]
        parts = [{"type": "text", "id": f"{turn_id}.{step}.0", "step": step, "text": text} for step, text in enumerate(texts)]
        answer = {"parts": parts, "text": "".join(texts[-1:]), "status": "partial"}
        messages = [message | (answer if message["role"] == "assistant" else {}) for message in self._session["messages"]]
        shown = json.dumps(self._session | {"messages": messages, "turns": [self._turn], "state": "running"})
        self._page.unroute_all()
        self._page.route(SHOWN, lambda route: route.fulfill(status=200, content_type="application/json", body=shown))
        self._page.goto(f"{self._serving.url}/s/{self._session['session_id']}")
        expect(self._page.get_by_test_id("connection")).to_have_attribute("data-state", "live", timeout=WAIT_MS)

    def piece(self, text: str, offset: int, step: int = 0) -> str:
        self._seq += 1
        data = {"turn_id": self._turn["id"], "attempt": 1, "step": step, "offset": offset, "text": text, "at": self._turn["started_at"]}
        return f"id: {self._log}.{self._seq}\nevent: text\ndata: {json.dumps(data)}\n\n"

    def snapshot(self, text: str) -> str:
        """The session as it is now, with an answer that says this."""
        self._seq += 1
        answer = {"parts": [{"type": "text", "id": f"{self._turn['id']}.0.0", "step": 0, "text": text}], "text": text, "status": "partial"}
        messages = [message | (answer if message["role"] == "assistant" else {}) for message in self._session["messages"]]
        shown = json.dumps(self._session | {"messages": messages, "turns": [self._turn], "state": "running"})
        return f"id: {self._log}.{self._seq}\nevent: snapshot\ndata: {shown}\n\n"

    def feed(self, pieces: Iterable[str]) -> None:
        """One after the other, each drawn before the next comes."""
        self._page.evaluate("texts => window.fed(texts)", list(pieces))
