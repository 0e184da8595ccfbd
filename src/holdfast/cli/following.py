"""Follows one message through the events of its session: what to print, and when it is over. Pure, so that every order of events can
be tried."""

from typing import Any, NamedTuple

from holdfast.core import notices


class Text(NamedTuple):
    """A piece of the answer."""

    text: str


class Note(NamedTuple):
    """A sentence about the turn, in our own words."""

    text: str


class Doing(NamedTuple):
    """What the agent does in the meantime, in its own words."""

    text: str


Piece = Text | Note | Doing

# The tool that asks the user: its question is printed separately.
ASK = "ask"
# Notices are known by the ends of their ids: the first one of a new conversation, an answer to a command, the words of a message that was
# refused, and the one that says that a message waits.
BEGUN, REPLY, REFUSED, HELD = ".begun", ".reply", ".refused", ".held."
OUTCOMES = {"failed": "The tool failed.", "unknown": "Whether the tool did its work is not known."}
STARTS_OVER = "The answer starts over:"


class Following:
    """`shown` is what was printed of the answer, `answer` what the log says it is. `known` are answers of turns that were open before the
    message was sent: it may continue one of them. `left`: why the turn was interrupted and does not continue by itself. `told`: the
    sender knows already that the message waits.
    """

    def __init__(self, message_id: str, known: dict[str, str] | None = None, *, told: bool = False) -> None:
        self.message_id, self._told = message_id, told
        self._accepted = False
        self.turn_id: str | None = None
        self.answer = self.shown = ""
        self.question: dict[str, Any] | None = None
        self.left: str | None = None
        self.outcome: str | None = None
        self.error: str | None = None
        self._known = known or {}

    @property
    def over(self) -> bool:
        return self.outcome is not None

    def apply(self, event: str, data: dict[str, Any]) -> list[Piece]:
        if event == "snapshot":
            return self.see(data)
        if event == "message.written" and data["role"] == "notice" and data.get("turn_id") is None:
            return self._notice(data)
        if self.turn_id is None:
            return self._find(event, data)
        if data.get("turn_id") != self.turn_id:
            return []
        match event:
            case "text":
                self.answer = self.answer[: data["offset"]] + data["text"]
                return self._print(final=False)
            case "message.written" if data["role"] == "assistant":
                self.answer = data["text"]
                return self._print(final=True)
            case "message.written" if data["role"] == "notice":
                return [Note(data["text"])]
            case "tool.started" if data["name"] != ASK:
                arguments = data["arguments"]
                return [Doing(f"{data['name']}: {next(iter(arguments.values())) if len(arguments) == 1 else arguments}")]
            case "tool.finished" if data["outcome"] != "done":
                return [Note(OUTCOMES.get(data["outcome"], f"The tool's outcome: {data['outcome']}."))]
            case "question.asked":
                self.question = data
            case "question.answered":
                self.question = None
            case "turn.interrupted":
                return [Note(f"Interrupted by {notices.cut_by(data['reason'])}.")]
            case "turn.left" if self.question is None:
                self.left = data["why"] or f"rule {data['rule']}"
            case "turn.resumed":
                self.left = None
                return [Note(f"Continued (attempt {data['attempt']}).")] if data["reason"] != "answered" else []
            case "turn.ended":
                self.outcome, self.error, self.left = data["outcome"], data.get("error"), None
        return []

    def see(self, view: dict[str, Any]) -> list[Piece]:
        """The whole session at once, where the stream could not continue from where we were."""
        message = next((message for message in view["messages"] if message["id"] == self.message_id), None)
        if message is None:
            return []
        if message["turn_id"] is None:
            return self._see_without_turn(message, view)
        self.turn_id = message["turn_id"]
        for each in view["messages"]:
            if each["turn_id"] == self.turn_id and each["role"] == "assistant":
                self.answer = each["text"]
        if view["question"] and view["question"]["turn_id"] == self.turn_id:
            self.question = view["question"]
        for turn in view["turns"]:
            if turn["id"] == self.turn_id:
                self.outcome, self.error = turn["outcome"], turn["error"]
        return self._print(final=self.over)

    def _see_without_turn(self, message: dict[str, Any], view: dict[str, Any]) -> list[Piece]:
        if message["status"] == "refused":
            self.outcome, self.error = "refused", "its conversation was left before its turn came"
        replies = [each["text"] for each in view["messages"] if each["id"] == self._reply_id]
        return self._replied(replies[0]) if replies else []

    @property
    def _reply_id(self) -> str:
        """Commands to the gateway start no turn; the answer to one has this id."""
        return self.message_id + REPLY

    def _replied(self, text: str) -> list[Piece]:
        self.answer, self.outcome = text, "command"
        return self._print(final=True)

    def _notice(self, data: dict[str, Any]) -> list[Piece]:
        """What the gateway says in the conversation: to our command, or about what happens to our message."""
        name = data["message_id"]
        if name == self._reply_id:
            return self._replied(data["text"]) if self.turn_id is None else []
        if name.endswith(BEGUN):
            return [Note(data["text"])] if self.turn_id is None else []
        if not self._accepted or name.endswith((REPLY, REFUSED)) or (HELD in name and self._told):
            return []
        return [Note(data["text"])]

    def _find(self, event: str, data: dict[str, Any]) -> list[Piece]:
        """The turn that our message starts, or that it answers."""
        if event == "message.accepted" and data["message_id"] == self.message_id:
            self._accepted = True
        elif event == "message.refused" and data["message_id"] == self.message_id:
            self.outcome, self.error = "refused", data["reason"]
        elif event == "turn.started" and self.message_id in data["message_ids"]:
            self.turn_id = data["turn_id"]
        elif event == "question.answered" and data.get("message_id") == self.message_id:
            self.turn_id = data["turn_id"]
            self.answer = self.shown = self._known.get(data["turn_id"], "")
        return []

    def _print(self, *, final: bool) -> list[Piece]:
        """What of the answer is not on the screen yet. A new attempt may write the same again: that is not printed twice."""
        if self.answer.startswith(self.shown):
            piece, self.shown = self.answer[len(self.shown) :], self.answer
            return [Text(piece)] if piece else []
        if self.shown.startswith(self.answer) and not final:
            return []
        self.shown = self.answer
        return [Note(STARTS_OVER), Text(self.answer)]
