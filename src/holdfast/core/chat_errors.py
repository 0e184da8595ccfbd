"""What a platform may say to a send, an edit or a connection, by what has to follow. Whatever else it raises leaves the outcome unknown."""

from holdfast.core.errors import Refused, Unavailable

# Where the platform does not say how long.
WAIT_S = 3.0
# So often it is tried whether we may write again.
MUTED_S = 60.0


class Limited(Unavailable):
    """It was surely not sent, because too much was sent. `account`: nothing of this account may be sent until then; `edits`: none of its
    messages may be edited.
    """

    code = "rate_limited"

    def __init__(self, retry_after_s: float | None, *, account: bool = False, edits: bool = False) -> None:
        super().__init__("The platform asks to send more slowly.", retry_after_s=WAIT_S if retry_after_s is None else retry_after_s)
        self.account, self.edits = account, edits


class Muted(Unavailable):
    """The chat is there, and we may not write in it until somebody gives us the right again. It was surely not sent, and waits."""

    code = "muted"

    def __init__(self, why: str) -> None:
        super().__init__(why, retry_after_s=MUTED_S)


class LoggedOut(Refused):
    """The platform no longer accepts the credentials. What is owed waits until an operator has replaced them."""

    code = "logged_out"


class PlaceGone(Refused):
    """The chat is gone, or closed to us: nothing arrives there any more."""

    code = "place_gone"


class PlaceMoved(Refused):
    """The chat goes by another name from now on; it was not sent."""

    code = "place_moved"

    def __init__(self, now: str) -> None:
        super().__init__(f"The chat has moved and is called {now} from now on.")
        self.now = now


class ThreadGone(Refused):
    """The thread or topic is gone; the chat is still there. It was not sent."""

    code = "thread_gone"


class AnchorGone(Refused):
    """The message that it replies to is gone. It was not sent."""

    code = "anchor_gone"


class MessageGone(Refused):
    """The message that is to be edited is gone, or can no longer be edited."""

    code = "message_gone"


class Unsigned(Refused):
    """A request that claims to come from a platform, without its signature."""

    code = "unsigned"


class Unreadable(Refused):
    """An update that cannot be translated. It is kept as it came."""

    code = "unreadable"
