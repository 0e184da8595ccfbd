"""What becomes of those who may not talk to the agent: each is told once, and gets a pairing code where the operator allows that."""

import os

import msgspec
import structlog

from holdfast.core import markdown, notices, pairing, rights
from holdfast.core.errors import BadInput
from holdfast.core.inbound import Message
from holdfast.core.pairing import Ask, Pending
from holdfast.core.places import place
from holdfast.gateway.host import Host
from holdfast.gateway.links import Link
from holdfast.gateway.sending import Sender
from holdfast.ports.pairings import Paired
from holdfast.ports.platforms import Outgoing
from holdfast.ports.store import Store

log = structlog.get_logger()


class Strangers:
    def __init__(self, *, store: Store, host: Host, links: dict[str, Link], profile: str) -> None:
        self._store, self._host, self._links, self._profile = store, host, links, profile
        self._sender = Sender(store)

    async def refuse(self, link: Link, message: Message) -> None:
        """A code is kept before it is sent, and as sent after: killed in between, the stranger gets another one, which says that it
        replaces the first.
        """
        source, now = message.source, self._host.clock.now()
        log.warning("a stranger wrote", platform=link.name, user=source.user, name=source.name, chat=source.chat)
        known = await self._store.pairings(platform=link.name)
        mine = next((one for one in known if one.user == source.user), None)
        others = sum(one.alive(now) and one.user != source.user for one in known)
        asked = pairing.ask(mine, others=others, now=now)
        if asked is Ask.SILENCE:
            return
        code = pairing.make(os.urandom(2 * pairing.LENGTH)) if link.policy.pairing and not source.shared and asked is Ask.CODE else None
        salt = os.urandom(16)
        digest = pairing.digest(code or os.urandom(16).hex(), salt)
        made = Pending(platform=link.name, user=source.user, name=source.name, salt=salt, digest=digest, made_at=now)
        await self._store.put_pairing(made)
        words = notices.not_allowed(link.name, code, again=mine is not None and mine.alive(now))
        key = rights.session_key(self._profile, link.name, source, link.policy)
        where = place(key, str(message.anchor))
        outcome = await self._sender.send(link, Outgoing(place=where, key=message.key, text=markdown.read(words)))
        if outcome.happened in ("receipt", "lost", "give up"):
            await self._store.put_pairing(msgspec.structs.replace(made, told=True))

    async def approve(self, code: str, *, platform: str | None = None) -> Paired:
        """Lets in the stranger who has this code. Raises `WrongCode`, `TooManyWrongCodes`."""
        now = self._host.clock.now()
        locked_ms = pairing.locked_ms(await self._store.wrong_codes(), now=now)
        if locked_ms:
            raise pairing.TooManyWrongCodes(locked_ms)
        pending = await self._store.pairings(platform=platform)
        found = pairing.find(code, pending, now=now)
        if found is None:
            await self._store.note_wrong_code(at=now)
            raise pairing.WrongCode
        await self._store.pair(found.platform, found.user, name=found.name, at=now)
        return Paired(platform=found.platform, user=found.user, name=found.name, at=now)

    async def let_in(self, platform: str, user: str, *, name: str) -> Paired:
        """Without a code, by their id."""
        if not platform or not user:
            raise BadInput("Name a platform and a user's id.")
        now = self._host.clock.now()
        await self._store.pair(platform, user, name=name, at=now)
        return Paired(platform=platform, user=user, name=name, at=now)
