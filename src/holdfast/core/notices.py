"""What the gateway itself tells people, in its own words, not the agent's."""

from collections.abc import Mapping, Sequence

from holdfast.core.blame import is_suspect
from holdfast.core.commands import COMMANDS
from holdfast.core.resume import Staleness
from holdfast.core.sessions import Session
from holdfast.core.texts import visible
from holdfast.core.turns import TurnState

INTERRUPTED_BY = {
    "crash": "a crash",
    "shutdown_timeout": "a shutdown",
    "restart_timeout": "a restart",
    "store_full": "a full disk",
    "store_gone": "the loss of the database",
    "suspended": "a suspension",
    "restored": "the restoring of a backup",
}
# What starts turns, apart from messages.
STARTED_BY = {"schedule": "a schedule", "process": "a background process", "watch": "a background process"}
# Why a conversation was started in place of another.
BEGUN_BECAUSE = {
    "suspended": "the previous one was suspended",
    "idle": "nothing was said for a while",
    "daily": "a new day has begun",
    "asked": "you asked for one",
    "deleted": "the previous one was deleted",
}
_HOW_TO_CONTINUE = "Nothing is lost: send /resume to continue it, or a new message to continue from there."
ONE_AT_A_TIME = "after several crashes Holdfast resumes one conversation at a time, so it may take some minutes."
MAX_QUOTED = 10_000
# Why a reply is not sent.
OWED_TOO_LONG = "it was owed when a backup was made that is too old to send it now"
# Why a message that showed an answer is no longer known.
LOST_MESSAGE = "nobody knows whether it arrived"
# What stands for an event, and for a command, that cannot be read.
MISSING_EVENT = "it is missing from the log"
CHANGED_EVENT = "it was changed on disk"
DAMAGED_EVENT = "its checksum does not match"
DAMAGED_COMMAND = "(damaged)"


def interrupted_by(reason: str) -> str:
    return INTERRUPTED_BY.get(reason, "an interruption")


def span(ms: int) -> str:
    """A span of time, in at most two units. Never negative."""
    s = max(0, ms) // 1000
    for size, unit, smaller, part in ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if s >= size:
            rest = s % size // smaller
            return f"{s // size} {unit} {rest} {part}" if rest else f"{s // size} {unit}"
    return f"{s} s"


def interrupted_earlier(reason: str, ms: int, staleness: Staleness | None = None, *, cause: str = "message") -> str:
    """What interrupted a turn, and how long ago; if that is why it was set aside, why it was too old. What it was started by, if not by a
    message (E8).
    """
    started = f" (started by {STARTED_BY.get(cause, 'an event')})" if cause != "message" else ""
    if staleness is Staleness.UNKNOWN:
        return f"interrupted by {interrupted_by(reason)} at an unknown time{started}"
    off = ", and Holdfast is set to continue nothing by itself" if staleness is Staleness.OFF else ""
    return f"interrupted by {interrupted_by(reason)} {span(ms)} earlier{off}{started}"


def interrupted(reason: str, *, written: bool, worked: bool, holes: bool) -> str:
    """The row about an interruption. It says that nothing was written only if there was no tool call either (F1). `holes`: some of the
    turn's record could not be read.
    """
    if written:
        kept = ". What had been written is kept."
    elif worked:
        kept = ". The work so far is kept."
    else:
        kept = ". Some output may be missing." if holes else " before anything was written."
    return f"Interrupted by {interrupted_by(reason)}{kept}"


def journal(reason: str, state: str) -> str:
    """The row about an interruption whose journal was late. `state`: recovering, recovered or neutral."""
    known = {
        "recovering": "Some of its output has not arrived yet; Holdfast is looking for it.",
        "recovered": "Its output was recovered from the run journal.",
    }
    return f"Interrupted by {interrupted_by(reason)}. {known.get(state, 'Some output may be missing.')}"


def begun_because(reason: str) -> str:
    return BEGUN_BECAUSE.get(reason, "the previous one was left")


def begun(reason: str, number: int) -> str:
    return f"This is a new conversation, because {begun_because(reason)}. The previous one is kept: /resume {number} brings it back."


def branched(title: str | None, left_out: int) -> str:
    named = f"in \u201c{title}\u201d" if title else "in another conversation"
    missing = f" Its first {left_out} answers are left out." if left_out > 1 else " Its first answer is left out." if left_out else ""
    return f"Everything above was said {named} and is copied from there.{missing} From here on this is a conversation of its own."


def already_new() -> str:
    return "This conversation is still empty, so there is nothing to start over."


def refused(texts: Sequence[str], why: str) -> str:
    """Said once for all waiting messages, quoting them, so that nobody has to remember them."""
    one = len(texts) == 1
    listed = "\n".join(f"> {text[:MAX_QUOTED]}{'…' if len(text) > MAX_QUOTED else ''}".replace("\n", "\n> ") for text in texts)
    which, them = ("This message was", "it") if one else ("These messages were", "them")
    return f"{which} not answered, because {why}. Send {them} again:\n\n{listed}"


def deleted_unanswered() -> str:
    return "The conversation here was deleted before your last message was answered. Send it again to start a new one."


def stopped(queued: int) -> str:
    if not queued:
        return "Stopped."
    return f"Stopped. {queued} {'message is' if queued == 1 else 'messages are'} waiting and will be answered next."


def already_ended(*, another: bool) -> str:
    """For a stop whose turn had ended by then, usually because it was sent more than once."""
    return "That has already ended." + (" Another answer is running now: send /stop again to stop that one." if another else "")


def nothing_to_stop() -> str:
    return "Nothing is running here, so there is nothing to stop."


def stuck(times: int, *, in_a_row: bool = True) -> str:
    return (
        f"{times} restarts{' in a row' if in_a_row else ''} interrupted this conversation, so it is suspended. "
        "Send /resume to continue it, or a message to start a new conversation."
    )


def suspended_elsewhere(session: Session) -> str:
    """For operators, who may have to look into it."""
    title = f" “{session.title}”" if session.title else ""
    return (
        f"The conversation{title} ({session.session_key}) is suspended: Holdfast was interrupted repeatedly while working on it. "
        f"See the log. To continue it: `holdfast resume {session.session_id}`"
    )


def _work(cause: str) -> str:
    return "Your last request" if cause == "message" else f"Work started by {STARTED_BY.get(cause, 'an event')}"


def stale(reason: str, ms: int, staleness: Staleness, *, cause: str = "message") -> str:
    match staleness:
        case Staleness.OFF:
            because = f"{span(ms)} ago, and Holdfast is set to continue nothing by itself"
        case Staleness.UNKNOWN:
            because = "at an unknown time, so it was not continued without asking"
        case Staleness.OLD:
            because = f"{span(ms)} ago, too long ago to continue without asking"
    return f"{_work(cause)} was interrupted by {interrupted_by(reason)} {because}. {_HOW_TO_CONTINUE}"


def held(reason: str, *, safe_mode: bool, cause: str = "message") -> str:
    because = "is in safe mode after several crashes" if safe_mode else "is set to continue nothing by itself"
    return f"{_work(cause)} was interrupted by {interrupted_by(reason)}, and Holdfast {because}. {_HOW_TO_CONTINUE}"


def kept() -> str:
    return "Your message is saved; Holdfast will answer once it is working again."


def restarting() -> str:
    return "Holdfast is restarting."


def restarting_interrupts(window_s: float) -> str:
    """For chats whose turn may be interrupted; it promises only an attempt."""
    if window_s <= 0:
        return "Holdfast is restarting, which interrupts the work in progress here. It will try to resume it afterwards."
    return f"Holdfast is restarting. {_not_done_in(window_s)} is interrupted; Holdfast will try to resume it afterwards."


def stopping() -> str:
    return "Holdfast is shutting down."


def stopping_interrupts(window_s: float) -> str:
    if window_s <= 0:
        return "Holdfast is shutting down, which interrupts the work in progress here. What is done so far is kept."
    return f"Holdfast is shutting down. {_not_done_in(window_s)} is interrupted; what is done by then is kept."


def _not_done_in(window_s: float) -> str:
    return f"Work in progress here that is not done within {span(max(1000, round(1000 * window_s)))}"


def back() -> str:
    return "Holdfast is back."


def restart_failed(why: str) -> str:
    return f"Holdfast did not restart. {why}"


def stopped_instead() -> str:
    return "It was asked to stop instead."


def may_not_restart() -> str:
    return "You are not allowed to restart Holdfast from here. Ask the person who runs it."


def cannot_restart() -> str:
    return "Holdfast cannot restart itself here. Restart it where it was started."


def waits_for_approval() -> str:
    return "Your message is saved and waits: the assistant needs your approval first. Approve or deny it, and your message comes next."


def waits_for_operator() -> str:
    return "Your message is saved and waits: a limit was reached, and only an administrator can allow more. /stop ends the work instead."


def approve_how(question: str, question_id: str, pattern: str | None) -> str:
    """Where there are no buttons: the words that approve or deny a call."""
    always = f"\n/approve {question_id} always to allow {visible(pattern)} in this conversation" if pattern else ""
    return f"{question}\n\n/approve {question_id} to run it once{always}\n/deny {question_id} REASON to refuse"


def choose_how(choices: Sequence[str]) -> str:
    """Below a question that can be answered by a number; empty for one that cannot."""
    if not choices:
        return ""
    listed = "\n".join(f"{number}. {choice}" for number, choice in enumerate(choices, 1))
    return f"{listed}\n\nReply with a number, or in your own words."


def nothing_to_approve(named: str) -> str:
    return f"No approval that begins with {named!r} is open here." if named else "Nothing here waits for an approval."


def approve_which(open_ones: Sequence[str]) -> str:
    return f"{len(open_ones)} calls wait for an approval here: {', '.join(open_ones)}. Name one of them, or say all."


def approve_unclear(words: str) -> str:
    return f"Nothing was approved: {words!r} is not understood. Write /approve, /approve ID or /approve all, with or without `always`."


def judged(calls: int, *, approved: bool) -> str:
    which = "The call is" if calls == 1 else f"{calls} calls are"
    return f"{which} {'approved' if approved else 'denied'}."


def expired() -> str:
    return "Nobody answered in time; the question has expired."


def failed(error: str) -> str:
    return f"This did not work: {error}"


def resumed(session: Session, *, continues: bool, stopped: bool, waits: bool = False) -> str:
    """`waits`: the work of another conversation is resumed first."""
    title = f" “{session.title}”" if session.title else ""
    left = " What was running in the other conversation was stopped." if stopped else ""
    goes_on = f" The interrupted work {f'waits: {ONE_AT_A_TIME}' if waits else 'continues.'}" if continues else ""
    return f"Back in the conversation{title}.{goes_on}{left}"


def already_going_on(session: Session) -> str:
    waits = session.state == "waiting"
    return f"There is nothing to resume: this conversation {'is waiting for your answer' if waits else 'is already working'}."


def nothing_to_resume() -> str:
    return "There is nothing to resume: no work was interrupted here, and there is no earlier conversation."


def already_here() -> str:
    return "You are already in that conversation, and no work in it was interrupted. /sessions lists the others."


def no_such_conversation(name: str) -> str:
    return f"There is no conversation {name!r} here. /sessions lists them."


def send_what(command: str) -> str:
    return f"Say what to send: /{command} TEXT"


def rejected() -> str:
    return "This message was refused, because the conversation is busy. Send it again after the answer, or let it wait: /queue TEXT"


def not_given(names: Mapping[str, str], model: str) -> str:
    """Attachments that a model cannot read, by their names, each with the reason."""
    if len(names) == 1:
        [(name, why)] = names.items()
        told, them = f"{name} was not given to {model}: {why}. It knows", "name, type and size"
    else:
        listed = "\n".join(f"- {name}: {why}" for name, why in names.items())
        told, them = f"These attachments were not given to {model}:\n{listed}\nIt knows", "names, types and sizes"
    return f"{told} only the {them}. Choose another model with /model, or send what matters as text."


def lane_full(waiting: int) -> str:
    return (
        f"{waiting} messages are already waiting here, so this one was not accepted. Wait for an answer, or send /stop, then send it again."
    )


def attachment_missing() -> str:
    return "An attachment of this message could not be kept, so the message was not accepted. Send it again."


def unknown_command(name: str) -> str:
    return f"There is no command /{name}. /help lists the commands. To send it to the agent, begin with a space."


def too_large(name: str, size: int, most: int) -> str:
    """For a chat that cannot take a file of this size."""
    limit = megabytes(most)
    return f"{name} ({megabytes(size)}) is too large for this chat, which takes up to {limit}. It is in the conversation on the page."


def megabytes(size: int) -> str:
    return f"{size / 1_000_000:.1f} MB"


def not_fetched(name: str, why: str) -> str:
    """In the place of a file that somebody sent and that is not there."""
    return f"[The file {name} is missing: {why.rstrip('.')}.]"


def quoted(words: str) -> str:
    """What somebody quotes, before their own words."""
    return "> " + words[:MAX_QUOTED].replace("\n", "\n> ")


def not_allowed(platform: str, code: str | None, *, again: bool) -> str:
    """To a stranger. `again`: an earlier code may have reached them."""
    if code is None:
        return "You are not allowed to talk to this agent. Ask the person who runs it to let you in."
    replaces = " It replaces the earlier one." if again else ""
    return (
        f"You are not allowed to talk to this agent yet. Your pairing code is {code}, valid for an hour.{replaces} "
        f"Give it to the person who runs the agent; they let you in with `holdfast pair approve {code}`"
    )


def sealed() -> str:
    """In a chat that is encrypted, once."""
    return (
        "This chat is encrypted, and I cannot read encrypted messages. Make a chat without encryption and invite me there: "
        "encryption is chosen when a chat is made, and cannot be turned off later."
    )


def sealed_words() -> str:
    """In the place of words that cannot be read."""
    return "[An encrypted message]"


def no_agent() -> str:
    return "No agent is set up here yet. The person who runs Holdfast can choose a model with `holdfast setup`."


def not_yours() -> str:
    return "Only the person who asked for this work, or an admin, can answer that."


def button_gone() -> str:
    return "This button no longer does anything."


def answered_by(name: str, which: str) -> str:
    by = f" by {name}" if name else ""
    match which:
        case "approve":
            return f"Approved{by}."
        case "always":
            return f"Approved{by} for this conversation."
        case "deny":
            return f"Denied{by}."
        case _:
            return f"Answered{by}."


def working(ms: int) -> str:
    """While the agent has nothing to show."""
    return f"Still working ({span(ms)})…" if ms >= 1000 else "Working…"


def using(calls: Sequence[str]) -> str:
    """Which tools run."""
    return f"Working: {', '.join(calls[:3])}{f' and {len(calls) - 3} more' if len(calls) > 3 else ''}…"


def thread_gone() -> str:
    """Before a text that is sent to the chat, because its thread or topic is gone."""
    return "(The topic of this conversation is gone.) "


def nothing_said() -> str:
    return "(nothing was said)"


def help_text() -> str:
    return "\n".join(f"{usage.form} - {usage.sentence}" for usage in COMMANDS.values())


def sessions(listed: Sequence[tuple[int, Session]]) -> str:
    """The conversations of a chat, newest first, by the numbers they keep."""
    lines = []
    for number, session in listed:
        marks = [mark for mark, holds in (("this one", session.current), ("suspended", session.suspended)) if holds]
        lines.append(f"{number}. {session.title or 'untitled'}" + (f" ({', '.join(marks)})" if marks else ""))
    return "\n".join(lines) + "\n\n/resume NUMBER goes back to one of them."


def status(session: Session, *, safe_mode: bool, waits: bool = False) -> str:
    """`waits`: interrupted work waits until that of another conversation is resumed."""
    lines = [f"This conversation is {session.state}" + (" and suspended." if session.suspended else ".")]
    if session.queued:
        lines.append(f"{session.queued} {'message is' if session.queued == 1 else 'messages are'} waiting.")
    if session.resume_pending and session.resume_reason:
        lines.append(f"Its last work was interrupted by {interrupted_by(session.resume_reason)}.")
    if is_suspect(session.interrupted_restarts) and not session.suspended:
        lines.append(
            f"{session.interrupted_restarts} restarts in a row interrupted it. Holdfast continues such conversations one at a time, "
            "so its work may wait for some minutes."
        )
    elif waits and session.turn_state is TurnState.INTERRUPTED and not session.left:
        lines.append(f"Its work waits: {ONE_AT_A_TIME}")
    if session.rule and session.why:
        lines.append(f"Last decision: {decision(session.rule, session.why)}.")
    if safe_mode:
        lines.append("Holdfast is in safe mode after several crashes: it continues nothing by itself. Messages are answered as usual.")
    return "\n".join(lines)


def compacted(*, summarised: bool, problem: str | None, trimmed: int) -> str:
    """Why the agent may not remember everything."""
    if problem is not None:
        return f"The conversation has become too long for the model. It no longer sees the earlier messages: {problem}"
    if summarised:
        return "The conversation has become too long for the model. It sees a summary of the earlier messages from here on."
    results = "a long result" if trimmed == 1 else f"{trimmed} long results"
    return f"This turn has become too long for the model. It sees only the beginning and the end of {results}."


def decision(rule: str, why: str) -> str:
    """A recorded decision, for people."""
    return f"rule {rule}, {why}"
