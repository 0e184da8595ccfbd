"""The people of a soak: each writes to a session of its own and follows it; and two that only ask, again and again, if anyone answers."""

import asyncio
import json
import time
import zlib
from collections.abc import Callable, Iterator

import msgspec

from bench.load import Address, Api
from bench.soaking.notebook import Notebook, Sent
from bench.soaking.processes import FAILURES
from bench.soaking.schedule import Saying

REQUEST_S = 20.0
SILENT_S = 40.0  # Longer than two heartbeats.
RETRY_S = 0.05
PROBE_S = 0.02
IN_HAND = 2  # Messages of one session that are not answered yet, at most.
# What a gateway says of itself that cannot store anything.
UNHEALTHY = 503
ENDS = ("turn.ended", "message.refused")


class Answer(msgspec.Struct):
    message_id: str
    session_id: str


class Follower:
    """Follows one session by its cursor, over every break. Every event must be the next one."""

    def __init__(self, address: Address, session_id: str, notes: Notebook, on_end: Callable[[], None] = lambda: None) -> None:
        self._address, self.session_id, self._notes, self._on_end = address, session_id, notes, on_end
        self._cursor = "0"
        self._spoke_at: float | None = None
        self.shown = notes.shown.setdefault(session_id, [])

    @property
    def _name(self) -> str:
        return f"reader of {self.session_id}"

    async def run(self) -> None:
        while True:
            try:
                reason = await self._read()
                if reason is None:
                    self._notes.trouble(self._name, "its stream ended without a word")
            except FAILURES as error:
                self._notes.trouble(self._name, f"{type(error).__name__}: {error}")
                await asyncio.sleep(RETRY_S)

    async def _read(self) -> str | None:
        """One connection; why the server ended it."""
        reader, writer = await asyncio.open_connection(self._address.host, self._address.port)
        try:
            writer.write(self._address.head("GET", f"/api/sessions/{self.session_id}/events?after={self._cursor}"))
            async with asyncio.timeout(REQUEST_S):
                head = await reader.readuntil(b"\r\n\r\n")
            if not head.startswith(b"HTTP/1.1 200"):
                raise OSError(head.splitlines()[0].decode())
            rest, reason = b"", None
            while True:
                async with asyncio.timeout(SILENT_S):
                    size = int(await reader.readuntil(b"\r\n"), 16)
                    chunk = await reader.readexactly(size + 2)
                if size == 0:
                    return reason
                *blocks, rest = (rest + chunk[:-2]).split(b"\n\n")
                for block in blocks:
                    reason = self._heard(block) or reason
        finally:
            writer.close()

    def _heard(self, block: bytes) -> str | None:
        fields = dict(line.split(b": ", 1) for line in block.split(b"\n") if b": " in line)
        name = fields.get(b"event", b"").decode()
        if not name:
            return None  # A heartbeat.
        if name == "end":
            return str(json.loads(fields[b"data"])["reason"])
        self._cursor = fields[b"id"].decode()
        seq = int(self._cursor.rpartition(".")[2])
        if seq != len(self.shown) + 1:
            self._notes.faults.append(f"{self._name} saw event {seq} ({name}) after {len(self.shown)}")
            self.shown += [0] * (seq - len(self.shown) - 1)
        self.shown[seq - 1 :] = [seen(name, fields[b"data"])]
        self._time(name, fields[b"data"])
        if name in ENDS:
            self._on_end()
        return None

    def _time(self, name: str, data: bytes) -> None:
        """How long a turn that speaks at a steady pace was not heard."""
        now = time.time()
        if name == "text" and self._spoke_at is not None:
            self._notes.gap("stream", self._spoke_at, now - self._spoke_at)
        self._spoke_at = now if name == "text" else None


def seen(name: str, data: bytes) -> int:
    """Stands for an event as it was shown."""
    return zlib.crc32(data, zlib.crc32(name.encode()))


class Writer:
    """Says one thing after the other, each until it is acknowledged, with the same name every time. Where a session passes it on to a new
    one, it follows it there.
    """

    def __init__(
        self, address: Address, number: int, sayings: Iterator[Saying], notes: Notebook, follow: Callable[[Follower], None]
    ) -> None:
        self._address, self._sayings, self._notes, self._follow = address, sayings, notes, follow
        self._name = f"writer {number}"
        self._followed: set[str] = set()
        self._in_hand = 0
        self._room = asyncio.Event()
        self.closing = False

    async def run(self) -> None:
        """Until it is told to write no more, and everything it has said is acknowledged."""
        async with Api(self._address) as api:
            self._room.set()
            session_id = ""
            while not session_id:
                session_id = await self._new_session(api)
            self._watch(session_id)
            while not self.closing:
                saying = next(self._sayings)
                await self._room.wait()
                await asyncio.sleep(saying.pause_s)  # While nobody serves, people go on writing.
                if self.closing:
                    return
                session_id = await self._say(api, session_id, saying)

    def close(self) -> None:
        self.closing = True
        self._room.set()

    async def _new_session(self, api: Api) -> str:
        answer = await self._try(api, "/api/sessions", {})
        return str(msgspec.json.decode(answer)["session_id"]) if answer else ""

    async def _say(self, api: Api, session_id: str, saying: Saying) -> str:
        sent = self._notes.sent[saying.client_id] = Sent(saying, session_id)
        self._in_hand += 1
        self._look()
        path, body = f"/api/sessions/{session_id}/messages", {"text": saying.text, "client_id": saying.client_id}
        while sent.message_id is None:
            sent.tries += 1
            if answer := await self._try(api, path, body):
                taken = msgspec.json.decode(answer, type=Answer)
                sent.message_id, sent.session_id = taken.message_id, taken.session_id
        assert sent.session_id is not None
        self._watch(sent.session_id)
        if saying.twice:
            await self._repeat(api, path, body, sent)
        return sent.session_id

    async def _repeat(self, api: Api, path: str, body: object, sent: Sent) -> None:
        """As by somebody who never heard that it was acknowledged: it must be the same message."""
        while (answer := await self._try(api, path, body)) is None:
            pass
        taken = msgspec.json.decode(answer, type=Answer)
        if (taken.message_id, taken.session_id) != (sent.message_id, sent.session_id):
            self._notes.faults.append(f"{sent.saying.client_id} was {sent.message_id} at first and {taken.message_id} when it was repeated")

    async def _try(self, api: Api, path: str, body: object) -> bytes | None:
        try:
            async with asyncio.timeout(REQUEST_S):
                status, answer = await api.request("POST", path, body)
            if status < 300:
                return answer
            self._notes.trouble(self._name, f"{status} {answer.decode(errors='replace')[:200]}", writes=True)
        except FAILURES as error:
            self._notes.trouble(self._name, f"{type(error).__name__}: {error}", writes=True)
        await asyncio.sleep(RETRY_S)
        return None

    def _watch(self, session_id: str) -> None:
        if session_id not in self._followed:
            self._followed.add(session_id)
            self._follow(Follower(self._address, session_id, self._notes, self._answered))

    def _answered(self) -> None:
        self._in_hand -= 1
        self._look()

    def _look(self) -> None:
        if self._in_hand < IN_HAND or self.closing:
            self._room.set()
        else:
            self._room.clear()


async def probe(address: Address, notes: Notebook, name: str, *, keeps: bool) -> None:
    """Asks whether anyone answers; each time until somebody does."""
    async with Api(address, keeps=keeps) as api:
        while True:
            began, clock = time.time(), time.perf_counter()
            while not await _answered(api, notes, name):  # noqa: ASYNC110 - what is waited for is in another process.
                await asyncio.sleep(PROBE_S)
            notes.gap(name, began, time.perf_counter() - clock)
            await asyncio.sleep(PROBE_S)


async def _answered(api: Api, notes: Notebook, name: str) -> bool:
    try:
        async with asyncio.timeout(REQUEST_S):
            status, _ = await api.request("GET", "/healthz")
    except FAILURES as error:
        notes.trouble(name, f"{type(error).__name__}: {error}")
        return False
    if status != 200:
        notes.trouble(name, f"the health is {status}", writes=status == UNHEALTHY)
    return status == 200
