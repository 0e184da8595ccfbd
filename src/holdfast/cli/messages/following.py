"""Follows one message through the events of its session: what to print, and when it is over. Pure, so that tests can try every order of
events."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from holdfast.cli.terminal.layout import given
from holdfast.core import notices, pieces
from holdfast.core.pieces import StepText
from holdfast.core.plans.ask import asks


class Text(NamedTuple):
    """A piece of the agent's reply."""

    text: str


class Note(NamedTuple):
    """A sentence about the turn, in our own words."""

    text: str


class Doing(NamedTuple):
    """What the agent is doing, in its own words."""

    text: str


class Printed(NamedTuple):
    """What a tool gave back."""

    text: str


Piece = Text | Note | Doing | Printed

# The ends of notices' ids: the first notice of a new conversation, the reply to a command, the text of a refused message, and the notice
# that a message waits.
BEGUN, REPLY, REFUSED, HELD = ".begun", ".reply", ".refused", ".held."
OUTCOMES = {"failed": "The tool failed.", "unknown": "Whether the tool did its work is not known."}
STARTS_OVER = "The answer starts over:"


class Following:
    """`reply` is the agent's text as the log has it; what was printed of it may be older. `known`: the replies of turns that were open
    before the message was sent, since it may continue one of them. `left`: why the turn was interrupted and does not continue by itself.
    `told`: the sender already knows that the message waits. `read_again`: a snapshot had only a part of the reply; the stream after this
    cursor has all of it.
    """

    def __init__(self, message_id: str, known: dict[str, str] | None = None, *, told: bool = False) -> None:
        self.message_id, self._told = message_id, told
        self._accepted = False
        self.turn_id: str | None = None
        self._step, self._attempt = 0, 0  # Of the piece that came last.
        self._said = StepText("reply")
        self._earlier = ""  # What the steps before said last.
        self.read_again: str | None = None
        self._read_from: set[str] = set()  # Once each: where even that leads to a snapshot, the shortened text must do.
        self.questions: dict[str, dict[str, Any]] = {}
        self.left: str | None = None
        self.outcome: str | None = None
        self.error: str | None = None
        self._known = known or {}
        self._calls: set[str] = set()  # Those whose results are printed.

    @property
    def reply(self) -> str:
        return self._said.text

    @property
    def question(self) -> dict[str, Any] | None:
        """The oldest open one: the next message answers it."""
        return next(iter(self.questions.values()), None)

    @property
    def over(self) -> bool:
        return self.outcome is not None

    def apply(self, event: str, data: dict[str, Any]) -> list[Piece]:
        self.read_again = None
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
                return self._say(data)
            case "message.written" if data["role"] == "assistant":
                said = self._becomes(data["text"], final=True) if self.reply or data["text"] != self._earlier else []
                return [*said, *(Note(f"Attached: {part['name'] or part['type']}.") for part in data.get("parts", ()) if "digest" in part)]
            case "message.written" if data["role"] == "notice":
                return [Note(data["text"])]
            case "tool.started" if not asks(data["name"]):  # A question is printed separately.
                self._calls.add(data["call_id"])
                return [Doing(f"{data['name']}: {given(data['arguments'])}")]
            case "tool.finished":
                return self._finished(data)
            case "model.failed" if data.get("retry_at"):
                return [Note(f"{data['model']} did not answer and is asked again: {data['why']}")]
            case "model.failed":
                return [Note(f"{data['model']} did not answer: {data['why']}")]
            case "question.asked":
                self.questions[data["question_id"]] = data
            case "question.answered":
                self.questions.pop(data["question_id"], None)
            case "turn.interrupted":
                return [Note(f"Interrupted by {notices.interrupted_by(data['reason'])}.")]
            case "turn.left" if self.question is None:
                self.left = data["why"] or f"rule {data['rule']}"
            case "turn.resumed":
                self.left = None
                return [Note(f"Continued (attempt {data['attempt']}).")] if data["reason"] != "answered" else []
            case "turn.ended":
                self.outcome, self.error, self.left = data["outcome"], data.get("error"), None
                self.questions = {}
        return []

    def _finished(self, data: dict[str, Any]) -> list[Piece]:
        outcome, result = data["outcome"], data["result"] or ""
        ran = data["call_id"] in self._calls and outcome != "unknown"
        printed: list[Piece] = [Printed(result)] if ran and result.strip() else []
        return printed if outcome == "done" else [*printed, Note(OUTCOMES.get(outcome, f"The tool's outcome: {outcome}."))]

    def see(self, view: dict[str, Any]) -> list[Piece]:
        """The whole session at once, where the stream could not continue from where we were."""
        message = next((message for message in view["messages"] if message["id"] == self.message_id), None)
        if message is None:
            return []
        if message["turn_id"] is None:
            return self._see_without_turn(message, view)
        self.turn_id = message["turn_id"]
        reply, step = self.reply, self._step
        for each in view["messages"]:
            if each["turn_id"] == self.turn_id and each["role"] == "assistant" and each.get("status") != "superseded":
                if "text_omitted" in each and each["whole_after"] not in self._read_from:
                    self.read_again = each["whole_after"]
                    self._read_from.add(self.read_again)
                    return []
                reply = each["text"]
                step = max((part["step"] for part in each.get("parts", ()) if part["type"] == "text"), default=step)
        self.questions = {asked["question_id"]: asked for asked in view["questions"] if asked["turn_id"] == self.turn_id}
        for turn in view["turns"]:
            if turn["id"] == self.turn_id:
                self.outcome, self.error = turn["outcome"], turn["error"]
                self._attempt = max(self._attempt, turn.get("attempt", 0))
        gap: list[Piece] = []
        if step != self._step:
            gap = [Text("\n\n")] if self.reply else []
            self._step, self._said = step, StepText("reply")
        return [*gap, *self._becomes(reply, final=self.over)]

    def _see_without_turn(self, message: dict[str, Any], view: dict[str, Any]) -> list[Piece]:
        if message["status"] == "refused":
            self.outcome, self.error = "refused", "its conversation was left before its turn came"
        replies = [each["text"] for each in view["messages"] if each["id"] == self._reply_id]
        return self._replied(replies[0]) if replies else []

    @property
    def _reply_id(self) -> str:
        """A command to the gateway starts no turn; the reply to it has this id."""
        return self.message_id + REPLY

    def _replied(self, text: str) -> list[Piece]:
        self.outcome = "command"
        return self._becomes(text, final=True)

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
        """The turn that our message starts, that it answers, or that takes it."""
        if event == "message.accepted" and data["message_id"] == self.message_id:
            self._accepted = True
        elif event == "message.refused" and data["message_id"] == self.message_id:
            self.outcome, self.error = "refused", data["reason"]
        elif event == "turn.started" and self.message_id in data["causes"]:
            self.turn_id = data["turn_id"]
        elif (event == "question.answered" and data.get("message_id") == self.message_id) or (
            event == "cause.taken" and data["cause_id"] == self.message_id
        ):
            self.turn_id = data["turn_id"]
            self._said = StepText("reply", self._known.get(data["turn_id"], ""))
        return []

    def _say(self, data: dict[str, Any]) -> list[Piece]:
        """A piece of the step at hand. What an earlier attempt said, and a later one has said over, is not printed."""
        if (data["attempt"], data["step"]) < (self._attempt, self._step):
            return []
        self._attempt, gap = data["attempt"], []
        if data["step"] != self._step:
            gap = [Text("\n\n")] if self.reply else []
            self._earlier = self.reply or self._earlier
            self._step, self._said = data["step"], StepText("reply")
        return [*gap, *self._printed(self._said.grow(data["offset"], data["text"]))]

    def _becomes(self, reply: str, *, final: bool) -> list[Piece]:
        return self._printed(self._said.become(reply, final=final))

    def _printed(self, new: Iterable[pieces.Piece]) -> list[Piece]:
        """What of the reply is not on the screen yet. A new attempt may write the same again: that is not printed twice."""
        return [Text(piece.text) if isinstance(piece, pieces.Says) else Note(STARTS_OVER) for piece in new]
