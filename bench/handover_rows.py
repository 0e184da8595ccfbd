"""Hand-over as its clients see it: requests over new and over kept connections, messages, and readers of turns that run meanwhile."""

import asyncio
import itertools
import time
from collections.abc import Coroutine
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import uvloop

from bench.figures import Figure, at_most, plain
from bench.load import Address, Api
from bench.setting import Setting
from bench.soaking.clients import Follower, probe
from bench.soaking.notebook import Notebook
from bench.soaking.processes import Gateway

EACH = 3  # Clients of either kind that only ask, and that write.
READERS = 10
PACE_S = 0.02
COUNT = 100
REST_S = 0.5
SETTLED_S = 60.0
GOAL_MS = 20.0
SHORT, KEPT, ACCEPTED, ANSWERED, STORED = "short", "kept", "accepted", "answered", "stored"


class Piece(msgspec.Struct):
    at: datetime


_piece = msgspec.json.Decoder(Piece)


class Reader(Follower):
    """Notes how long each piece of text was stored before it was here."""

    def __init__(self, address: Address, session_id: str, notes: Notebook) -> None:
        super().__init__(address, session_id, notes)
        self.changed = asyncio.Event()
        self.texts = self.ends = 0

    def _time(self, name: str, data: bytes) -> None:
        now = time.time()
        if name == "text":
            self._notes.gap(STORED, now, now - _piece.decode(data).at.timestamp())
        self.texts += name == "text"
        self.ends += name == "turn.ended"
        self.changed.set()

    async def until(self, texts: int = 0, ends: int = 0) -> None:
        async with asyncio.timeout(SETTLED_S):
            while self.texts < texts or self.ends < ends:
                self.changed.clear()
                await self.changed.wait()


class Load:
    """All clients on one gateway. `calm` and `moved` have what they saw without and with hand-overs; times in seconds."""

    def __init__(self, home: Path) -> None:
        self.calm, self.moved = Notebook(), Notebook()
        self.notes = Notebook()
        self.gateway = Gateway(home, self.notes)

    def run(self, hand_overs: int) -> None:
        try:
            uvloop.run(self._run(hand_overs))
        finally:
            self.gateway.end()
        faults = [*self.notes.faults, *(each.failed for each in self.notes.hand_overs if each.failed)]
        if faults:
            raise RuntimeError(f"{len(faults)} things went wrong, the first: {faults[0]}")

    async def _run(self, hand_overs: int) -> None:
        await self.gateway.start()
        address = self.gateway.address
        async with asyncio.TaskGroup() as tasks, Api(address) as api:
            beside = []

            def spawn(work: Coroutine[Any, Any, None]) -> None:
                beside.append(tasks.create_task(work))

            ids = await api.new_sessions(READERS + EACH)
            readers = [Reader(address, session_id, self.notes) for session_id in ids[:READERS]]
            for reader in readers:
                spawn(reader.run())
            for session_id in ids[READERS:]:
                spawn(self._write(address, session_id))
            for _ in range(EACH):
                spawn(probe(address, self.notes, SHORT, keeps=False))
                spawn(probe(address, self.notes, KEPT, keeps=True))
            for _ in range(hand_overs):  # As many as with one, so that rare long gaps have the same chance.
                await self._round(api, readers, hands_over=False)
            self.calm.gaps, self.notes.gaps = self.notes.gaps, {}
            for _ in range(hand_overs):
                await self._round(api, readers, hands_over=True)
            self.moved.gaps, self.notes.gaps = self.notes.gaps, {}
            for task in beside:
                task.cancel()
        await self.gateway.stop()

    async def _round(self, api: Api, readers: list[Reader], *, hands_over: bool) -> None:
        """Turns begin, the gateway is handed over in the midst of them, they end."""
        ends = [reader.ends + 1 for reader in readers]
        texts = [reader.texts + 3 for reader in readers]
        await asyncio.gather(*(api.post(reader.session_id, f"count {COUNT} {PACE_S}") for reader in readers))
        await asyncio.gather(*(reader.until(texts=wanted) for reader, wanted in zip(readers, texts, strict=True)))
        if hands_over:
            await self.gateway.hand_over()
        await asyncio.gather(*(reader.until(ends=wanted) for reader, wanted in zip(readers, ends, strict=True)))
        await asyncio.sleep(REST_S)

    async def _write(self, address: Address, session_id: str) -> None:
        """One short message after the other: how long until each is accepted, and until its answer begins."""
        reader = Reader(address, session_id, Notebook())
        following = asyncio.ensure_future(reader.run())
        try:
            async with Api(address) as api:
                for number in itertools.count(1):
                    began, clock = time.time(), time.perf_counter()
                    await api.post(session_id, "hello")
                    self.notes.gap(ACCEPTED, began, time.perf_counter() - clock)
                    await reader.until(texts=number)
                    self.notes.gap(ANSWERED, began, time.perf_counter() - clock)
                    await reader.until(ends=number)
        finally:
            following.cancel()


def hand_over(setting: Setting) -> list[Figure]:
    sizes = setting.sizes

    def once() -> Load:
        home = setting.home()
        load = Load(home / "home")
        load.run(sizes.hand_overs)
        setting.drop(home)
        return load

    found = setting.measure(once)

    def seen(notes: Notebook, who: str) -> list[float]:
        return [1000 * took for _, took in notes.gaps[who]]

    def added(who: str) -> list[list[float]]:
        """By how much the longest gap with hand-overs exceeds the longest of the same load without them."""
        return [[max(0.0, max(seen(each.moved, who)) - max(seen(each.calm, who)))] for each in found]

    def longest(who: str) -> str:
        calm, moved = (
            max(max(seen(notes, who)) for notes in all_) for all_ in zip(*((each.calm, each.moved) for each in found), strict=True)
        )
        return f"{moved:.0f} ({calm:.0f}) ms"

    setting.notes.append(f"the longest, and the longest without a hand-over: new connections {longest(SHORT)}, kept ones {longest(KEPT)},")
    setting.notes.append(
        f"a piece to its reader {longest(STORED)}, a message accepted {longest(ACCEPTED)}, its first text {longest(ANSWERED)}"
    )
    return [
        at_most("added: request, connection of its own", "ms", added(SHORT), GOAL_MS),
        at_most("added: request on a kept connection", "ms", added(KEPT), GOAL_MS),
        at_most("added: piece stored to its reader", "ms", added(STORED), GOAL_MS),
        at_most("added: a message accepted", "ms", added(ACCEPTED), GOAL_MS),
        plain("added: its first text", "ms", added(ANSWERED)),
        at_most("requests and streams refused", "", [[len(each.notes.troubles)] for each in found], 0),
        plain("asked to taken over", "ms", [[1000 * done.took_s for done in each.notes.hand_overs] for each in found]),
    ]
