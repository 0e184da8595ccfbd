"""One send or edit, and what came of it. Where the thread or the message it hangs on is gone, it goes to what is left of the place."""

import asyncio
from collections.abc import Awaitable, Callable

import msgspec

from holdfast.core import delivery, notices
from holdfast.core.chat_errors import AnchorGone, Limited, LoggedOut, MessageGone, Muted, PlaceGone, PlaceMoved, ThreadGone
from holdfast.core.errors import Refused, Unavailable
from holdfast.core.places import Place
from holdfast.gateway.links import LOG_IN_AGAIN_S, Link
from holdfast.ports.platforms import Outgoing, Receipt
from holdfast.ports.updates import Updates

MOST_WAYS = 4


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """`happened`: as in the table of deliveries; "gone" for an edit of a message that is no longer there. `retry_s`: when to try again, if
    the platform said so.
    """

    happened: str
    receipt: Receipt | None = None
    error: str | None = None
    retry_s: float | None = None


class Sender:
    """`paid`: what a request costs was taken from the budget before (`Link.take`)."""

    def __init__(self, store: Updates) -> None:
        self._store = store

    async def send(self, link: Link, message: Outgoing, *, paid: bool = False) -> Outcome:
        async def once(place: Place, before: str) -> Receipt:
            text = message.text.after(before) if before else message.text
            return await link.platform.send(msgspec.structs.replace(message, place=place, text=text))

        size = len(message.file.data) if message.file is not None else 0
        outcome = await self._try(link, message.place, once, lost="lost", paid=paid, size=size)
        # Only an edit has a message that can be gone.
        return msgspec.structs.replace(outcome, happened="give up") if outcome.happened == "gone" else outcome

    async def edit(self, link: Link, target: str, message: Outgoing, *, paid: bool = False) -> Outcome:
        async def once(place: Place, before: str) -> Receipt:
            await link.platform.edit(target, msgspec.structs.replace(message, place=place))
            return Receipt(target)

        return await self._try(link, message.place, once, lost="edit lost", paid=paid)

    async def remove(self, link: Link, place: Place, target: str, *, paid: bool = False) -> Outcome:
        async def once(place: Place, before: str) -> Receipt:
            await link.platform.remove(place, target)
            return Receipt(target)

        return await self._try(link, place, once, lost="edit lost", paid=paid)

    async def _try(
        self, link: Link, place: Place, once: Callable[[Place, str], Awaitable[Receipt]], *, lost: str, paid: bool = False, size: int = 0
    ) -> Outcome:
        kept, before = place, ""
        place = link.native(place)
        if not paid:
            link.take(kept)
        link.use(kept)
        for _ in range(MOST_WAYS):
            try:
                async with asyncio.timeout(delivery.send_s(size)):
                    receipt = await once(place, before)
                link.arrived(kept)
                return Outcome(happened="receipt", receipt=receipt)
            except AnchorGone as error:
                if place.reply_to is None:
                    return Outcome(happened="give up", error=str(error))
                place = msgspec.structs.replace(place, reply_to=None)
            except ThreadGone as error:
                if place.thread is None and place.topic is None:
                    return Outcome(happened="give up", error=str(error))
                place, before = msgspec.structs.replace(place, thread=None, topic=None, reply_to=None), notices.thread_gone()
            except PlaceMoved as error:
                await link.move(self._store, was=place.chat, now=error.now)
                place = msgspec.structs.replace(place, chat=error.now)
            except Exception as error:  # The platform's boundary: everything is an outcome.
                return await self._failed(link, kept, error, lost=lost)
        return Outcome(happened="give up", error="The place changed again and again.")

    async def _failed(self, link: Link, place: Place, error: Exception, *, lost: str) -> Outcome:
        match error:
            case MessageGone():
                return Outcome(happened="gone", error=str(error))
            case PlaceGone():
                await link.close(self._store, place.spot, str(error))
                return Outcome(happened="give up", error=str(error))
            case LoggedOut():
                link.log_out(str(error))
                return Outcome(happened="failed", error=str(error), retry_s=LOG_IN_AGAIN_S)
            case Limited():
                await link.limited(self._store, place, error)
                return Outcome(happened="failed", error=str(error), retry_s=error.retry_after_s)
            case Muted():
                link.mute(place, error.retry_after_s, str(error))
                return Outcome(happened="failed", error=str(error))
            case Unavailable():
                return Outcome(happened="failed", error=str(error))
            case Refused():
                return Outcome(happened="give up", error=str(error))
            case TimeoutError():
                return Outcome(happened=lost, error="no answer in time")
            case _:
                return Outcome(happened=lost, error=f"{type(error).__name__}: {error}")
