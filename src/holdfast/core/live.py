"""What a chat is shown of an answer while it is being written: the words so far, and what the agent is doing."""

from collections.abc import Iterable, Sequence

import msgspec

from holdfast.core import markdown, notices, splitting
from holdfast.core.capabilities import Capabilities
from holdfast.core.delivery import DeliveryState
from holdfast.core.events import DeliveryChanged, Event
from holdfast.core.messages import ToolCall
from holdfast.core.plans import ask
from holdfast.core.plans.deliver import room
from holdfast.core.rich import Mark, Rich, Span
from holdfast.core.splitting import Size

# A turn that ends sooner than this shows its answer at once.
OPEN_AFTER_S = 1.0
MOST_SHOWN = 60
# What the id of a message that shows an answer begins with, after its turn's.
LIVE = "live"


class Manners(msgspec.Struct, frozen=True, kw_only=True):
    """How much chats are shown. `stream`: the answer while it is being written. `tools`: what the agent is doing. `still_working_s`: after
    so long without a word, that it is still working; 0 for never.
    """

    stream: bool = True
    tools: bool = True
    still_working_s: float = 60.0


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """A turn that runs: what it has said, the calls that are open, and for how long it has been running."""

    text: str
    calls: Sequence[ToolCall]
    ran_s: float


def opens(seen: Seen, manners: Manners) -> bool:
    """Whether there is something to show by now."""
    if manners.still_working_s and seen.ran_s >= manners.still_working_s:
        return True
    if not manners.stream or seen.ran_s < OPEN_AFTER_S:
        return False
    return bool(seen.text.strip()) or (manners.tools and any(not ask.asks(call.name) for call in seen.calls))


def ended(turn_id: str, events: Iterable[Event]) -> bool:
    """Whether these records tell that a message which showed the answer of this turn could not be edited. The turn opens no other then:
    that one could not be edited either.
    """
    ours = f"{turn_id}.{LIVE}"
    changes = (event for event in events if isinstance(event, DeliveryChanged) and event.delivery_id.startswith(ours))
    return any(change.state == DeliveryState.SENT and change.error is not None for change in changes)


def parts(seen: Seen, manners: Manners, can: Capabilities, size: Size) -> list[Rich]:
    """The messages that show it, the last with what the agent is doing now. Never empty ones."""
    shown = splitting.split(markdown.read(seen.text), room(can), size) if manners.stream and seen.text.strip() else []
    status = doing(seen, manners)
    if not status and shown:
        return shown
    line = Rich(status or notices.working(0), (Span(Mark.ITALIC, 0, len(status or notices.working(0))),))
    if shown:
        last = shown[-1]
        both = Rich(f"{last.text}\n\n{line.text}", (*last.spans, *line.after(f"{last.text}\n\n").spans))
        return [*shown[:-1], both] if size(both) <= can.text_limit else shown
    return [line]


def doing(seen: Seen, manners: Manners) -> str:
    """One line; empty if there is nothing to add to the words."""
    open_calls = [call for call in seen.calls if call.outcome is None and not ask.asks(call.name)] if manners.tools else []
    if open_calls:
        return notices.using([_named(call) for call in open_calls])
    if manners.still_working_s and seen.ran_s >= manners.still_working_s:
        return notices.working(int(1000 * seen.ran_s))
    return "" if seen.text.strip() else notices.working(0)


def _named(call: ToolCall) -> str:
    telling = next((str(call.arguments[name]) for name in ("command", "path", "url", "query") if name in call.arguments), "")
    line = " ".join(telling.split())
    return f"{call.name}: {line[:MOST_SHOWN]}{'…' if len(line) > MOST_SHOWN else ''}" if line else call.name
