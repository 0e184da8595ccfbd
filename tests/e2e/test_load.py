"""A thousand turns at once on one real server, a reader on each: every answer whole, every event seen, nobody starved or cut off."""

import asyncio
import json
import resource
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.serving import Serving

TURNS = 1000
COUNT, DELAY_S = 25, 0.2
ANSWER = " ".join(str(number) for number in range(1, COUNT + 1))
OTHERS = 20
AT_ONCE = 50
# Five seconds of counting, ten times as long before anyone calls it starved.
PATIENCE_S = 10 * COUNT * DELAY_S


@pytest.fixture(autouse=True)
def many_files():
    """Every reader is an open file on either side."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * TURNS + 500
    if hard != resource.RLIM_INFINITY and hard < wanted:
        pytest.skip(f"this system allows {hard} open files; {wanted} are needed")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


class Client:
    """HTTP on raw streams: enough for a thousand readers in one process."""

    def __init__(self, serving: Serving) -> None:
        self._port = serving.port
        self._head = f"Host: 127.0.0.1:{serving.port}\r\nAuthorization: Bearer {serving.token}\r\n"
        self._slots = asyncio.Semaphore(AT_ONCE)

    async def open(
        self, method: str, path: str, body: bytes = b"", more: str = ""
    ) -> tuple[int, asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port, limit=2**20)
        writer.write(f"{method} {path} HTTP/1.1\r\n{self._head}{more}\r\n".encode() + body)
        head = await reader.readuntil(b"\r\n\r\n")
        return int(head.split(b" ", 2)[1]), reader, writer

    async def post(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        content = json.dumps(body).encode()
        more = f"Connection: close\r\nContent-Type: application/json\r\nContent-Length: {len(content)}\r\n"
        async with self._slots:
            status, reader, writer = await self.open("POST", path, content, more)
            answer = json.loads(await reader.read())
            writer.close()
        return status, answer

    async def new_session(self) -> str:
        status, answer = await self.post("/api/sessions", {})
        assert status == 201, answer
        return str(answer["session_id"])

    async def send(self, session_id: str, text: str) -> None:
        status, answer = await self.post(f"/api/sessions/{session_id}/messages", {"text": text})
        assert status == 202, answer


class Follower:
    """Reads one session from its beginning over one connection, until that is cut or it is told to leave."""

    def __init__(self, client: Client, session_id: str) -> None:
        self._client, self.session_id = client, session_id
        self.events: list[tuple[int, str, dict[str, Any]]] = []
        self.attached, self.answered = asyncio.Event(), asyncio.Event()
        self._buffer = b""

    async def read(self) -> str:
        """Gives why the stream ended; being told to leave ends it by cancellation."""
        status, reader, writer = await self._client.open("GET", f"/api/sessions/{self.session_id}/events")
        assert status == 200
        self.attached.set()
        try:
            while size := int(await reader.readline(), 16):
                chunk = await reader.readexactly(size + 2)
                if reason := self._take(chunk[:-2]):
                    return reason
            return "the server ended the stream"
        finally:
            writer.close()

    def _take(self, data: bytes) -> str | None:
        *blocks, self._buffer = (self._buffer + data).split(b"\n\n")
        for block in blocks:
            if block.startswith(b":"):
                continue  # A heartbeat.
            fields = dict(line.split(": ", 1) for line in block.decode().split("\n"))
            body = json.loads(fields["data"])
            if fields["event"] == "end":
                return str(body["reason"])
            self.events.append((int(fields["id"].rpartition(".")[2]), fields["event"], body))
            if fields["event"] == "turn.ended":
                self.answered.set()
        return None

    def named(self, name: str) -> list[dict[str, Any]]:
        return [body for _, event, body in self.events if event == name]

    def check(self, answer: str) -> None:
        """Nothing left out, nothing twice, nothing out of order; what was shown on the way is what was written in the end."""
        assert [seq for seq, _, _ in self.events] == list(range(1, len(self.events) + 1)), self.session_id
        (ended,) = self.named("turn.ended")
        assert ended["outcome"] == "completed", ended
        user, assistant = self.named("message.written")
        assert (user["role"], assistant["role"], assistant["text"]) == ("user", "assistant", answer)
        shown = ""
        for piece in self.named("text"):
            assert piece["offset"] == len(shown)
            shown += piece["text"]
        assert shown == answer


async def _follow(group: asyncio.TaskGroup, client: Client, session_ids: Sequence[str]) -> tuple[list[Follower], list[asyncio.Task[str]]]:
    followers, reading = [Follower(client, session_id) for session_id in session_ids], []
    for start in range(0, len(followers), AT_ONCE):
        some = followers[start : start + AT_ONCE]
        reading += [group.create_task(follower.read()) for follower in some]
        await asyncio.gather(*(follower.attached.wait() for follower in some))
    return followers, reading


async def _new_sessions(client: Client, count: int) -> list[str]:
    return list(await asyncio.gather(*(client.new_session() for _ in range(count))))


async def test_a_thousand_turns_with_a_thousand_readers_lose_nothing_and_hold_up_nobody(tmp_path: Path):
    with Serving(tmp_path / "home") as serving:
        client = Client(serving)
        many, others = await _new_sessions(client, TURNS), await _new_sessions(client, OTHERS)
        async with asyncio.timeout(4 * PATIENCE_S), asyncio.TaskGroup() as group:
            followers, reading = await _follow(group, client, many)
            bystanders, bystanding = await _follow(group, client, others)
            half = TURNS // 2
            await asyncio.gather(*(client.send(session_id, f"count {COUNT} {DELAY_S}") for session_id in many[:half]))
            rest = [group.create_task(client.send(session_id, f"count {COUNT} {DELAY_S}")) for session_id in many[half:]]
            await asyncio.gather(*(client.send(session_id, f"hello {session_id}") for session_id in others))
            await asyncio.gather(*(follower.answered.wait() for follower in bystanders))
            assert any(not follower.answered.is_set() for follower in followers), "the others were answered only when the many were done"
            await asyncio.gather(*rest)
            began = time.monotonic()
            await asyncio.gather(*(follower.answered.wait() for follower in followers))
            assert time.monotonic() - began < PATIENCE_S
            cut = [task.result() for task in (*reading, *bystanding) if task.done()]
            assert cut == []
            for task in (*reading, *bystanding):
                task.cancel()
        for follower in followers:
            follower.check(ANSWER)
        for follower in bystanders:
            (answer,) = (body["text"] for body in follower.named("message.written") if body["role"] == "assistant")
            assert answer.startswith(f"You said: hello {follower.session_id}")
            follower.check(answer)
        assert serving.stop() == 75, serving.output()[-3000:]
