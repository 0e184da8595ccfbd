"""The order in which the messages of a conversation are read."""

from holdfast.core.messages import Message


class Rows:
    """An answer has its place from the moment its turn starts; nobody sees it before it says something."""

    __slots__ = ("_rows", "_unsaid")

    def __init__(self) -> None:
        self._rows: list[Message] = []
        self._unsaid: set[str] = set()

    def read(self) -> list[Message]:
        return [message for message in self._rows if message.id not in self._unsaid] if self._unsaid else self._rows

    def newest(self, ids: tuple[str, ...]) -> Message | None:
        """The last message that has one of these ids."""
        return next((message for message in reversed(self._rows) if message.id in ids), None)

    def append(self, message: Message) -> None:
        self._rows.append(message)

    def begin(self, answer: Message) -> None:
        """The place of an answer that has not said anything yet."""
        self._rows.append(answer)
        self._unsaid.add(answer.id)

    def above(self, answer: Message) -> Message | None:
        """The message below which an answer will be read that has not said anything yet."""
        if answer.id not in self._unsaid:
            return None
        place = self._find(answer)
        return next((row for row in reversed(self._rows[:place]) if row.id not in self._unsaid), None)

    def show(self, answer: Message) -> None:
        self._unsaid.discard(answer.id)

    def take(self, message: Message) -> None:
        """Above what the gateway said and heard while it waited: a notice stands below the message it is about."""
        place = len(self._rows)
        while place > 0 and self._is_aside(self._rows[place - 1], message.created_at):
            place -= 1
        self._rows.insert(place, message)

    def _is_aside(self, message: Message, since: int) -> bool:
        return message.id in self._unsaid or (message.turn_id is None and message.created_at >= since)

    def insert_above(self, answer: Message, message: Message) -> None:
        """The answer continues below it."""
        self._rows.insert(self._find(answer), message)

    def move_down(self, answer: Message) -> None:
        """Below whatever came between its attempts."""
        self._rows.append(self._rows.pop(self._find(answer)))

    def _find(self, message: Message) -> int:
        """Near the end, for whatever is looked for while it changes."""
        return next(place for place in reversed(range(len(self._rows))) if self._rows[place] is message)
