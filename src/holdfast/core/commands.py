"""The commands that people can give the gateway in a conversation: one table, from which the help is printed."""

import re

import msgspec


class Usage(msgspec.Struct, frozen=True):
    form: str
    sentence: str


COMMANDS: dict[str, Usage] = {
    "stop": Usage("/stop", "Stop what is running. Waiting messages stay."),
    "new": Usage("/new", "Start a new conversation; this one is kept."),
    "resume": Usage("/resume [number or id]", "Go back to an earlier conversation, or continue interrupted work."),
    "sessions": Usage("/sessions", "List the conversations of this chat."),
    "status": Usage("/status", "Show what is happening here."),
    "model": Usage("/model [name or number]", "List the models, or choose the one that answers in this conversation."),
    "remind": Usage("/remind [WHEN TEXT]", "Start work from TEXT at a time, once or again and again; without words, list what is planned."),
    "queue": Usage("/queue TEXT", "Send TEXT as the next message, even while a question is open."),
    "steer": Usage("/steer TEXT", "Send TEXT to the answer that is being written."),
    "interrupt": Usage("/interrupt TEXT", "Stop what is running, and answer TEXT next."),
    "approve": Usage("/approve [id or all] [always]", "Let a call run that waits for your approval; `always` for this conversation."),
    "deny": Usage("/deny [id or all] [reason]", "Refuse a call that waits for your approval."),
    "restart": Usage("/restart", "Restart Holdfast (if allowed)."),
    "help": Usage("/help", "List these commands."),
}

# Those that send their TEXT to the agent.
SENDING = ("queue", "steer", "interrupt")

# A path such as /usr/bin/env is not a command. Some platforms add the bot's name: /stop@holdfast.
_COMMAND = re.compile(r"/([A-Za-z][A-Za-z0-9_-]*)(?:@\S+)?(?:\s+(.*))?", re.DOTALL)


class Command(msgspec.Struct, frozen=True):
    """`name` may be unknown."""

    name: str
    argument: str = ""

    @property
    def known(self) -> bool:
        return self.name in COMMANDS


def parse(text: str) -> Command | None:
    """The command in a message, or None if it is for the agent. A text that begins with a space is never a command."""
    match = _COMMAND.fullmatch(text.rstrip())
    return Command(match[1].lower(), (match[2] or "").strip()) if match else None
