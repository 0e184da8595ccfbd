"""The people outside: they write, command, stop, answer and read, and one of them may be the operator.

What they did and saw is remembered while the process is dead."""

import asyncio
import contextlib
import hashlib
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from holdfast.core.busy import Mode
from holdfast.core.errors import BadInput, CannotEdit, ConversationBusy, NotFound, NotNow, Refused, Unavailable
from holdfast.core.events import DeliveryChanged, Logged, QuestionAsked, decode
from holdfast.core.plans.accept import Accepted
from holdfast.core.plans.answer import Answer as Given
from holdfast.core.plans.leave import Moved
from holdfast.core.plans.stop import Stopped
from holdfast.core.reminders import When
from holdfast.gateway.gateway import Gateway
from holdfast.ports.blobs import Blob, Upload
from tests.fakes.platform import Update, session_key
from tests.sim.wire import FarSide

if TYPE_CHECKING:
    from tests.sim.world import Life

PATIENCE_S = 3.0
LOOKS_EVERY_S = 0.5


class Say(NamedTuple):
    """Writes a message. On a page: again with the same `client_id` until it is acknowledged, and `again` times after that.
    Without one: once, whatever comes of it. `attach`: with a file of these bytes.
    """

    text: str
    after_s: float = 0.0
    once: tuple[str, int] | None = None
    client_id: bool = True
    again: int = 0
    mode: str = "queue"
    attach: str | None = None


class Edit(NamedTuple):
    """Edits the last message that this person sent and that was acknowledged, and `again` times more. Its words stay: they are what the
    agents of a world follow, also in an attempt that begins after the edit.
    """

    after_s: float = 0.0
    once: tuple[str, int] | None = None
    again: int = 0


class Happens(NamedTuple):
    """Something other than a message that a turn is to start from, recorded again and again until it is acknowledged."""

    text: str
    after_s: float = 0.0
    once: tuple[str, int] | None = None
    again: int = 0


class Plan(NamedTuple):
    """Plans work: once, so many seconds ahead, or every so many seconds. Again with the same `client_id` until it is acknowledged, and
    `again` times more.
    """

    text: str
    after_s: float = 0.0
    once: tuple[str, int] | None = None
    in_s: float = 0.5
    every_s: int | None = None
    missed: str = "run"
    again: int = 0


class Unplan(NamedTuple):
    """Removes what was planned first."""

    after_s: float = 0.0
    once: tuple[str, int] | None = None


class Stop(NamedTuple):
    after_s: float = 0.0
    once: tuple[str, int] | None = None


class Answer(NamedTuple):
    """Answers the last question seen, or the one of that number, by its own address and not by a message. `verdict`: of an approval;
    `always`: of all others like it, too.
    """

    text: str
    after_s: float = 0.0
    once: tuple[str, int] | None = ("question.asked", 1)
    which: int = -1
    verdict: str | None = None
    always: bool = False


class Restart(NamedTuple):
    """An operator restarts the gateway in an orderly way."""

    after_s: float = 0.0
    once: tuple[str, int] | None = None


class Reset(NamedTuple):
    """Begins a new conversation at its own address: again with the same `client_id` until it is acknowledged, and `again` times more."""

    after_s: float = 0.0
    once: tuple[str, int] | None = None
    again: int = 0


class Resume(NamedTuple):
    """Goes back to a conversation: the first this person had, or the one of that number."""

    after_s: float = 0.0
    once: tuple[str, int] | None = None
    number: int = 1
    again: int = 0


class Suspend(NamedTuple):
    """An operator suspends this person's conversation."""

    after_s: float = 0.0
    once: tuple[str, int] | None = None


class Delete(NamedTuple):
    """Deletes the conversation; or takes that back."""

    after_s: float = 0.0
    once: tuple[str, int] | None = None
    undo: bool = False


class EndProcesses(NamedTuple):
    """Ends every background process of the conversation."""

    after_s: float = 0.0
    once: tuple[str, int] | None = None


class ResumeAll(NamedTuple):
    """An operator ends safe mode."""

    after_s: float = 0.0
    once: tuple[str, int] | None = None


class Pause(NamedTuple):
    """An operator holds the work back for some seconds."""

    after_s: float = 0.0
    once: tuple[str, int] | None = None
    for_s: float = 5.0


class Aside(NamedTuple):
    """Says something to the others in a group."""

    text: str
    after_s: float = 0.0
    once: tuple[str, int] | None = None


class Garble(NamedTuple):
    """The platform tells something that nobody can read."""

    after_s: float = 0.0
    once: tuple[str, int] | None = None


class Wait(NamedTuple):
    """Until this holds of the process that lives."""

    until: "Callable[[Life], bool]"
    after_s: float = 0.0
    once: tuple[str, int] | None = None


Deed = (
    Say
    | Edit
    | Happens
    | Plan
    | Unplan
    | Stop
    | Answer
    | Restart
    | Reset
    | Resume
    | Suspend
    | Delete
    | EndProcesses
    | ResumeAll
    | Pause
    | Aside
    | Garble
    | Wait
)


class Where(NamedTuple):
    """A group, or a thread of it. Each of its people has a conversation of their own; a thread is one conversation."""

    chat: str
    thread: str | None = None


class Posted(NamedTuple):
    """A message of the page; `accepted` once it was acknowledged."""

    text: str
    client_id: str | None
    accepted: Accepted | None
    attach: str | None = None


class Reader:
    """Reads one session from its beginning, over any number of connections, and keeps everything it was ever shown."""

    def __init__(self, session_id: str, kinds: Counter[str], questions: list[str]) -> None:
        """`kinds` and `questions` gather what is seen, of this session and of others."""
        self.session_id = session_id
        self.shown: list[tuple[int, bytes]] = []
        self.kinds, self.questions = kinds, questions

    @property
    def cursor(self) -> int:
        return self.shown[-1][0] if self.shown else 0

    def show(self, seq: int, data: bytes) -> None:
        assert seq == self.cursor + 1, f"P7: a reader at {self.cursor} of {self.session_id} was shown {seq}"
        self.shown.append((seq, data))
        kind, _, body = data.split(b"|", 5)[-1].partition(b"|")
        self.kinds[kind.decode()] += 1
        event = decode(kind.decode(), body)
        if isinstance(event, QuestionAsked):
            self.questions.append(event.question_id)
        elif isinstance(event, DeliveryChanged):
            self.kinds[f"{kind.decode()} {event.state}"] += 1

    async def follow(self, life: "Life") -> None:
        while True:
            try:
                await self._connect(self.session_id, life)
            except Unavailable as error:
                await asyncio.sleep(error.retry_after_s)
            except NotFound as error:
                raise AssertionError(f"P7: the session somebody reads is gone: {error}") from error
            await life.pause()

    async def _connect(self, session_id: str, life: "Life") -> None:
        feed, store = life.gateway.feed, life.gateway.store
        watcher = await feed.watch(session_id, after=self.cursor)
        try:
            while page := await store.events(session_id, after=self.cursor, limit=life.page_size()):
                for item in page:
                    self.show(item.seq, as_shown(item))
            hangs_up_at = life.loop.time() + life.stays_connected()
            while watcher.ended is None and life.loop.time() < hangs_up_at:
                for frame in await watcher.next(1.0):
                    if frame.seq > self.cursor:
                        self.show(frame.seq, frame.data)
        finally:
            feed.leave(watcher)


def as_shown(item: Logged) -> bytes:
    """An event as it goes over the wire: place, time, kind, body."""
    return b"%d|%s|%d|%d|%d|%s|%s" % (
        item.seq,
        (item.turn_id or "").encode(),
        item.attempt,
        item.position,
        item.at,
        item.kind.encode(),
        item.body,
    )


class Person:
    """Somebody with a session: on the page, or in a chat. Does one deed after another; a death in between is a connection
    that broke, after which the deed is done again.
    """

    def __init__(self, name: str, deeds: tuple[Deed, ...], *, server: FarSide | None = None, where: Where | None = None) -> None:
        self.name, self.deeds, self.server, self.where = name, deeds, server, where
        self.next = 0
        self.readers: list[Reader] = []
        self.kinds: Counter[str] = Counter()
        self.questions: list[str] = []
        self.session_id: str | None = None
        self.posted: dict[int, Posted] = {}
        self.written: list[Update] = []
        self.refused: set[int] = set()  # Because the conversation was busy.
        self.stopped: list[Stopped] = []
        self.moved: dict[int, Moved] = {}
        self.happened: dict[str, str] = {}  # In which session.
        self.planned: dict[str, str] = {}  # The schedule of each request that was acknowledged.
        self._tried: set[int] = set()
        self._asked_of: dict[int, str] = {}  # A request that is made again is made of the same conversation.

    @property
    def chats(self) -> bool:
        return self.server is not None

    @property
    def session_key(self) -> str:
        """Of what this person writes in a chat."""
        if self.where is None:
            return session_key(self.name)
        return session_key(self.where.chat, thread=self.where.thread, member=self.name)

    @property
    def done(self) -> bool:
        return self.next == len(self.deeds)

    def come(self, life: "Life") -> None:
        """To a process that has just started."""
        life.spawn(self.act(life))
        for reader in self.readers:
            life.spawn(reader.follow(life))
        if self.chats:
            life.spawn(self._find_chat(life))

    def _go(self, session_id: str, life: "Life") -> None:
        """From now on this is the conversation; the ones before are still read."""
        self.session_id = session_id
        if all(reader.session_id != session_id for reader in self.readers):
            reader = Reader(session_id, self.kinds, self.questions)
            self.readers.append(reader)
            life.spawn(reader.follow(life))

    async def act(self, life: "Life") -> None:
        while not self.done:
            try:
                await self._act(life)
            except Unavailable as error:  # As a page does that is told to come again later.
                await asyncio.sleep(error.retry_after_s)

    async def _act(self, life: "Life") -> None:
        if not self.chats and self.session_id is None:
            session = await life.gateway.create_session(self.name)
            self._go(session.session_id, life)
        deed = self.deeds[self.next]
        await asyncio.sleep(deed.after_s)
        await self._see(deed.once, life)
        await self._do(deed, life)

    async def _find_chat(self, life: "Life") -> None:
        """A chat has a session as soon as the gateway has made one, and another one when it has begun anew."""
        while True:
            await asyncio.sleep(0.1 if self.session_id is None else LOOKS_EVERY_S)
            try:
                found = await life.gateway.store.current_session(self.session_key)
            except Unavailable:
                continue
            if found is not None and found.session_id != self.session_id:
                self._go(found.session_id, life)

    async def _see(self, once: tuple[str, int] | None, life: "Life") -> None:
        if once is not None:
            kind, count = once
            await life.until(lambda: self.kinds[kind] >= count, patience_s=PATIENCE_S)

    async def _do(self, deed: Deed, life: "Life") -> None:
        match deed:
            case Say():
                if self.server is not None:
                    self.written.append(self._write(self.server, deed.text))
                else:
                    await self._post(deed, life)
            case Edit():
                await self._edit(deed, life.gateway)
            case Happens() if self.session_id is not None:
                name = f"{self.name}-{self.next}"
                self.happened.setdefault(name, self.session_id)
                for _ in range(1 + deed.again):
                    await life.gateway.store.record_cause(
                        self.happened[name],
                        cause_id=f"c_{name}",
                        what="timer",
                        content=deed.text,
                        dedup_key=f"cause|{name}",
                        at=life.world.wall_ms(life.elapsed()),
                    )
            case Plan() if self.session_id is not None:
                await self._plan(deed, life)
            case Unplan():
                for schedule_id in list(self.planned.values())[:1]:
                    with contextlib.suppress(NotFound):
                        await life.gateway.remove_schedule(schedule_id, by=self.name)
            case Stop():
                await self._stop(life.gateway)
            case Answer():
                await self._answer(deed, life.gateway)
            case Reset() | Resume():
                await self._move(deed, life)
            case Suspend():
                if self.session_id is not None:
                    await life.gateway.suspend(self.session_id)
            case Delete() if self.session_id is not None:
                change = life.gateway.undelete_session if deed.undo else life.gateway.delete_session
                await change(self.session_id, by=self.name)
            case EndProcesses() if self.session_id is not None and life.gateway.background is not None:
                for process in await life.gateway.store.processes(self.session_id):
                    await life.gateway.background.kill(process.process_id, by=self.name)
            case ResumeAll():
                life.span.asked_to_leave = True
                life.gateway.resume_all()
            case Pause():
                with contextlib.suppress(NotNow):  # It ends, or gives way, already.
                    await life.gateway.pausing.pause(self.name, deed.for_s)
            case Aside() if self.server is not None:
                self._write(self.server, deed.text, addressed=False)
            case Garble():
                life.world.server.throw()
            case Wait():
                await life.until(lambda: deed.until(life))
            case Restart():
                self.next += 1
                life.leave("restart_timeout")
                return
        self.next += 1

    def _write(self, server: FarSide, text: str, *, addressed: bool = True) -> Update:
        if self.where is None:
            return server.write(self.name, self.name, text)
        return server.write(self.where.chat, self.name, text, thread=self.where.thread, group=True, addressed=addressed)

    async def _move(self, deed: Reset | Resume, life: "Life") -> None:
        """By its own address, named by the conversation it is asked of: the one this person believes to be in."""
        if self.session_id is None or (isinstance(deed, Resume) and deed.number > len(self.readers)):
            return
        gateway, client_id = life.gateway, f"{self.name}-{self.next}"
        asked = (
            self.readers[deed.number - 1].session_id if isinstance(deed, Resume) else self._asked_of.setdefault(self.next, self.session_id)
        )
        for _ in range(1 + deed.again):
            if isinstance(deed, Resume):
                moved = await gateway.resume_session(asked, by=self.name, client_id=client_id)
            else:
                moved = await gateway.reset(asked, by=self.name, client_id=client_id)
            before = self.moved.get(self.next)
            assert before is None or not before.changed or moved == before, f"A22: one request was answered with {before} and with {moved}"
            self.moved[self.next] = moved
        self._go(self.moved[self.next].session_id, life)

    async def _post(self, deed: Say, life: "Life") -> None:
        assert self.session_id is not None
        client_id = f"{self.name}-{self.next}" if deed.client_id else None
        if client_id is None:
            if self.next in self._tried:
                return
            self._tried.add(self.next)
        self.posted.setdefault(self.next, Posted(deed.text, client_id, None, deed.attach))
        for _ in range(1 + deed.again):
            attachments = [await self._upload(deed.attach, life)] if deed.attach is not None else []
            before = self.posted[self.next].accepted
            try:
                accepted = await life.gateway.post(
                    self.session_id, deed.text, client_id=client_id, attachments=attachments, mode=Mode(deed.mode)
                )
            except ConversationBusy:
                assert before is None, f"P1: the same client_id was answered with {before} and refused"
                self.refused.add(self.next)
                continue
            assert self.next not in self.refused, f"P1: the same client_id was refused and answered with {accepted}"
            assert before is None or (before.message_id, before.session_id) == (accepted.message_id, accepted.session_id), (
                f"P1: the same client_id was answered with {before} and with {accepted}"
            )
            self.posted[self.next] = Posted(deed.text, client_id, accepted, deed.attach)
            self._go(accepted.session_id, life)

    async def _edit(self, deed: Edit, gateway: Gateway) -> None:
        sent = [(posted.text, posted.accepted) for posted in self.posted.values() if not posted.text.startswith("/")]
        text, accepted = sent[-1] if sent else ("", None)
        for _ in range(1 + deed.again if accepted is not None else 0):
            assert accepted is not None
            with contextlib.suppress(CannotEdit):  # It was no message after all.
                await gateway.edit_message(accepted.session_id, accepted.message_id, text, client_id=f"{self.name}-{self.next}")

    async def _plan(self, deed: Plan, life: "Life") -> None:
        """One that has come and gone when it is asked for again was made all the same."""
        client_id = f"{self.name}-{self.next}"
        session_id = self._asked_of.setdefault(self.next, self.session_id or "")
        for _ in range(1 + deed.again):
            ahead = datetime.fromtimestamp(life.world.wall_ms(life.elapsed()) / 1000 + deed.in_s, UTC)
            when = When(every_s=deed.every_s) if deed.every_s else When(at=ahead.isoformat())
            try:
                made = await life.gateway.add_schedule(session_id, deed.text, when, by=self.name, missed=deed.missed, client_id=client_id)
            except (NotFound, BadInput):  # It has come and gone; or its moment passed before the store answered.
                return
            before = self.planned.setdefault(client_id, made.schedule_id)
            assert before == made.schedule_id, f"P1: one request made {before} and {made.schedule_id}"

    async def _upload(self, attach: str, life: "Life") -> str:
        """Only its rows: files have deaths of their own (`tests/blobs`)."""
        store, name, digest = life.gateway.store, f"{self.name}-{self.next}", hashlib.sha256(attach.encode()).hexdigest()
        await store.put_blob(Blob(digest=digest, size=len(attach), media_type="text/plain", file=f"{digest}-{name}"), at=1)
        upload = Upload(attachment_id=f"a-{name}", digest=digest, size=len(attach), media_type="text/plain", name=attach)
        return (await store.put_upload(upload, dedup_key=name, at=1)).attachment_id

    async def _stop(self, gateway: Gateway) -> None:
        if self.session_id is None:
            return
        try:
            stopped = await gateway.stop_turn(self.session_id, by=self.name, client_id=f"{self.name}-stop-{self.next}")
        except Refused:
            return
        self.stopped.append(stopped)

    async def _answer(self, deed: Answer, gateway: Gateway) -> None:
        if self.questions:
            question = self.questions[deed.which] if deed.which < len(self.questions) else self.questions[-1]
            try:
                if deed.verdict is None:
                    await gateway.answer(question, deed.text)
                else:
                    scope = "session" if deed.always else "once"
                    await gateway.judge(question, Given(by="owner", verdict=deed.verdict, scope=scope, reason=deed.text))
            except Refused:
                return
