"""What becomes of those who may not talk to the agent: each is told once, and gets a pairing code where the operator allows that."""

import os

import msgspec
import structlog

from holdfast.core import markdown, notices, pairing, rights
from holdfast.core.errors import BadInput
from holdfast.core.inbound import Message, Source
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

    async def has_a_code_for(self, link: Link, source: Source) -> bool:
        """Whether a stranger in a private chat would get a pairing code now."""
        if not link.policy.pairing or source.shared or source.user in link.policy.blocked:
            return False
        return (await self._asked(link, source.user))[0] is Ask.CODE

    async def _asked(self, link: Link, user: str) -> tuple[Ask, Pending | None]:
        known, now = await self._store.pairings(platform=link.name), self._host.clock.now()
        mine = next((one for one in known if one.user == user), None)
        others = sum(one.alive(now) and one.user != user for one in known)
        return pairing.ask(mine, others=others, now=now), mine

    async def refuse(self, link: Link, message: Message) -> None:
        """A code is kept before it is sent, and as sent after: killed in between, the stranger gets another one, which says that it
        replaces the first.
        """
        source, now = message.source, self._host.clock.now()
        log.warning("a stranger wrote", platform=link.name, user=source.user, name=source.name, chat=source.chat)
        asked, mine = await self._asked(link, source.user)
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
        # A platform that knows its key would show the earlier message, with the earlier code.
        outcome = await self._sender.send(link, Outgoing(place=where, key=os.urandom(12).hex(), text=markdown.read(words)))
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

    async def turn_away(self, platform: str, user: str) -> bool:
        """Shuts somebody out who was let in, or denies somebody who asks to be: their code is void, and they get no other one for a day.
        False if they are neither.
        """
        if await self._store.unpair(platform, user):
            return True
        now = self._host.clock.now()
        known = await self._store.pairings(platform=platform)
        asking = next((one for one in known if one.user == user and one.alive(now)), None)
        if asking is None:
            return False
        await self._store.put_pairing(msgspec.structs.replace(asking, made_at=now, told=True, denied=True))
        return True

    async def let_in(self, platform: str, user: str, *, name: str) -> Paired:
        """Without a code, by their id."""
        if not platform or not user:
            raise BadInput("Name a platform and a user's id.")
        now = self._host.clock.now()
        await self._store.pair(platform, user, name=name, at=now)
        return Paired(platform=platform, user=user, name=name, at=now)
