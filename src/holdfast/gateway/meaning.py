"""What follows from something that people did in a chat: a message is accepted or refused aloud, an edit changes what it can still change,
a button answers its question, an echo settles what nobody knew.
"""

from collections.abc import Sequence
from functools import partial

import msgspec
import structlog

from holdfast.core import inbound, notices, rights
from holdfast.core.chat_errors import LoggedOut
from holdfast.core.commands import COMMANDS
from holdfast.core.errors import BadInput, BlobMissing, Bug, CannotEdit, Deleted, DuplicateOtherContent, LaneFull, NotFound, Refused
from holdfast.core.inbound import Click, Echo, Edit, Inbound, Invitation, Message, Move, Presence, Removal, Sealed, Source
from holdfast.core.places import Spot
from holdfast.core.plans.command import Say
from holdfast.core.rights import Verdict
from holdfast.core.sessions import Session
from holdfast.gateway.acceptance import Acceptance, Said
from holdfast.gateway.clicks import Clicks
from holdfast.gateway.delivery import Deliveries
from holdfast.gateway.fetching import Fetching
from holdfast.gateway.host import Host
from holdfast.gateway.links import Link
from holdfast.gateway.people import People
from holdfast.gateway.strangers import Strangers
from holdfast.gateway.tasks import insist
from holdfast.ports.platforms import Guest
from holdfast.ports.store import Store
from holdfast.ports.updates import StoredUpdate

log = structlog.get_logger()


class _Early:
    """Edits that came before their message, which is on its way: the newest words of each count. The update of each stays stored until
    then, so that the next process finds it; what is given back here are updates that are needed no more.
    """

    def __init__(self) -> None:
        self._edits: dict[str, tuple[Edit, StoredUpdate]] = {}
        self._taken: dict[str, str] = {}

    def keep(self, key: str, edit: Edit, update: StoredUpdate) -> list[StoredUpdate]:
        _, older = self._edits.pop(key, (None, update))
        self._edits[key] = edit, update
        return [older] if older.id != update.id else []

    def forget(self, now: int) -> list[StoredUpdate]:
        gone = inbound.waits_no_more({key: update.at for key, (_, update) in self._edits.items()}, now)
        return [self._edits.pop(key)[1] for key in gone]

    def newest(self, key: str, message: Message) -> Message:
        """The message with its newest words."""
        found = self._edits.get(key)
        if found is None or found[0].source.user != message.source.user:
            return message
        return msgspec.structs.replace(message, text=found[0].text)

    def take(self, key: str) -> list[StoredUpdate]:
        """Its message is part of a conversation, or was not meant for us."""
        if key not in self._edits:
            return []
        edit, update = self._edits.pop(key)
        self._taken[key] = edit.version
        if len(self._taken) > inbound.MOST_EARLY:
            del self._taken[next(iter(self._taken))]
        return [update]

    def was_taken(self, key: str, edit: Edit) -> bool:
        """Whether it came again after its message."""
        return self._taken.get(key) == edit.version


class Meaning:
    def __init__(
        self,
        *,
        store: Store,
        host: Host,
        acceptance: Acceptance,
        people: People,
        strangers: Strangers,
        deliveries: Deliveries,
        fetching: Fetching,
        clicks: Clicks,
        profile: str,
    ) -> None:
        self._store, self._clock, self._ids, self._acceptance = store, host.clock, host.ids, acceptance
        self._people, self._strangers, self._deliveries, self._fetching = people, strangers, deliveries, fetching
        self._clicks, self._profile = clicks, profile
        self._early = _Early()

    async def offer_commands(self, link: Link) -> None:
        """A courtesy: nothing depends on it."""
        try:
            await link.platform.offer({name: COMMANDS[name] for name in list(COMMANDS)[: link.platform.capabilities.commands]})
        except Exception as error:  # The platform's boundary.
            log.warning("the menu of commands was not set", platform=link.name, error=f"{type(error).__name__}: {error}")

    async def act(self, link: Link, found: Sequence[Inbound], update: StoredUpdate) -> bool:
        """Messages that were sent together are one. False if the update has to stay stored: it says something of a message that is still
        on its way.
        """
        done, messages = True, [one for one in found if isinstance(one, Message)]
        if messages:
            await self._message(link, messages)
        for one in found:
            match one:
                case Edit():
                    done = await self._edit(link, one, update)
                case Removal():
                    await self._removal(link, one)
                case Click():
                    await self._clicks.press(link, self._kept(link, one.source), one)
                case Echo():
                    await self._deliveries.echo(link, one)
                case Move():
                    await link.move(self._store, was=one.was, now=one.now)
                case Presence(there=True):
                    await link.reopen(self._store, link.kept(one.chat))
                case Invitation():
                    await self._invited(link, one)
                case Sealed():
                    await self._sealed(link, one)
                case Presence():
                    await link.close(self._store, Spot(link.name, link.kept(one.chat)), one.why)
        return done

    async def forget_early(self) -> None:
        """Edits whose message did not come."""
        await self._needed_no_more(self._early.forget(self._clock.now()))

    async def _needed_no_more(self, updates: Sequence[StoredUpdate]) -> None:
        for update in updates:
            await insist(partial(self._store.settle_update, update.id))

    async def _message(self, link: Link, messages: Sequence[Message]) -> None:
        first = messages[0]
        source = self._kept(link, first.source)
        await link.reopen(self._store, source.chat)
        match await self._verdict(link, source, messages):
            case Verdict.STRANGER:
                await self._strangers.refuse(link, msgspec.structs.replace(first, source=source))
            case Verdict.ALLOWED:
                session_key = rights.session_key(self._profile, link.name, source, link.policy)
                newest = [self._early.newest(_key(link, one.key), one) for one in messages]
                await self._accept(session_key, await self._said(link, newest))
        for one in messages:
            await self._needed_no_more(self._early.take(_key(link, one.key)))

    async def _invited(self, link: Link, invitation: Invitation) -> None:
        """Who may talk to the agent may invite it. A stranger who opens a private chat gets a pairing code there, if there is one to be
        had; every other invitation is declined, and says why.
        """
        platform, source = link.platform, invitation.source
        if not isinstance(platform, Guest):
            raise Bug(f"{link.name} cannot accept an invitation.")
        try:
            if await self._people.verdict(link.name, source, addressed=True) is Verdict.ALLOWED:
                await platform.join(source.chat)
                log.info("joined a chat", platform=link.name, chat=source.chat, invited_by=source.user)
            elif await self._strangers.has_a_code_for(link, source):
                await platform.join(source.chat)
                await self._strangers.refuse(link, Message(key=f"{source.chat}|invitation", source=source))
            else:
                log.warning("a stranger's invitation is declined", platform=link.name, user=source.user, chat=source.chat)
                await platform.decline(source.chat, notices.not_allowed(link.name, None, again=False))
        except LoggedOut:
            raise
        except Refused as error:
            log.info("an invitation is gone", platform=link.name, chat=source.chat, error=str(error))

    async def _sealed(self, link: Link, sealed: Sealed) -> None:
        """Told once in each chat: the key is the chat's."""
        source = self._kept(link, sealed.source)
        match await self._people.verdict(link.name, source, addressed=True):
            case Verdict.STRANGER:
                await self._strangers.refuse(link, Message(key=sealed.key, source=source, anchor=sealed.anchor))
            case Verdict.ALLOWED:
                session = await self._session(rights.session_key(self._profile, link.name, source, link.policy))
                said = Said(
                    text=notices.sealed_words(),
                    sender=rights.sender(link.name, source.user),
                    dedup_key=_key(link, sealed.key),
                    anchor=str(sealed.anchor) or None,
                )
                try:
                    await self._acceptance.answer(session, said, Say(notices.sealed()))
                except (Deleted, DuplicateOtherContent):
                    log.debug("an encrypted chat was told already", platform=link.name, chat=source.chat)

    async def _verdict(self, link: Link, source: Source, messages: Sequence[Message]) -> Verdict:
        """In a thread that we take part in, those who may talk need not name us each time. Strangers are left alone there."""
        found = await self._people.verdict(link.name, source, addressed=any(one.addressed for one in messages))
        if found is not Verdict.NOT_MEANT or not any(one.follows for one in messages):
            return found
        key = rights.session_key(self._profile, link.name, source, link.policy)
        if await self._store.current_session(key) is None:
            return found
        meant = await self._people.verdict(link.name, source, addressed=True)
        return meant if meant is Verdict.ALLOWED else found

    def _kept(self, link: Link, source: Source) -> Source:
        chat = link.kept(source.chat)
        return source if chat == source.chat else msgspec.structs.replace(source, chat=chat)

    async def _said(self, link: Link, messages: Sequence[Message]) -> Said:
        first = messages[0]
        text = "\n\n".join(one.text for one in messages if one.text)
        attached, missing = await self._fetching.fetch(link, [file for one in messages for file in one.files])
        if first.quote and not text.startswith("/"):
            text = f"{notices.quoted(first.quote)}\n\n{text}"
        text = "\n\n".join(part for part in (text, *missing) if part)
        return Said(
            text=text,
            attached=attached,
            sender=rights.sender(link.name, first.source.user),
            dedup_key=_key(link, first.key),
            anchor=str(first.anchor) or None,
            reply_to=first.reply_to,
            sender_name=rights.shown_name(first.source.name),
        )

    async def _accept(self, session_key: str, said: Said) -> None:
        try:
            await self._take(await self._session(session_key), said)
        except Deleted:  # Either the session in this moment, or, long ago, the one in which this was already said.
            await self._take(await self._session(session_key), said)
        except DuplicateOtherContent:
            log.info("an update came again with other content", key=said.dedup_key)

    async def _take(self, session: Session, said: Said) -> None:
        """What cannot be accepted is refused aloud, and its words stay readable."""
        try:
            await self._acceptance.take(session, said)
        except LaneFull as error:
            await self._acceptance.answer(session, said, Say(notices.lane_full(error.waiting)))
        except BlobMissing:
            await self._acceptance.answer(session, said, Say(notices.attachment_missing()))
        except BadInput as error:
            await self._acceptance.answer(session, said, Say(str(error)))

    async def _session(self, session_key: str) -> Session:
        session = await self._store.current_session(session_key)
        if session is not None:
            return session
        return await self._store.create_session(
            session_id=self._ids.new("s"), session_key=session_key, log=self._ids.new("l"), at=self._clock.now()
        )

    async def _edit(self, link: Link, edit: Edit, update: StoredUpdate) -> bool:
        """Of a message that nobody accepted, nothing can change, unless the message comes later than its edit: false while it may."""
        key = _key(link, edit.key)
        if not edit.text.strip() or self._early.was_taken(key, edit):
            return True
        known = await self._store.said_under(key)
        if known is None:
            if await self._people.verdict(link.name, self._kept(link, edit.source), addressed=True) is not Verdict.ALLOWED:
                return True
            await self._needed_no_more(self._early.keep(key, edit, update))
            return False
        session_id, message_id = known
        try:
            await self._acceptance.edit(
                session_id,
                message_id,
                edit.text,
                by=rights.sender(link.name, edit.source.user),
                dedup_key=f"edit|{key}|{edit.version}",
            )
        except (CannotEdit, NotFound, DuplicateOtherContent) as error:
            log.info("an edit changes nothing", platform=link.name, error=str(error))
        return True

    async def _removal(self, link: Link, removal: Removal) -> None:
        known = await self._store.said_under(_key(link, removal.key))
        if known is not None:
            try:
                await self._store.withdraw(*known, at=self._clock.now())
            except Refused as error:
                log.info("nothing is left to withdraw", platform=link.name, error=str(error))


def _key(link: Link, key: str) -> str:
    return f"update|{link.name}|{link.account.id if link.account else ''}|{key}|0"
