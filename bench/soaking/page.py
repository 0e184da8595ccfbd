"""`./run soak --page [--seconds N]`: the page in a real Chromium. First how soon it paints on a slow device and line; then, while 200
pieces a second are written into ten conversations, its frames for a minute, and those of a blank page next to it; then what it holds
(its heap, the nodes of its documents and their listeners), again and again after the garbage was collected, while conversations come and
go and the page is seen to follow them. An hour is `--seconds 3600`.
"""

import contextlib
import http.client
import json
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from playwright.sync_api import Browser, CDPSession, Page, StorageState, sync_playwright

from bench.load import Address
from bench.profiling import Profiles
from bench.serving import Serving

FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-dev-shm-usage"]
CONVERSATIONS, EACH_S = 10, 0.05
SECONDS, FRAMES_S = 150.0, 60.0
# New conversations take the place of the old ones so often. A page keeps what it showed last: the first of these stay for a while.
STAY_S, SAMPLE_S = 15.0, 5.0
# A page keeps this many conversations that it showed: until it has shown so many, it grows without a fault.
KEPT = 20
SAY_S = 300.0
SLOW_FRAMES = 0.01
# How much higher the last third of the samples may lie than the one before it.
GROWTH, GROWTH_BYTES, GROWTH_COUNT = 1.05, 500_000, 500
# The part of what is written that a page has to show, however busy the machine is: one that stands still holds on to nothing, either.
FOLLOWED = 0.3
# A quarter of the processor, 10 Mbit/s, 40 ms; of several tries the best.
SLOWER, LINE_BYTES_S, LATENCY_MS = 4, 10_000_000 / 8, 40
PAINT_MS, PAINT_TRIES = 1500.0, 5
WAIT_MS = 120_000
BLANK = "data:text/html,<p>nothing happens here"
FIRST_PAINT = """() => new Promise(done => new PerformanceObserver(list => {
  for (const each of list.getEntriesByName('first-contentful-paint')) done(each.startTime);
}).observe({type: 'paint', buffered: true}))"""
COUNT_FRAMES = """() => {
  window.gaps = [];
  let last = performance.now();
  const frame = now => { window.gaps.push(now - last); last = now; window.framed = requestAnimationFrame(frame); };
  window.framed = requestAnimationFrame(frame);
}"""
COUNTED = "() => { cancelAnimationFrame(window.framed); return window.gaps.filter(gap => gap > 50).length / window.gaps.length; }"


class Meter:
    """What a page has used: processor time of its main thread, and its heap."""

    def __init__(self, page: Page) -> None:
        self._inspector: CDPSession = page.context.new_cdp_session(page)
        self._inspector.send("Performance.enable", {"timeDomain": "threadTicks"})

    def _metric(self, name: str) -> float:
        found: Any = self._inspector.send("Performance.getMetrics")
        return float(next(each["value"] for each in found["metrics"] if each["name"] == name))

    @property
    def used_s(self) -> float:
        return self._metric("TaskDuration")

    def cost(self, work: Callable[[], object]) -> float:
        before = self.used_s
        work()
        return self.used_s - before

    def heap_bytes(self) -> float:
        """Of what is in use. What one collection sets free, the next one may find."""
        for _ in range(2):
            self._inspector.send("HeapProfiler.collectGarbage")
        return self._metric("JSHeapUsedSize")

    def held(self) -> "Held":
        return Held(self.heap_bytes(), self._metric("Nodes"), self._metric("JSEventListeners"))


def painted_ms(page: Page, url: str) -> float:
    """When a tab that fetches everything anew shows something, on a slow device and line."""
    inspector = page.context.new_cdp_session(page)
    line = {"offline": False, "latency": LATENCY_MS, "downloadThroughput": LINE_BYTES_S, "uploadThroughput": LINE_BYTES_S}
    inspector.send("Network.enable")
    inspector.send("Network.emulateNetworkConditions", line)
    inspector.send("Emulation.setCPUThrottlingRate", {"rate": SLOWER})
    page.goto(url)
    return float(page.evaluate(FIRST_PAINT))


def slow_frames(*pages: Page, wait: Callable[[], object]) -> list[float]:
    """Of each page, which part of its frames took over 50 ms meanwhile."""
    for page in pages:
        page.evaluate(COUNT_FRAMES)
    wait()
    return [float(page.evaluate(COUNTED)) for page in pages]


def grown(samples: Sequence[float]) -> tuple[float, float]:
    """The middle and the last third of the samples, each by its median: what came first is the page warming up."""
    third = len(samples) // 3
    return statistics.median(samples[third : 2 * third]), statistics.median(samples[2 * third :])


def is_flat(samples: Sequence[float], slack: float = GROWTH_BYTES) -> bool:
    middle, last = grown(samples)
    return last <= GROWTH * middle + slack


def hourly(samples: Sequence[float], each_s: float) -> float:
    """By how much they grow in an hour: the middle one of the slopes between any two of the last two thirds, which no few outliers move."""
    later = samples[len(samples) // 3 :]
    slopes = [(later[j] - later[i]) / (j - i) for i in range(len(later)) for j in range(i + 1, len(later))]
    return statistics.median(slopes) * 3600 / each_s


class Held(msgspec.Struct, frozen=True):
    """What a page holds after its garbage was collected. `nodes`, `listeners`: also of what is not shown; the heap has little of it."""

    heap: float
    nodes: float
    listeners: float


class Seen(msgspec.Struct, frozen=True):
    """`paint_ms`: its best first paint, and that of a line of text. `slow` and `blank`: slow frames of the page in `frames_s`, and of a
    blank one at the same time; `computed`: the part of that time in which the page's thread had a processor, drawing included. `held`:
    samples, `each_s` apart. `followed`: of each stay, which part of what was written the page showed. `complaints`: errors in the page.
    """

    paint_ms: tuple[float, float]
    frames_s: float
    slow: float
    blank: float
    computed: float
    held: list[Held]
    each_s: float
    followed: list[float]
    complaints: list[str]

    @property
    def heap(self) -> list[float]:
        return [each.heap for each in self.held]

    @property
    def wrong(self) -> list[str]:
        middle, last = grown(self.heap)
        return [
            *([f"the first paint took {self.paint_ms[0]:.0f} ms"] if self.paint_ms[0] > PAINT_MS else []),
            *([f"{self.slow:.1%} of the frames took over 50 ms{self._busy}"] if self.slow > SLOW_FRAMES else []),
            *([f"the heap grew from {_mb(middle)} to {_mb(last)}"] if not is_flat(self.heap) else []),
            *(
                f"the page kept {name} that it no longer shows: {_third(counts, 0)}, then {_third(counts, 1)}"
                for name, counts in self._counts.items()
                if not is_flat(counts, GROWTH_COUNT)
            ),
            *([f"in {len(self._lost)} of {len(self.followed)} stays the page did not follow"] if self._lost else []),
            *(f"the page complained: {each}" for each in self.complaints[:5]),
        ]

    @property
    def telling(self) -> bool:
        """Whether it lasted long enough to tell a leak: the second and the last third lie behind what a page keeps on purpose."""
        return len(self.held) * self.each_s >= 3 * KEPT * STAY_S

    def lines(self) -> list[str]:
        middle, last = grown(self.heap)
        low, high = min(self.heap), max(self.heap)
        slope = f"{hourly(self.heap, self.each_s) / 1e6:+.2f} MB an hour, without the first third"
        short = f"too short to tell a slow leak, which takes {3 * KEPT * STAY_S / 60:.0f} minutes"  # A page fills what it keeps at first.
        return [
            f"first paint   {self.paint_ms[0]:.0f} ms; a line of text {self.paint_ms[1]:.0f} ms",
            f"slow frames   {self.slow:.2%} in {self.frames_s:.0f} s; of a blank page {self.blank:.2%}",
            f"              in that time the page's thread had a processor for {self.computed:.1%}",
            f"heap          {_mb(self.heap[0])} at first, {_mb(middle)} in the middle, {_mb(last)} at last; from {_mb(low)} to {_mb(high)}",
            f"              {slope if self.telling else short}; {len(self.heap)} samples",
            *(f"{name:13} {_third(counts, 0)} in the middle, {_third(counts, 1)} at last" for name, counts in self._counts.items()),
            f"followed      {min(self.followed):.0%} of what was written at the least, in {len(self.followed)} stays",
        ]

    @property
    def _counts(self) -> dict[str, list[float]]:
        return {"nodes": [each.nodes for each in self.held], "listeners": [each.listeners for each in self.held]}

    @property
    def _lost(self) -> list[float]:
        return [each for each in self.followed if each < FOLLOWED]

    @property
    def _busy(self) -> str:
        return f"; so did {self.blank:.1%} of those of a blank page: this machine is too busy to tell" if self.blank > SLOW_FRAMES else ""


def main(seconds: float) -> int:
    with tempfile.TemporaryDirectory(prefix="holdfast-page-") as name:
        folder = Path(name)
        with Serving(folder / "home", profiles=Profiles(folder / "profiles", wanted=False)) as server, chromium() as browser:
            found = watch(browser, server.address, seconds)
    print(*found.lines(), sep="\n")
    print(*(f"- {each}" for each in found.wrong), f"{'FAIL' if found.wrong else 'PASS'}: ./run soak --page --seconds {seconds:g}", sep="\n")
    return 1 if found.wrong else 0


@contextlib.contextmanager
def chromium() -> Iterator[Browser]:
    path = os.environ.get("HOLDFAST_TEST_BROWSER") or shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


def watch(browser: Browser, address: Address, seconds: float) -> Seen:
    url = f"http://{address.host}:{address.port}"
    page, blank = browser.new_page(), browser.new_page()
    blank.goto(BLANK)
    page.goto(url)
    page.get_by_label("Link or token").fill(address.token)
    page.get_by_test_id("sign-in").click()
    page.get_by_test_id("composer").wait_for(timeout=WAIT_MS)
    state = page.context.storage_state()
    paints = [(_painted(browser, state, url), _painted(browser, state, f"{url}/healthz")) for _ in range(PAINT_TRIES)]
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    meter, frames_s = Meter(page), min(FRAMES_S, seconds / 2)
    began = said = time.monotonic()
    with streaming(address, page):
        used_s = meter.used_s
        slow, idle = slow_frames(page, blank, wait=lambda: page.wait_for_timeout(1000 * frames_s))
        computed = (meter.used_s - used_s) / frames_s
    samples: list[Held] = []
    followed: list[float] = []
    first = time.monotonic()
    while len(samples) < 6 or time.monotonic() - began < seconds:
        with streaming(address, page):
            shown, since = pieces(page), time.monotonic()
            while time.monotonic() < since + STAY_S:
                page.wait_for_timeout(1000 * SAMPLE_S)
                samples.append(meter.held())
            followed.append((pieces(page) - shown) * EACH_S / (time.monotonic() - since))
        if time.monotonic() - said >= SAY_S:  # Whoever ends an hour early knows this much.
            said = time.monotonic()
            last = samples[-1]
            held = f"heap {_mb(last.heap)}, {last.nodes:,.0f} nodes, {last.listeners:,.0f} listeners"
            print(f"{(said - began) / 60:4.0f} min      {held}", flush=True)
    each_s = (time.monotonic() - first) / len(samples)
    best = min(ours for ours, _ in paints), min(text for _, text in paints)
    return Seen(best, frames_s, slow, idle, computed, samples, each_s, followed, complaints)


def pieces(page: Page) -> int:
    """How many of them the open conversation shows."""
    return len(page.locator('[data-testid="message"][data-role="assistant"]').first.inner_text().split())


def _painted(browser: Browser, state: StorageState, url: str) -> float:
    with browser.new_context(storage_state=state, service_workers="block") as context:
        return painted_ms(context.new_page(), url)


@contextlib.contextmanager
def streaming(address: Address, page: Page) -> Iterator[None]:
    """Into ten new conversations, of which the page shows the first; they are deleted afterwards."""
    sessions = [str(_ask(address, "POST", "/api/sessions", {})["session_id"]) for _ in range(CONVERSATIONS)]
    for session in sessions:
        _ask(address, "POST", f"/api/sessions/{session}/messages", {"text": f"count 100000 {EACH_S}"})
    page.locator(f'[data-session-id="{sessions[0]}"] > a').click(timeout=WAIT_MS)
    page.get_by_text("1 2 3 4 5").first.wait_for(timeout=WAIT_MS)
    try:
        yield
    finally:
        for session in sessions:
            _ask(address, "POST", f"/api/sessions/{session}/stop", {})
            _ask(address, "DELETE", f"/api/sessions/{session}")


def _ask(address: Address, method: str, path: str, body: object = None) -> Any:
    connection = http.client.HTTPConnection(address.host, address.port, timeout=WAIT_MS / 1000)
    headers = {"Authorization": f"Bearer {address.token}", "Content-Type": "application/json"}
    connection.request(method, path, None if body is None else json.dumps(body), headers)
    answer = connection.getresponse()
    said = answer.read()
    connection.close()
    if answer.status >= 300:
        raise RuntimeError(f"{method} {path}: {answer.status} {said.decode(errors='replace')[:200]}")
    return json.loads(said) if said else None


def _third(counts: Sequence[float], which: int) -> str:
    return f"{grown(counts)[which]:,.0f}"


def _mb(size: float) -> str:
    return f"{size / 1e6:.1f} MB"
