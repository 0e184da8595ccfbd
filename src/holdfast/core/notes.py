"""What the agent is told about an interruption, in a field of its own and never inside the user's words. People never see it."""

_UNKNOWN_CALLS = "A call whose outcome is unknown may have done its work: check before you repeat it, and tell the user if it matters."
_CAUSES = {"restart_timeout": "gateway restart", "shutdown_timeout": "gateway shutdown"}


def cause_of(reason: str) -> str:
    """The words by which agents know the interruption."""
    return _CAUSES.get(reason, "gateway interruption")


def choose(*, resumed: str | None, pending: str | None, unread_results: bool) -> str | None:
    """The one note for an attempt, or none. `resumed`: why the turn that now continues was interrupted. `pending`: why the
    previous turn was, if nothing has completed since. `unread_results`: the history ends in tool results that nobody processed.
    """
    if resumed is not None:
        return continued(resumed)
    if pending is not None:
        return with_message(pending)
    return tool_tail() if unread_results else None


def continued(reason: str) -> str:
    """For a turn that continues by itself, with no new message from its user."""
    return (
        f"[System note: a {cause_of(reason)} interrupted this turn, and it now continues. Continue the interrupted work. "
        "Results that are recorded stand; do not repeat what was done, above all not the command that restarted the gateway. "
        f"{_UNKNOWN_CALLS}]"
    )


def with_message(reason: str) -> str:
    """For a new message in a conversation whose last turn was interrupted and left."""
    return (
        f"[System note: a {cause_of(reason)} interrupted the previous turn. The history is intact. "
        "Process unfinished tool results first and summarise what was accomplished, then answer the message. "
        f"Do not repeat what was done. {_UNKNOWN_CALLS}]"
    )


def tool_tail() -> str:
    """For a new message after tool results that nobody looked at, though no restart is to blame."""
    return (
        "[System note: the history ends in tool results that were not processed, because a gateway interruption or an error ended that "
        f"turn. Process them first and summarise what was accomplished, then answer the message. {_UNKNOWN_CALLS}]"
    )
