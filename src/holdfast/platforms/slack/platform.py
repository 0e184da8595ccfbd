"""A bot on Slack (`ports.platforms.Platform`): translation and capabilities only."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import msgspec
from slack_sdk.signature import SignatureVerifier

from holdfast.core.capabilities import MB, Capabilities, Rates
from holdfast.core.chat_errors import Limited, LoggedOut, MessageGone, Unsigned
from holdfast.core.commands import Usage
from holdfast.core.errors import NotFound, Refused, Unavailable
from holdfast.core.inbound import Click, Inbound, RemoteFile
from holdfast.core.places import Place
from holdfast.core.rich import Rich
from holdfast.platforms.slack import reading, rendering
from holdfast.platforms.slack.backlog import ABSENCE_S, Backlog, Gap
from holdfast.platforms.slack.catching_up import CatchUp
from holdfast.platforms.slack.errors import Answer, BadBlocks, Unanswered, Unscoped, meaning
from holdfast.platforms.slack.history import History
from holdfast.platforms.slack.reading import METADATA, Me
from holdfast.platforms.slack.sockets import Frame, Sockets, Ticket
from holdfast.platforms.slack.wire import Wire
from holdfast.ports.platforms import Account, Batch, Hooked, OutFile, Outgoing, Receipt

NAME = "slack"
# How often a receiver that hears nothing says that it is still there, and that nothing is missing. Over HTTP it asks whether that is so.
BEAT_S = 20.0
# What was posted a moment ago is not yet in the history.
LAG_S = 1.5
CAPABILITIES = Capabilities(
    text_limit=4000,
    # Edits of all messages together may be some 50 a minute, messages some hundred: edits leave nine tenths of the budget alone.
    rates=Rates(every_s=(1.0, 1.0), burst=1, edit_every_s=(3.0, 3.0), account_per_s=4.0, account_burst=20, kept=18),
    finds=True,
    buttons=rendering.MOST_BUTTON_DATA,
    typing_s=60.0,
    bytes_in=50 * MB,
    bytes_out=50 * MB,
)


class Slack:
    """`app_token`: for Socket Mode. Without it Slack tells us over HTTP, signed with `signing_secret`. `lag_s`: as `LAG_S`. `absence_s`: as
    `ABSENCE_S`. `beat_s`: as `BEAT_S`.
    """

    name = NAME

    def __init__(
        self,
        bot_token: str,
        *,
        app_token: str = "",
        signing_secret: str = "",
        base_url: str = "",
        lag_s: float = LAG_S,
        absence_s: float = ABSENCE_S,
        beat_s: float = BEAT_S,
    ) -> None:
        self.capabilities = CAPABILITIES
        self._wire, self._lag_s, self._absence_s = Wire(bot_token, app_token, base_url=base_url), lag_s, absence_s
        self._beat_s = beat_s
        self._signatures = None if app_token else SignatureVerifier(signing_secret)
        self._sockets = Sockets(self._wire)
        self._history = History(self._ask)
        self._backlog = Backlog(None, 0.0)
        self._me = Me(user="")
        self._check_at = 0.0

    async def connect(self) -> Account:
        found = await self._tell("auth.test")
        self._me = Me(user=found["user_id"], bot=found.get("bot_id", ""))
        return Account(f"{found['team_id']}.{found['user_id']}", f"@{found.get('user', '')}")

    # what people do

    async def receive(self, cursor: str | None) -> AsyncIterator[Batch]:
        """First what came since the cursor where somebody may be waiting, then what comes now. What is left to ask for is asked in
        between, as slowly as Slack wants it.
        """
        await self._sockets.aclose()
        self._backlog = Backlog(cursor, time.time(), self._absence_s)
        try:
            if self._signatures is None:
                await self._open()
            missed = CatchUp(self._history, await self._gaps(), heard_until=self._backlog.heard_until)
            while True:
                batch = await self._heard(missed)
                handed_at = time.monotonic()
                yield batch
                self._check_stored_since(handed_at)
        finally:
            await self._sockets.aclose()

    async def _heard(self, missed: CatchUp) -> Batch:
        if missed.done:
            self._backlog.finish()
        elif missed.wait_s == 0:
            return self._batch(await missed.ask())
        frame = await self._next(self._beat_s if missed.done else min(missed.wait_s, self._beat_s), catching_up=not missed.done)
        return self._batch(()) if frame is None else self._batch((frame.body,), frame.ticket)

    def _check_stored_since(self, handed_at: float) -> None:
        """Over HTTP, what came while nothing could be stored was refused, and Slack may have given up repeating it. The stored cursor is
        from before that.
        """
        if self._signatures is not None and time.monotonic() - handed_at > self._absence_s:
            raise Unavailable("Nothing could be stored for a while. Asking Slack for what came meanwhile.")

    async def _gaps(self) -> list[Gap]:
        gaps = self._backlog.gaps()
        if self._backlog.was_away:
            gaps += self._backlog.unknown(await self._history.chats())
        return gaps

    async def _open(self) -> None:
        try:
            await self._sockets.open()
        except Exception as error:
            raise _later(error) from None

    async def _next(self, within_s: float, *, catching_up: bool) -> Frame | None:
        if self._signatures is not None:
            await asyncio.sleep(within_s)
            await self._check_tokens(catching_up=catching_up)
            return None
        try:
            return await self._sockets.next(within_s)
        except Exception as error:
            raise _later(error) from None

    async def _check_tokens(self, *, catching_up: bool) -> None:
        """Nothing else would tell that they were revoked. Not at every request for what was missed, and none of those is thrown away
        because Slack does not answer here.
        """
        if catching_up and time.monotonic() < self._check_at:
            return
        self._check_at = time.monotonic() + self._beat_s
        try:
            await self._wire.tell("auth.test")
        except Exception as error:
            meant = _later(error)
            if not catching_up or isinstance(meant, LoggedOut):
                raise meant from None

    def _batch(self, updates: Sequence[bytes], ticket: Ticket | None = None) -> Batch:
        for update in updates:
            self._backlog.note(update, self._me)
        return Batch(updates=tuple(updates), cursor=self._backlog.cursor(time.time()), ticket=ticket)

    async def acknowledge(self, batch: Batch) -> None:
        if batch.ticket is not None:
            await self._sockets.acknowledge(batch.ticket)

    def hooked(self, headers: Mapping[str, str], body: bytes) -> Hooked:
        if self._signatures is None:
            raise NotFound("webhook", NAME)
        try:
            signed = self._signatures.is_valid_request(body, dict(headers))
        except ValueError:  # Neither a time nor text.
            signed = False
        if not signed:
            raise Unsigned("The request does not carry Slack's signature, or is too old.")
        try:
            found = reading.decoded(body)
        except (Refused, msgspec.DecodeError, KeyError):
            return Hooked(updates=(body,))  # Kept as it came, for the operator.
        if found.get("type") == "url_verification":
            return Hooked(reply=str(found.get("challenge", "")).encode())
        self._backlog.note(body, self._me)
        return Hooked(updates=(body,))

    def read(self, update: bytes) -> Sequence[Inbound]:
        return reading.read(update, self._me)

    async def fetch(self, file: RemoteFile) -> AsyncIterator[bytes]:
        found = (await self._ask("files.info", file=file.id))["file"]
        try:
            yield await self._wire.download(found.get("url_private_download") or found["url_private"])
        except (Answer, Unanswered) as error:
            if isinstance(error, Answer) and 400 <= error.status < 500:
                raise Refused(f"Slack does not give the file ({error}).") from None
            raise Unavailable(f"Slack did not give the file ({error}).") from None

    # what we say

    def size(self, text: Rich) -> int:
        return rendering.size(text)

    async def send(self, message: Outgoing) -> Receipt:
        """The key goes along as metadata, by which the message is found again."""
        where = {"channel": message.place.chat, "thread_ts": message.place.thread}
        marked = {"metadata": {"event_type": METADATA, "event_payload": {"id": message.key}}}
        if message.file is not None:
            address = await self._upload(message.file)
            words = f"{rendering.words(message.text)} <{address}|{rendering.words(Rich(message.file.name))}>".strip()
            sent = await self._tell("chat.postMessage", **where, **marked, text=words)
        else:
            plain = {"unfurl_links": False, "unfurl_media": False, "mrkdwn": False}
            sent = await self._say("chat.postMessage", message, **where, **marked, **plain)
        return Receipt(sent["ts"])

    async def edit(self, target: str, message: Outgoing) -> None:
        try:
            await self._say("chat.update", message, channel=message.place.chat, ts=target)
        except Limited as error:  # Slack counts the edits of a workspace, whichever channels they are in.
            raise Limited(error.retry_after_s, edits=True) from None

    async def _say(self, method: str, message: Outgoing, **fields: Any) -> dict[str, Any]:
        """What is refused for its formatting was surely not sent: then the words go alone."""
        words = {"text": rendering.words(message.text)}
        try:
            return await self._tell(method, **fields, **words, blocks=rendering.blocks(message.text, message.buttons))
        except BadBlocks:
            return await self._tell(method, **fields, **words, blocks=[])

    async def _upload(self, file: OutFile) -> str:
        """The address of the file. Nobody sees it before a message names it, so nothing of this can be doubled."""
        try:
            place = await self._ask("files.getUploadURLExternal", filename=file.name, length=len(file.data))
            await self._wire.upload(place["upload_url"], file.data)
            await self._tell("files.completeUploadExternal", files=[{"id": place["file_id"], "title": file.name}])
            return str((await self._ask("files.info", file=place["file_id"]))["file"]["permalink"])
        except (Answer, Unanswered) as error:
            raise Unavailable(f"Slack did not take the file ({error}).") from None
        except Unscoped as error:  # Words still arrive.
            raise Refused(str(error)) from None

    async def remove(self, place: Place, target: str) -> None:
        try:
            await self._tell("chat.delete", channel=place.chat, ts=target)
        except MessageGone as error:
            if "message_not_found" not in str(error):
                raise

    async def find(self, key: str, place: Place) -> Receipt | None:
        found = await self._history.sent_under(key, place)
        if found is None:
            await asyncio.sleep(self._lag_s)
            found = await self._history.sent_under(key, place)
        return None if found is None else Receipt(found)

    # courtesies

    async def typing(self, place: Place) -> None:
        """Slack shows it in threads only, and until something is posted there."""
        if place.thread is not None:
            await self._tell("assistant.threads.setStatus", channel_id=place.chat, thread_ts=place.thread, status="is working…")

    async def answer_click(self, click: Click, words: str) -> None:
        where = {"channel": click.source.chat, "thread_ts": click.source.thread}
        await self._tell("chat.postEphemeral", **where, user=click.source.user, text=words)

    async def offer(self, commands: Mapping[str, Usage]) -> None:
        """Commands are in the app's manifest."""

    async def aclose(self) -> None:
        await self._sockets.aclose()
        await self._wire.aclose()

    async def _tell(self, method: str, **fields: Any) -> dict[str, Any]:
        try:
            return await self._wire.tell(method, **fields)
        except Exception as error:
            raise meaning(error, writes=True) from None

    async def _ask(self, method: str, **fields: Any) -> dict[str, Any]:
        """Asking again does no harm, so what failed in any way has not happened."""
        try:
            return await self._wire.ask(method, **fields)
        except Exception as error:
            raise _later(error) from None


def _later(error: Exception) -> Exception:
    meant = meaning(error)
    return Unavailable(f"Slack did not answer ({error}).", retry_after_s=2.0) if isinstance(meant, Answer | Unanswered) else meant
