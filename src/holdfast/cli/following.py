"""What becomes of one message: event by event, what to print and when it is over. Pure, so that every order of events can be tried."""

from typing import Any, NamedTuple


class Text(NamedTuple):
    """A piece of the answer."""

    text: str


class Note(NamedTuple):
    """A sentence about the turn."""

    text: str


# The tool that asks the user: its question is printed for itself.
ASK = "ask"
# The notice with which a conversation begins that took the place of another.
BEGUN = ".begun"
BEGINS_ANEW = "The answer begins anew:"


class Following:
    """`shown` is what was printed of the answer, `answer` what the log says it is. `known` are answers of turns that were open before the
    message was sent: it may continue one of them. `left`: why the turn was cut and does not go on by itself.
    """

    def __init__(self, message_id: str, known: dict[str, str] | None = None) -> None:
        self.message_id = message_id
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

    def apply(self, event: str, data: dict[str, Any]) -> list[Text | Note]:
        if event == "snapshot":
            return self.see(data)
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
                return [Note(f"{data['name']}: {next(iter(arguments.values())) if len(arguments) == 1 else arguments}")]
            case "tool.finished" if data["outcome"] != "done":
                return [Note(f"outcome: {data['outcome']}")]
            case "question.asked":
                self.question = data
            case "question.answered":
                self.question = None
            case "turn.interrupted":
                return [Note(f"Cut ({data['reason']}).")]
            case "turn.left" if self.question is None:
                self.left = f"rule {data['rule']}" + (f", {data['why']}" if data["why"] else "")
            case "turn.resumed":
                self.left = None
                return [Note(f"Resumed (rule {data['rule']}), attempt {data['attempt']}.")] if data["reason"] != "answered" else []
            case "turn.ended":
                self.outcome, self.error, self.left = data["outcome"], data.get("error"), None
        return []

    def see(self, view: dict[str, Any]) -> list[Text | Note]:
        """The whole session at once, where the stream could not go on from where we were."""
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

    def _see_without_turn(self, message: dict[str, Any], view: dict[str, Any]) -> list[Text | Note]:
        if message["status"] == "refused":
            self.outcome, self.error = "refused", "its conversation was left before its turn came"
        replies = [each["text"] for each in view["messages"] if each["id"] == self._reply_id]
        return self._replied(replies[0]) if replies else []

    @property
    def _reply_id(self) -> str:
        """Words to the gateway start no turn; what it says to them has this name."""
        return f"{self.message_id}.reply"

    def _replied(self, text: str) -> list[Text | Note]:
        self.answer, self.outcome = text, "command"
        return self._print(final=True)

    def _find(self, event: str, data: dict[str, Any]) -> list[Text | Note]:
        """The turn our message starts, or goes into as an answer; or what the gateway itself says to it."""
        if event == "message.written" and data["message_id"] == self._reply_id:
            return self._replied(data["text"])
        if event == "message.written" and data["role"] == "notice" and data["message_id"].endswith(BEGUN):
            return [Note(data["text"])]
        if event == "message.refused" and data["message_id"] == self.message_id:
            self.outcome, self.error = "refused", data["reason"]
        elif event == "turn.started" and self.message_id in data["message_ids"]:
            self.turn_id = data["turn_id"]
        elif event == "question.answered" and data.get("message_id") == self.message_id:
            self.turn_id = data["turn_id"]
            self.answer = self.shown = self._known.get(data["turn_id"], "")
        return []

    def _print(self, *, final: bool) -> list[Text | Note]:
        """What of the answer is not on the screen yet. A new attempt may write the same again: that is not printed twice."""
        if self.answer.startswith(self.shown):
            piece, self.shown = self.answer[len(self.shown) :], self.answer
            return [Text(piece)] if piece else []
        if self.shown.startswith(self.answer) and not final:
            return []
        self.shown = self.answer
        return [Note(BEGINS_ANEW), Text(self.answer)]
