"""Which responses have reached their clients, as far as this process knows. The same words after that are a new message."""

from collections import OrderedDict

MOST = 10_000


class Delivered:
    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._messages: OrderedDict[str, None] = OrderedDict()

    def note(self, message_id: str) -> None:
        self._messages[message_id] = None
        self._messages.move_to_end(message_id)
        while len(self._messages) > self._most:
            self._messages.popitem(last=False)

    def __contains__(self, message_id: str) -> bool:
        return message_id in self._messages
