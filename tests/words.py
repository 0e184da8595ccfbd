"""The gateway's own words as people and agents read them, written out: a notice is compared with this text, not with what made it."""

RESTARTING = "Holdfast is restarting."
RESTARTING_INTERRUPTS = "Holdfast is restarting, which interrupts the work in progress here. It will try to resume it afterwards."
RESTARTING_INTERRUPTS_IN_30_S = (
    "Holdfast is restarting. Work in progress here that is not done within 30 s is interrupted; Holdfast will try to resume it afterwards."
)
BACK = "Holdfast is back."
STOPPING = "Holdfast is shutting down."
STOPPING_INTERRUPTS = "Holdfast is shutting down, which interrupts the work in progress here. What is done so far is kept."
STOPPED_INSTEAD = "Holdfast did not restart. It was asked to stop instead."
MAY_NOT_RESTART = "You are not allowed to restart Holdfast from here. Ask the person who runs it."
CANNOT_RESTART = "Holdfast cannot restart itself here. Restart it where it was started."
KEPT = "Your message is saved; Holdfast will answer once it is working again."

BEGUN = {
    "asked": "This is a new conversation, because you asked for one. The previous one is kept: /resume 1 brings it back.",
    "idle": "This is a new conversation, because nothing was said for a while. The previous one is kept: /resume 1 brings it back.",
    "daily": "This is a new conversation, because a new day has begun. The previous one is kept: /resume 1 brings it back.",
    "suspended": "This is a new conversation, because the previous one was suspended. The previous one is kept: /resume 1 brings it back.",
}
ALREADY_NEW = "This conversation is still empty, so there is nothing to start over."
REFUSED_SECOND = "This message was not answered, because the conversation was suspended first. Send it again:\n\n> second"
REFUSED_BOTH = "These messages were not answered, because {why}. Send them again:\n\n> second\n> third"

STOPPED = "Stopped."
STOPPED_ONE_WAITS = "Stopped. 1 message is waiting and will be answered next."
STOPPED_TWO_WAIT = "Stopped. 2 messages are waiting and will be answered next."
ALREADY_ENDED = "That has already ended."
ALREADY_ENDED_ANOTHER_RUNS = "That has already ended. Another answer is running now: send /stop again to stop that one."
NOTHING_TO_STOP = "Nothing is running here, so there is nothing to stop."

STUCK = (
    "3 restarts in a row interrupted this conversation, so it is suspended. "
    "Send /resume to continue it, or a message to start a new conversation."
)
HELD = (
    "Your last request was interrupted by a crash, and Holdfast is set to continue nothing by itself. "
    "Nothing is lost: send /resume to continue it, or a new message to continue from there."
)
ONE_AT_A_TIME = "after several crashes Holdfast resumes one conversation at a time, so it may take some minutes."
HELD_IN_SAFE_MODE = (
    "Your last request was interrupted by a crash, and Holdfast is in safe mode after several crashes. "
    "Nothing is lost: send /resume to continue it, or a new message to continue from there."
)
ATTACHMENT_MISSING = "An attachment of this message could not be kept, so the message was not accepted. Send it again."
COMMAND_WITH_ATTACHMENT = "/status is a command to the gateway and takes no attachments. Send them with a message."
EXPIRED = "Nobody answered in time; the question has expired."
NOTHING_TO_RESUME = "There is nothing to resume: no work was interrupted here, and there is no earlier conversation."
ALREADY_HERE = "You are already in that conversation, and no work in it was interrupted. /sessions lists the others."
QUEUE_WHAT = "Say what to send: /queue TEXT"
HELP = """\
/stop - Stop what is running. Waiting messages stay.
/new - Start a new conversation; this one is kept.
/resume [number or id] - Go back to an earlier conversation, or continue interrupted work.
/sessions - List the conversations of this chat.
/status - Show what is happening here.
/model [name or number] - List the models, or choose the one that answers in this conversation.
/remind [WHEN TEXT] - Start work from TEXT at a time, once or again and again; without words, list what is planned.
/queue TEXT - Send TEXT as the next message, even while a question is open.
/steer TEXT - Send TEXT to the answer that is being written.
/interrupt TEXT - Stop what is running, and answer TEXT next.
/approve [id or all] [always] - Let a call run that waits for your approval; `always` for this conversation.
/deny [id or all] [reason] - Refuse a call that waits for your approval.
/restart - Restart Holdfast (if allowed).
/help - List these commands."""

_UNKNOWN = "A call whose outcome is unknown may have done its work: check before you repeat it, and tell the user if it matters."
_CAUSES = {"restart_timeout": "gateway restart", "shutdown_timeout": "gateway shutdown"}
TOOL_TAIL_NOTE = (
    "[System note: the history ends in tool results that were not processed, because a gateway interruption or an error ended that turn. "
    f"Process them first and summarise what was accomplished, then answer the message. {_UNKNOWN}]"
)


def note_with_message(reason: str) -> str:
    return (
        f"[System note: a {_CAUSES.get(reason, 'gateway interruption')} interrupted the previous turn. The history is intact. Process "
        "unfinished tool results first and summarise what was accomplished, then answer the message. Do not repeat what was done. "
        f"{_UNKNOWN}]"
    )


def note_to_continue(reason: str) -> str:
    return (
        f"[System note: a {_CAUSES.get(reason, 'gateway interruption')} interrupted this turn, and it now continues. Continue the "
        "interrupted work. Results that are recorded stand; do not repeat what was done, above all not the command that restarted the "
        f"gateway. {_UNKNOWN}]"
    )
