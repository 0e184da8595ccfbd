"""What the agent is told about an interruption, beside the user's words and never inside them."""

_CAUSES = {"restart_timeout": "gateway restart", "shutdown_timeout": "gateway shutdown"}


def cause_of(reason: str) -> str:
    """The words by which agents know the interruption."""
    return _CAUSES.get(reason, "gateway interruption")


def resumed(reason: str) -> str:
    """For a turn that goes on by itself, with no new message from its user."""
    return (
        f"[System note: a {cause_of(reason)} cut this turn and it now continues. Go on with the interrupted work. "
        "Results that are recorded stand; do not repeat what was done, above all not the command that restarted the gateway. "
        "A call whose outcome is unknown may have done its work: look before you repeat it.]"
    )
