"""Sends a message and follows its answer, through any number of restarts of the gateway."""

import mimetypes
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from holdfast.cli.access import conversations
from holdfast.cli.access.client import Client, Response, connect
from holdfast.cli.access.insisting import Insisting
from holdfast.cli.messages.following import Following, Note, Piece
from holdfast.cli.terminal.layout import count, moment, short
from holdfast.core import commands
from holdfast.core.busy import Mode
from holdfast.core.errors import HoldfastError, Unavailable

NEW = "new"
BEGINNING = "0"


class NotSent(Unavailable):
    code = "not_sent"

    def __init__(self, why: str, client_id: str) -> None:
        self.why = why
        super().__init__(
            f"{why} The message may have arrived; to be sure, send it again with --client-id {client_id}: it will not be sent twice."
        )


class NoAnswer(Unavailable):
    code = "no_answer"

    def __init__(self, why: str, session_id: str) -> None:
        self.why = why
        super().__init__(f"{why} The message is saved, and its turn continues while a gateway runs. `holdfast show {session_id}` shows it.")


class Sent(NamedTuple):
    """`after` is the cursor from before the message, `known` the replies of turns that were open then. `paused` and `busy` are sentences
    about why it is not answered at once.
    """

    message_id: str
    session_id: str
    after: str
    known: dict[str, str]
    paused: str | None = None
    busy: str | None = None

    @property
    def waits(self) -> str | None:
        return self.paused or self.busy


class Sending:
    """Repeats each step until the gateway has done it; the name of the message makes that safe. `put` prints what comes. `met`: as of
    `Insisting`.
    """

    def __init__(self, home: Path, *, timeout_s: float | None = None, put: Callable[[Piece], None], met: bool = False) -> None:
        self._home, self._put, self._timeout_s = home, put, timeout_s
        self._until = time.monotonic() + timeout_s if timeout_s is not None else None
        self._insist = Insisting(home, tell=lambda sentence: put(Note(sentence)), until=self._until, met=met)

    def send(self, key_or_id: str, text: str, client_id: str, attach: Sequence[Path] = (), mode: str | None = None) -> Sent:
        try:
            return self._send(key_or_id, text, client_id, attach, mode)
        except TimeoutError:
            raise NotSent(f"The gateway did not answer within {self._timeout_s:g} s.", client_id) from None
        except Unavailable as error:
            if not self._insist.met:
                raise
            raise NotSent(str(error), client_id) from error

    def _send(self, key_or_id: str, text: str, client_id: str, attach: Sequence[Path], mode: str | None) -> Sent:
        tries = 0
        attachments: list[str] = []

        def post(client: Client) -> Response:
            nonlocal tries
            tries += 1
            return client.post_message(session_id, text, client_id, attachments, mode)

        if key_or_id == NEW:
            session_id = self._insist(lambda client: client.post("/api/sessions")).body["session_id"]
            after, known, busy = BEGINNING, {}, None
        else:
            session_id = conversations.session_id(self._home, key_or_id)
            before = self._insist(lambda client: client.session(session_id))
            after, known, busy = before["cursor"], _open_replies(before), _queued(before, mode)
        attachments += [self._upload(file, f"{client_id}.{number}") for number, file in enumerate(attach)]
        response = self._insist(post)
        # A message that was sent earlier, or went to another session, may be anywhere in the log.
        if response.body["session_id"] != session_id or (response.status == 200 and tries == 1):
            after, known, busy = BEGINNING, {}, None
        paused = self._paused()
        command = commands.parse(text)
        if command is not None and command.name not in commands.SENDING:  # The gateway answers those at once.
            paused = busy = None
        return Sent(response.body["message_id"], response.body["session_id"], after, known, paused, busy)

    def _upload(self, file: Path, client_id: str) -> str:
        media_type = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
        return self._insist(lambda client: client.upload(file, media_type, client_id))

    def _paused(self) -> str | None:
        """A message sent during a pause is answered after it. Worth one request and no retries: the message is on disk."""
        try:
            status = connect(self._home).status()
        except HoldfastError:
            return None
        if not status.paused_by or not status.paused_until:
            return None
        until = short(moment(status.paused_until), datetime.now().astimezone())
        return (
            f"Holdfast is paused by {status.paused_by} until {until}. Your message is saved and will be answered after that; "
            "`holdfast unpause` ends the pause now."
        )

    def follow(self, sent: Sent) -> Following:
        """Returns when the turn is over, or when it waits for a person: to answer a question, or to continue it after an interruption."""
        if sent.waits:
            self._put(Note(sent.waits))
        following = Following(sent.message_id, sent.known, told=sent.paused is not None)
        cursor = sent.after

        def read(client: Client) -> bool:
            """True when there is nothing more to wait for."""
            nonlocal cursor
            for event in client.events(sent.session_id, after=cursor, until=self._until):
                self._insist.answered()
                for piece in following.apply(event.event, event.data):
                    self._put(piece)
                cursor = event.id or cursor
                if following.read_again:
                    cursor = following.read_again
                    return False
                if following.over or ((following.question or following.left) and _still_waits(client, sent.session_id, following)):
                    return True
            return False

        try:
            while not self._insist(read):
                self._insist.pause()  # The server closed on purpose: it is stopping, or we were too slow.
        except TimeoutError:
            raise NoAnswer(f"No answer within {self._timeout_s:g} s.", sent.session_id) from None
        except Unavailable as error:
            raise NoAnswer(str(error), sent.session_id) from error
        return following


def _still_waits(client: Client, session_id: str, following: Following) -> bool:
    """A reader that catches up sees questions that were answered long ago, and interrupted turns that continued since. Calls of one
    response are asked about together, and the reader may have seen only the first of these questions.
    """
    session = client.session(session_id)
    newest = session["turns"][-1]["id"] if session["turns"] else None
    following.questions = {asked["question_id"]: asked for asked in session["questions"] if asked["turn_id"] == following.turn_id}
    if following.left and not (session["left"] and newest == following.turn_id):
        following.left = None
    return following.question is not None or following.left is not None


def _queued(before: dict[str, Any], mode: str | None) -> str | None:
    """What a message waits for, judging by the conversation as it was before the message."""
    if before["state"] not in ("running", "queued") or mode in (Mode.INTERRUPT, Mode.REJECT):
        return None
    if mode == Mode.STEER:
        return "Sent to the answer that is being written; what it does not take becomes the next message."
    ahead = f" and {count(before['queued'], 'message')}" if before["queued"] else ""
    return f"Queued: this conversation is busy. Your message comes after the answer that is being written{ahead}."


def _open_replies(session: dict[str, Any]) -> dict[str, str]:
    return {
        message["turn_id"]: message["text"]
        for message in session["messages"]
        if message["role"] == "assistant" and message["status"] == "partial"
    }
