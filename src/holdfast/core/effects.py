"""What running a tool call twice would do, and so what to do with a call whose outcome is unknown (P5)."""

from enum import StrEnum

SHOWN_OUTPUT = 4000


class Effect(StrEnum):
    """Declared by every tool. REPORTED: a call that another program made and told us about; we never run, repeat or judge it."""

    PURE = "pure"
    IDEMPOTENT = "idempotent"
    UNSAFE = "unsafe"
    REPORTED = "reported"


class ToolOutcome(StrEnum):
    DONE = "done"
    FAILED = "failed"
    UNKNOWN = "unknown"


def may_repeat(effect: Effect) -> bool:
    """Whether a call that was started and never finished may simply be run again."""
    return effect in (Effect.PURE, Effect.IDEMPOTENT)


def unknown_result(name: str, output: str, *, stopped: bool) -> str:
    """The recorded result of a call that may or may not have done its work, with the end of its output. Both people and agents read it,
    so it says what happened and not what to do; advice for an agent belongs in its note.
    """
    cut = "The turn was stopped" if stopped else "The gateway was interrupted"
    told = f"{cut} while {name} was running. It is not known whether it finished, and it was not run again."
    last = output[-SHOWN_OUTPUT:].strip()
    return f"{told}\n\nIts output until then:\n{last}" if last else told
