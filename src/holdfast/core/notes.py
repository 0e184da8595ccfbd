"""What the agent is told about an interruption: in its own field, never mixed with the user's words. People never see it."""

_UNKNOWN_CALLS = "A call whose outcome is unknown may have done its work: check before you repeat it, and tell the user if it matters."
_CAUSES = {"restart_timeout": "gateway restart", "shutdown_timeout": "gateway shutdown"}


def cause_of(reason: str) -> str:
    """The interruption, in words for agents."""
    return _CAUSES.get(reason, "gateway interruption")


def choose(*, resumed: str | None, pending: str | None, unread_results: bool) -> str | None:
    """The note for an attempt, if it needs one. `resumed`: why the turn that now continues was interrupted. `pending`: why the previous
    turn was interrupted, if no turn has completed since. `unread_results`: the history ends in unprocessed tool results.
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
    """For a new message in a conversation whose last turn was interrupted and did not continue."""
    return (
        f"[System note: a {cause_of(reason)} interrupted the previous turn. The history is intact. "
        "Process unfinished tool results first and summarise what was accomplished, then answer the message. "
        f"Do not repeat what was done. {_UNKNOWN_CALLS}]"
    )


def tool_tail() -> str:
    """For a new message after unprocessed tool results, when no restart was the cause."""
    return (
        "[System note: the history ends in tool results that were not processed, because a gateway interruption or an error ended that "
        f"turn. Process them first and summarise what was accomplished, then answer the message. {_UNKNOWN_CALLS}]"
    )
