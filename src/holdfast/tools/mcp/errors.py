"""What can go wrong between us and a server, by what is then known of a call: that it was not made, what became of it, or nothing."""

from holdfast.core.errors import HoldfastError

# Codes of errors that we ourselves put in the place of an answer, in the range that the protocol leaves to programs.
NOT_SENT, GONE, LOST, UNUSABLE = -32090, -32091, -32092, -32093


class ServerError(HoldfastError):
    """The server said no, or could not do it."""

    code = "mcp_failed"


class Forgotten(ServerError):
    """The server does not know any more where a call was that rested: it was started again since, or too much time has passed."""

    code = "mcp_forgotten"


class NotSent(ServerError):
    """The server never got the call: it can be made again, whatever it does."""

    code = "mcp_away"


class Lost(ServerError):
    """The server may have got the call, and its answer will not come."""

    code = "mcp_lost"
