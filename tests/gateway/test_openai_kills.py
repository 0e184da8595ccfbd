"""A client of the OpenAI-compatible door whose gateway is killed before and after every commit: what it says is said once, and what it
reads over all lives is what a reader gets that never left."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest
from starlette.types import Message

from holdfast.blobs import FOLDER, Blobs, Folder
from holdfast.core.answering import Answering
from holdfast.core.recitals import USER, Line, Recited
from holdfast.gateway.tasks import Tasks
from holdfast.process.system import RandomIds
from holdfast.web.access import Access
from holdfast.web.openai.asking import Asked
from holdfast.web.openai.conversations import Conversations, Request
from holdfast.web.openai.delivered import Delivered
from holdfast.web.openai.following import Means
from holdfast.web.openai.output import Output
from holdfast.web.openai.replies import Stream
from holdfast.web.openai.responses import Rendered
from holdfast.web.stream import Timing
from tests.fakes.loop import Crash
from tests.gateway import gateways
from tests.gateway.gateways import Life

T = TypeVar("T")
FIRST = "say:one |say:two |call:deed 3|ask:colour"
LEAST_POINTS = 10
MOST_POINTS = 100


class Client:
    """Keeps what it read and the last number, over all lives of the gateway, and nothing else."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.events: dict[str, list[dict[str, Any]]] = {}

    def meet(self, life: Life) -> None:
        self._life = life
        access = Access("token", clock=life.clock, port=1)
        self._grant = access.check({b"authorization": b"Bearer token"}, "")
        self._means = Means(life.gateway, access, Tasks(), Timing(), Delivered())
        blobs = Blobs(folder=Folder(self._folder / FOLDER), rows=life.store, clock=life.clock, ids=RandomIds(), elsewhere=_inline)
        self._conversations = Conversations(life.gateway, blobs, Delivered(), max_upload_bytes=100)

    def say(self, key: str, text: str, session_id: str | None = None) -> Recited:
        """And begin to read what comes of it, from where it had come."""
        request = Request(
            door="responses", asked=Asked(lines=[Line(USER, text)]), key=key, session_id=session_id, recites=session_id is None
        )
        recited = self._life.do(self._conversations.send(request))
        read = self.events.setdefault(recited.message_id, [])
        self._life.loop.create_task(self.stream(recited, read))
        return recited

    async def stream(self, recited: Recited, into: list[dict[str, Any]]) -> None:
        async def send(message: Message) -> None:
            for line in message.get("body", b"").split(b"\n"):
                if line.startswith(b"data: "):
                    into.append(json.loads(line[6:]))

        async def receive() -> Message:
            await self._life.loop.create_future()
            raise AssertionError

        answering = Answering(recited.message_id, recited.seq)
        after = into[-1]["sequence_number"] if into else 0
        renderer = Rendered(recited, answering, Output(recited, answering), after, waits=True)
        await Stream(self._means, self._grant, recited, answering, renderer)({}, receive, send)

    def read_all(self, recited: Recited) -> list[dict[str, Any]]:
        read: list[dict[str, Any]] = []
        self._life.do(self.stream(recited, read))
        return read


async def _inline(run: Callable[..., T], /, *arguments: Any) -> T:
    return run(*arguments)


def _talk(life: Life, client: Client) -> None:
    client.meet(life)
    first = client.say("k1", FIRST)
    life.rest(first.session_id)
    life.pass_s(1)
    second = client.say("k2", "blue", first.session_id)
    life.rest(second.session_id)
    life.pass_s(1)


def _play(folder: Path, moment: str, commit: int) -> bool:
    """Whether there was such a commit to die at."""
    folder.mkdir()
    with gateways.home(folder) as home:
        client, life = Client(folder), home.start()
        life.commits, life.dies = 0, (moment, commit)
        try:
            _talk(life, client)
        except Crash:
            life = home.start()
            _talk(life, client)  # It got no answer, and repeats its requests under the same keys.
        _check(life, client)
        return len(home.lives) > 1


def _check(life: Life, client: Client) -> None:
    sessions = life.do(life.store.sessions(limit=10)).sessions
    [session_id] = [session.session_id for session in sessions if session.generation]
    assert len(sessions) <= 2, "a death may leave an empty one"
    said = [message.text for message in life.transcript(session_id).messages if message.role == "user"]
    assert said == [FIRST, "blue"] and life.outcomes(session_id) == ["completed"]
    assert len(client.events) == 2
    for message_id, read in client.events.items():
        recited = life.do(life.store.recited(message_id))
        assert recited is not None and read == client.read_all(recited), "the reader has what one has that never left"
        assert read[-1]["type"] == "response.completed"
    first, second = (read[-1]["response"] for read in client.events.values())
    assert [item["type"] for item in first["output"]][-1] == "message" and first["metadata"]["waiting_for"]
    text = "".join(part["text"] for item in second["output"] if item["type"] == "message" for part in item["content"])
    assert text == "told blue"


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_kill_at_any_commit_says_nothing_twice_and_leaves_no_gap_in_a_stream(tmp_path: Path, moment: str) -> None:
    """P1, P4, P7."""
    points = 0
    while points < MOST_POINTS and _play(tmp_path / str(points), moment, points + 1):
        points += 1
    assert points >= LEAST_POINTS, f"only {points} moments to die at"
