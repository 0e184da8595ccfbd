"""From a request of the door to a message in a conversation: which one it is for, what of it is new there, and whether it came before."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence

import msgspec
import structlog

from holdfast.blobs import Blobs
from holdfast.core import blobs as rules
from holdfast.core import commands, keys, recitals
from holdfast.core.answering import Answering, Status
from holdfast.core.errors import BadInput, DuplicateOtherContent
from holdfast.core.events import SessionChanged
from holdfast.core.recitals import USER, Line, Recital, Recited
from holdfast.core.sessions import Session, title_of
from holdfast.gateway.acceptance import check_text
from holdfast.gateway.gateway import Gateway
from holdfast.web.errors import UploadTooLarge
from holdfast.web.openai.asking import Asked, File
from holdfast.web.openai.delivered import Delivered
from holdfast.web.openai.errors import KeyReused, NoSuchModel
from holdfast.web.openai.following import read
from holdfast.web.openai.locks import Locks
from holdfast.web.openai.naming import OWN_MODEL
from holdfast.web.openai.prose import Prose

# How many conversations that may be meant are looked into.
CANDIDATES = 8
# For how long a request that an SDK tries again is taken for the one it sent before.
TRIED_AGAIN_MS = 10 * 60 * 1000
# Texts that are longer together are not gone through on the event loop.
LONG = 256 * 1024

log = structlog.get_logger()


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """`door`: which endpoint it came by. `session_id`: the session it names, or `lane`: a name of the client's own. `recites`: it brings
    the whole conversation, not only what is new. `after`: the response that it follows, if it names one. `key`: its Idempotency-Key.
    `again`: its sender says that it tried before.
    """

    door: str
    asked: Asked
    model: str | None = None
    session_id: str | None = None
    lane: str | None = None
    recites: bool = True
    after: str | None = None
    key: str | None = None
    again: bool = False

    @property
    def lines(self) -> list[Line]:
        return self.asked.lines

    @property
    def dedup_key(self) -> str | None:
        return f"openai|{self.key}" if self.key else None

    @property
    def unmistakable(self) -> bool:
        """What it says stands at one place of one conversation: the same words later are another recital."""
        return self.after is not None or (self.recites and self.session_id is None and self.lane is None)


class _Found(msgspec.Struct, frozen=True, kw_only=True):
    """Where a request goes. `session`: None for a new one. `earlier`: what the agent is told that was said before."""

    how: str
    session: Session | None = None
    messages: Sequence[Line]
    earlier: Sequence[Line] = ()


class _Saying(msgspec.Struct, frozen=True, kw_only=True):
    """New lines that are one message, with the ids of its uploads."""

    lines: Sequence[Line]
    attachments: Sequence[str]


class Conversations:
    """`counted`: messages by door and by how their conversation was found."""

    def __init__(self, gateway: Gateway, blobs: Blobs, delivered: Delivered, *, max_upload_bytes: int) -> None:
        self._gateway, self._blobs, self._delivered, self._max_bytes = gateway, blobs, delivered, max_upload_bytes
        self._locks = Locks()
        self.counted: Counter[tuple[str, str]] = Counter()

    @property
    def models(self) -> list[str]:
        return [OWN_MODEL, *self._gateway.settings.models]

    async def send(self, request: Request) -> Recited:
        """The message of this request, on disk: accepted now, or, for a request that came before, then (P1)."""
        if request.model is not None and request.model not in self.models:
            raise NoSuchModel(request.model, self.models)
        if not any(line.role == USER and (line.text.strip() or line.attached) for line in request.lines):
            raise BadInput("There is nothing to say: the request has no message of a user.")
        made = await self._digests(request.lines)
        digest = made[-1]
        if not request.recites:  # What does not begin with the first message is no conversation to be found.
            digest = f"-{recitals.digest(f'{request.after} {digest}')}"
        async with self._locks.alone(request.key), self._locks.alone(request.lane or _known_by(request, made)):
            repeated = await self._repeated(request, digest)
            if repeated is not None:
                return self._note(request, repeated, "repeated")
            found = await self._find(request, made)
            return self._note(request, await self._post(request, found, digest), found.how)

    def _note(self, request: Request, sent: Recited, how: str) -> Recited:
        self.counted[request.door, how] += 1
        log.info("a message came in", door=request.door, session=sent.session_id, message=sent.message_id, conversation=how)
        return sent

    async def _digests(self, lines: Sequence[Line]) -> list[str]:
        if sum(len(line.text) for line in lines) < LONG:
            return recitals.digests(lines)
        return await asyncio.to_thread(recitals.digests, lines)

    # did it come before

    async def _repeated(self, request: Request, digest: str) -> Recited | None:
        store = self._gateway.store
        if request.dedup_key is not None:
            known = await store.recited_under(request.dedup_key)
            if known is not None and known.recital.digest != digest:
                raise KeyReused(request.key or "")
            return known
        if not request.again or not request.unmistakable:
            return None
        since = self._gateway.now() - TRIED_AGAIN_MS
        found = await store.reciting([digest], limit=CANDIDATES)
        return next((each for each in found if each.at >= since and each.message_id not in self._delivered), None)

    # which conversation

    async def _find(self, request: Request, made: Sequence[str]) -> _Found:
        session = await self._named(request)
        if session is not None:
            found = _Found(how="named", session=session, messages=await self._unheard(session, request, made))
        else:
            known = await self._known(request.lines, made) if request.recites and request.lane is None else None
            earlier, messages = recitals.new(request.lines)
            found = known or _Found(how="new", messages=messages, earlier=earlier)
        if not any(line.text.strip() or line.attached for line in found.messages):
            raise BadInput("There is nothing new to answer: behind the last answer the request has no message of a user.")
        return found

    async def _named(self, request: Request) -> Session | None:
        if request.session_id is not None:
            return await self._gateway.session(request.session_id)
        if request.lane is not None:
            return await self._gateway.store.current_session(str(keys.page_key(self._gateway.settings.profile, request.lane)))
        return None

    async def _unheard(self, session: Session, request: Request, made: Sequence[str]) -> Sequence[Line]:
        """What is new to a session that was named: what stands behind the part that it knows, or else behind the last answer."""
        lines = request.lines
        if not request.recites:
            return [line for line in lines if line.role == USER]
        last = await self._gateway.store.last_recited(session.session_id)
        for end in recitals.ends(lines):
            if last is not None and last.recital.digest == made[end]:
                return recitals.behind(lines, end)[1]
        return recitals.new(lines)[1]

    async def _known(self, lines: Sequence[Line], made: Sequence[str]) -> _Found | None:
        """The conversation in which everything up to the last answer was said, as its newest part, and answered so."""
        ends = recitals.ends(lines)
        candidates = await self._gateway.store.reciting([made[end] for end in ends], limit=CANDIDATES) if ends else []
        for end in ends:
            sent, messages = recitals.behind(lines, end)
            for candidate in candidates:
                if candidate.recital.digest == made[end] and await self._answered_so(candidate, sent):
                    session = await self._gateway.session(candidate.session_id)
                    return _Found(how="known", session=session, messages=messages)
        return None

    async def _answered_so(self, candidate: Recited, sent: str) -> bool:
        """What became of a turn that did not complete is the client's own to show, and so is what it sends back of it."""
        for records in (True, False):
            prose = Prose()
            answering = Answering(candidate.message_id, candidate.seq)
            await read(self._gateway, candidate, answering, prose.take_all, records=records)
            if answering.over:
                break
        if answering.status in (Status.FAILED, Status.CANCELLED, Status.INCOMPLETE):
            return True
        prose.rest(answering)
        if answering.waited and recitals.agrees(prose.content[0], sent):  # It was told to wait, whatever was answered since.
            return True
        said = "".join(prose.content)
        if len(sent) + len(said) < LONG:
            return recitals.agrees(sent, said)
        return await asyncio.to_thread(recitals.agrees, sent, said)

    # into it

    async def _post(self, request: Request, found: _Found, digest: str) -> Recited:
        *first, last = [_Saying(lines=lines, attachments=await self._upload(lines)) for lines in _apart(found.messages)]
        session = found.session or await self._begin(request, found)
        await self._choose(session, request.model)
        earlier = found.earlier
        for number, saying in enumerate(first):
            key = f"openai part {number}|{request.key}" if request.key else None
            await self._say(session, request, saying, earlier, digest, key)
            earlier = earlier if _command(saying.lines) else ()
        return await self._say(session, request, last, earlier, digest, request.dedup_key)

    async def _begin(self, request: Request, found: _Found) -> Session:
        """What cannot be said there begins no session."""
        check_text(recitals.composed(found.messages, earlier=found.earlier, instructions=request.asked.instructions), may_be_empty=True)
        title = next((line.text for line in found.messages if line.text.strip()), "")
        return await self._gateway.create_session(title_of(title) or None, lane=request.lane)

    async def _choose(self, session: Session, model: str | None) -> None:
        default = next(iter(self._gateway.settings.models), None)
        if model not in (None, OWN_MODEL, session.model or default):
            await self._gateway.change_session(session.session_id, SessionChanged(model=model))

    async def _say(
        self, session: Session, request: Request, saying: _Saying, earlier: Sequence[Line], digest: str, key: str | None
    ) -> Recited:
        """Instructions are given once, and again when they have changed. Words to the gateway are nothing that they are about."""
        lines = saying.lines
        given = await self._gateway.store.last_recited(session.session_id)
        holds = given.recital.instructions if given else None
        text, wanted = recitals.composed(lines), request.asked.instructions
        if not _command(lines):
            new = recitals.digest(wanted) if wanted else holds
            text = recitals.composed(lines, earlier=earlier, instructions=wanted if new != holds else None)
            holds = new
        recital = Recital(digest=digest, instructions=holds)
        try:
            accepted = await self._gateway.post(
                session.session_id, text, client_id=None, dedup_key=key, attachments=saying.attachments, recital=recital
            )
        except DuplicateOtherContent as error:
            raise KeyReused(request.key or "") from error
        sent = await self._gateway.store.recited(accepted.message_id)
        if sent is None:  # The key belongs to something else.
            raise KeyReused(request.key or "")
        return sent

    async def _upload(self, lines: Sequence[Line]) -> list[str]:
        files: list[File] = [file for line in lines for file in line.attached]
        if len(files) > rules.MOST_ATTACHMENTS:
            raise BadInput(f"A message takes at most {rules.MOST_ATTACHMENTS} files. Send the others with the next one.")
        await self._gateway.store.uploads([file.attachment_id for file in files if file.attachment_id is not None])
        return [file.attachment_id or await self._put(file) for file in files]

    async def _put(self, file: File) -> str:
        data = file.decoded() if len(file.data) < LONG else await asyncio.to_thread(file.decoded)
        if len(data) > self._max_bytes:
            raise UploadTooLarge(self._max_bytes)

        async def chunks() -> AsyncIterator[bytes]:
            yield data

        kind = rules.type_of(file.media_type)
        kept, _ = await self._blobs.upload(chunks(), name=rules.name_of(file.name), media_type=kind, client_id=None)
        return kept.attachment_id


def _known_by(request: Request, made: Sequence[str]) -> str | None:
    """By what its conversation is looked for. Of several requests that look for the same, each must see what those before it found."""
    ends = recitals.ends(request.lines) if request.recites else []
    return made[ends[-1]] if ends else None


def _command(lines: Sequence[Line]) -> bool:
    return len(lines) == 1 and commands.parse(lines[0].text) is not None


def _apart(messages: Sequence[Line]) -> list[list[Line]]:
    """New messages, as they are said: each command alone, what stands between them together."""
    made: list[list[Line]] = []
    for line in messages:
        if made and not _command([line]) and not _command(made[-1]):
            made[-1].append(line)
        else:
            made.append([line])
    return made
