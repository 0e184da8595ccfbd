"""One message of an editor and its turn: sent once, shown as it is written, through any number of restarts of the gateway."""

import contextlib
import secrets
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from holdfast.cli.access.client import ApiError, Client
from holdfast.cli.access.insisting import Insisting
from holdfast.cli.acp.editor import Editor
from holdfast.cli.acp.files import Files
from holdfast.cli.acp.prompts import Message
from holdfast.cli.acp.updates import Updates, note
from holdfast.cli.messages.following import Following
from holdfast.cli.messages.sending import NotSent, Sending
from holdfast.cli.terminal.questions import is_approval
from holdfast.core.errors import HoldfastError, Refused, Unavailable
from holdfast.core.texts import visible

END_TURN, CANCELLED = "end_turn", "cancelled"
# How often one that waits for the gateway looks whether it was cancelled.
LOOKS_S = 0.1
ONCE, ALWAYS, DENY = "once", "always", "deny"
# After these events somebody may be asked something.
ASKING = ("question.asked", "turn.waiting", "question.answered", "turn.left", "snapshot")


class NotAnswered(Refused):
    """The turn ended without an answer."""

    code = "not_answered"


class Turn:
    """`known_as`: the editor's id of the session. `session_id`: where its messages go, which is another one after a reset."""

    def __init__(self, home: Path, editor: Editor, known_as: str, files: Files) -> None:
        self._home, self._editor, self._known_as, self._files = home, editor, known_as, files
        self.session_id = known_as
        self._insist = Insisting(home, tell=self._tell, met=True)
        self._cancelled = threading.Event()
        self._updates: Updates | None = None
        self._asked: set[str] = set()  # Questions that the editor was asked.

    # the two ways to begin

    def prompt(self, session_id: str, given: Message) -> str:
        """Sends a message and shows its turn. Returns the protocol's reason for the end; raises `HoldfastError`."""
        over = threading.Event()
        try:
            if not self._serve(session_id, over):
                return CANCELLED
            return self._prompt(session_id, given, over)
        finally:
            over.set()

    def _serve(self, session_id: str, over: threading.Event) -> bool:
        """The editor's files, before a tool may want one. False if the prompt is cancelled while the gateway is away."""
        known = self._files.serve(session_id, over, self._tell)
        while not known.wait(LOOKS_S):
            if self._cancelled.is_set():
                return False
        return True

    def _prompt(self, session_id: str, given: Message, over: threading.Event) -> str:
        client_id = f"acp-{secrets.token_hex(10)}"
        sending = Sending(self._home, put=lambda piece: self._tell(piece.text), met=True)
        with tempfile.TemporaryDirectory(prefix="holdfast-") as folder:
            files = [Path(folder) / f"{number}-{Path(file.name).name}" for number, file in enumerate(given.files)]
            for path, file in zip(files, given.files, strict=True):
                path.write_bytes(file.data)
            try:
                sent = sending.send(session_id, given.text, client_id, files)
            except NotSent as error:
                raise Unavailable(f"{error.why} The message may have arrived; load the conversation again to see.") from error
        self.session_id = sent.session_id
        if sent.waits:
            self._tell(sent.waits)
        self._updates = Updates(Following(sent.message_id, sent.known, told=sent.paused is not None))
        if self._cancelled.is_set():
            self.cancel()
        if self.session_id != session_id:
            self._serve(self.session_id, over)
        return self._follow(sent.after)

    def take_up(self, view: dict[str, Any]) -> None:
        """Shows the rest of a turn that is still open, for a conversation that was just replayed."""
        turn = view["turns"][-1] if view["turns"] else None
        if turn is None or turn["state"] == "ended":
            return
        asked = ("user", "cause")  # A process or a schedule starts turns, too.
        message = next((each for each in view["messages"] if each["role"] in asked and each["turn_id"] == turn["id"]), None)
        if message is None:  # Its record is damaged: nothing says what is to be followed.
            return
        self._updates = Updates(Following(message["id"]))
        self._updates.see(view)
        try:
            self._follow(view["cursor"], questions=True)
        except HoldfastError as error:
            self._tell(str(error))

    def cancel(self) -> None:
        """Blocks until the stop is on disk. A message that still waits is taken back."""
        self._cancelled.set()
        updates = self._updates
        if updates is None:
            return  # It is stopped once it is sent.
        following = updates.following
        with contextlib.suppress(HoldfastError):  # It has ended, or has just begun: then the first event of its turn stops it.
            self._patiently(lambda client: _stop(client, self.session_id, following))

    def _patiently(self, ask: Callable[[Client], Any]) -> None:
        """For threads other than the one that follows the turn: that one tells the editor when the gateway is away."""
        Insisting(self._home, tell=lambda sentence: None, met=True)(ask)

    # following

    def _follow(self, after: str, *, questions: bool = False) -> str:
        """`questions`: some may be open already."""
        updates, cursor, stopped = self._updates, after, False
        assert updates is not None
        following = updates.following

        def read(client: Client) -> str | None:
            nonlocal cursor, stopped, questions
            if questions:  # Again, if the gateway died while we asked what is open.
                if told := self._ask_open(client, updates):
                    return told
                questions = False
            for event in client.events(self.session_id, after=cursor):
                self._insist.answered()
                for update in updates.apply(event.event, event.data):
                    self._editor.update(self._known_as, update)
                cursor = event.id or cursor
                if following.read_again:
                    cursor = following.read_again
                    return None
                if self._cancelled.is_set() and following.turn_id is not None and not following.over and not stopped:
                    with contextlib.suppress(ApiError):
                        _stop(client, self.session_id, following)
                    stopped = True
                if following.over:
                    return self._ended(following)
                if event.event in ASKING:
                    questions = True
                    if told := self._ask_open(client, updates):
                        return told
                    questions = False
            return None

        while (reason := self._insist(read)) is None:
            self._insist.pause()
        return reason

    def _ended(self, following: Following) -> str:
        if following.outcome == "cancelled" or (self._cancelled.is_set() and following.outcome == "refused"):
            return CANCELLED
        if following.outcome in ("completed", "command"):
            return END_TURN
        why = f": {following.error}" if following.error else ""
        told = "The message was not answered" if following.outcome == "refused" else f"The turn ended as {following.outcome}"
        raise NotAnswered(f"{told}{why}".rstrip(".") + ".")

    def _ask_open(self, client: Client, updates: Updates) -> str | None:
        """Approvals become permission requests, each once. A question in words ends the prompt: the next one answers it."""
        following = updates.following
        if following.turn_id is None:
            return None
        session = client.session(self.session_id)
        mine = [asked for asked in session["questions"] if asked["turn_id"] == following.turn_id]
        for question in mine:
            if is_approval(question) and question["question_id"] not in self._asked:
                self._asked.add(question["question_id"])
                for update in updates.pending(question):
                    self._editor.update(self._known_as, update)
                threading.Thread(target=self._permission, args=(question,), daemon=True).start()
        if session["state"] == "waiting" and (words := [asked for asked in mine if not is_approval(asked)]):
            self._editor.update(self._known_as, _question(words[0], following))
            return END_TURN
        if not mine and session["left"] and session["turns"] and session["turns"][-1]["id"] == following.turn_id:
            why = following.left or session["why"] or "it was interrupted"
            raise NotAnswered(f"The turn was interrupted and does not continue by itself ({why}). Send a message to continue.")
        return None

    def _permission(self, question: dict[str, Any]) -> None:
        """Asks the editor, and passes on its answer. One that comes too late changes nothing."""
        replied = self._editor.ask("session/request_permission", permission(self._known_as, question))
        outcome = (replied or {}).get("outcome")
        chosen = outcome.get("optionId") if isinstance(outcome, dict) else None
        if chosen not in (ONCE, ALWAYS, DENY):
            return  # It was cancelled: the stop comes by itself, and otherwise the approval stays open for the page.
        name = question["question_id"]
        more = {"scope": "session"} if chosen == ALWAYS else {}
        try:
            self._patiently(lambda client: client.judge(name, "deny" if chosen == DENY else "approve", client_id=f"acp-{name}", **more))
        except HoldfastError as error:
            self._tell(str(error))

    def _tell(self, sentence: str) -> None:
        self._editor.update(self._known_as, note(sentence))


def _stop(client: Client, session_id: str, following: Following) -> None:
    if following.turn_id is not None:
        client.order(session_id, "stop", turn_id=following.turn_id)
    else:
        client.take_back(session_id, following.message_id)


def permission(session_id: str, question: dict[str, Any]) -> dict[str, Any]:
    """The request for an approval. Its text names the very call, and where it would run."""
    options = [{"optionId": ONCE, "name": "Allow once", "kind": "allow_once"}]
    if question["pattern"]:
        name = f"Always allow {visible(question['pattern'])} in this conversation"
        options.append({"optionId": ALWAYS, "name": name, "kind": "allow_always"})
    options.append({"optionId": DENY, "name": "Deny", "kind": "reject_once"})
    content = [{"type": "content", "content": {"type": "text", "text": question["text"]}}]
    return {"sessionId": session_id, "toolCall": {"toolCallId": question["call_id"], "content": content}, "options": options}


def _question(question: dict[str, Any], following: Following) -> dict[str, Any]:
    choices = "".join(f"\n- {choice}" for choice in question["choices"])
    text = f"{question['text']}{choices}"
    content = {"type": "text", "text": text}
    return {"sessionUpdate": "agent_message_chunk", "content": content, "messageId": f"{following.message_id}.{question['question_id']}"}
