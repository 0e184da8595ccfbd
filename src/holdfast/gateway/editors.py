"""Editors that show a conversation, and the files that they have open: tools read and write those through the editor, saved or not.

An editor asks again and again whether something is wanted of it. It is there while it does; nothing of this is kept. Where no editor is
there, or it does not answer, tools use the disk.
"""

import asyncio
from collections.abc import Collection, Sequence

import msgspec

from holdfast.core.errors import BadInput, Refused
from holdfast.ports.process import Ids

READ, WRITE = "read", "write"
# How long an editor that asks is kept waiting for something to do, and how long after its last question it counts as there.
WAITS_S, STAYS_S = 1.0, 3.0
# How long it may take to answer.
ANSWERS_S = 10.0


class EditorSilent(Refused):
    code = "editor_silent"

    def __init__(self, path: str) -> None:
        super().__init__(f"The editor did not say whether it wrote {path!r}. Read the file before you change it again.")


class FileRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What is wanted of an editor: to read or write a file, by its absolute path. `text`: what to write."""

    request_id: str
    what: str
    path: str
    text: str | None = None


class FileAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """`text`: of a file that was read. `failed`: why it was not done, in the editor's words."""

    request_id: str
    text: str | None = None
    failed: str | None = None


class _Desk:
    """One conversation as an editor shows it. `asking`: how many of its questions are open."""

    def __init__(self) -> None:
        self.offers: frozenset[str] = frozenset()
        self.asking, self.seen_at = 0, float("-inf")
        self.wanted: list[FileRequest] = []
        self.open: dict[str, asyncio.Future[FileAnswer]] = {}
        self.news = asyncio.Event()


class Editors:
    """Those of this process (`ports.tools.Buffers`). `used`: whether tools may use their files."""

    def __init__(self, ids: Ids, *, used: bool) -> None:
        self._ids, self.used = ids, used
        self._desks: dict[str, _Desk] = {}

    # for editors

    async def serve(self, session_id: str, offers: Collection[str], answers: Sequence[FileAnswer]) -> list[FileRequest]:
        """Takes answers, and gives what is wanted next; nothing, if nothing is wanted for a while. An editor that has just come does not
        wait.
        """
        if not self.used:
            return []
        desk = self._desks.setdefault(session_id, _Desk())
        came = not _there(desk)
        for answer in answers:
            if (waiting := desk.open.get(answer.request_id)) is not None and not waiting.done():
                waiting.set_result(answer)
        desk.offers, desk.asking = frozenset(offers), desk.asking + 1
        try:
            if not desk.wanted and not came:
                desk.news.clear()
                try:
                    async with asyncio.timeout(WAITS_S):
                        await desk.news.wait()
                except TimeoutError:
                    pass
            wanted, desk.wanted = desk.wanted, []
            return wanted
        finally:
            desk.asking, desk.seen_at = desk.asking - 1, _now()
            self._tidy()

    def _tidy(self) -> None:
        self._desks = {name: desk for name, desk in self._desks.items() if _there(desk) or desk.open}

    # for tools

    async def read(self, session_id: str, path: str) -> str | None:
        answer = await self._ask(session_id, READ, path)
        return None if answer is None or answer.failed is not None else answer.text

    async def write(self, session_id: str, path: str, text: str) -> bool:
        if not (self._offers(session_id, READ) and self._offers(session_id, WRITE)):  # The disk was read: it is written as well.
            return False
        answer = await self._ask(session_id, WRITE, path, text)
        if answer is None:
            raise EditorSilent(path)
        if answer.failed is not None:
            raise BadInput(f"The editor did not write {path!r}: {answer.failed}")
        return True

    def _offers(self, session_id: str, what: str) -> bool:
        desk = self._desks.get(session_id)
        return desk is not None and _there(desk) and what in desk.offers

    async def _ask(self, session_id: str, what: str, path: str, text: str | None = None) -> FileAnswer | None:
        """None if no editor offers this, or it does not answer in time."""
        if not self._offers(session_id, what):
            return None
        desk, request_id = self._desks[session_id], self._ids.new("f")
        answered: asyncio.Future[FileAnswer] = asyncio.get_running_loop().create_future()
        desk.open[request_id] = answered
        desk.wanted.append(FileRequest(request_id=request_id, what=what, path=path, text=text))
        desk.news.set()
        try:
            async with asyncio.timeout(ANSWERS_S):
                return await answered
        except TimeoutError:
            return None
        finally:
            del desk.open[request_id]
            desk.wanted = [each for each in desk.wanted if each.request_id != request_id]


def _there(desk: _Desk) -> bool:
    """Also while it works on what was wanted: that may take it longer than it would stay."""
    return desk.asking > 0 or bool(desk.open) or _now() - desk.seen_at < STAYS_S


def _now() -> float:
    return asyncio.get_running_loop().time()
