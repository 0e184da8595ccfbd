"""An answer as output items, as the Responses API has it: what each piece adds, as events, and the response as it stands."""

from collections.abc import Iterable, Iterator
from typing import Any

from holdfast.api import openai as shapes
from holdfast.api.openai import ApprovalItem, CallItem, Item, MessageItem, OutputText, ReasoningItem, ResponseObject, SummaryText
from holdfast.core import approvals
from holdfast.core.answering import Answering, Status
from holdfast.core.effects import ToolOutcome
from holdfast.core.pieces import Asks, Attaches, Begins, Calls, Drops, Notes, Piece, Returns, Says, Settles, Thinks
from holdfast.core.recitals import Recited
from holdfast.core.texts import Growing
from holdfast.core.usage import Spent
from holdfast.web.openai import naming, wording

# An event of the log may lead to several events here: their numbers are this many times its sequence, and count on.
ROOM = 1000
DELTAS = ("response.output_text.delta", "response.reasoning_summary_text.delta")
LONGEST_METADATA = 512
_FAILED_CODE = "server_error"

Event = dict[str, Any]


class Output:
    """The output of one response. `answering` has taken each event of the log before its pieces come here."""

    def __init__(self, recited: Recited, answering: Answering) -> None:
        self._recited, self._answering = recited, answering
        self._items: list[Item] = []
        self._places: dict[str, int] = {}
        self._texts: dict[str, Growing] = {}
        self._dropped: set[int] = set()
        self._thinking: str | None = None
        self._spaced = True  # What was said last ends with a gap.

    # events

    def created(self) -> Event:
        return {"type": "response.created", "response": self.view()}

    def events(self, piece: Piece) -> Iterator[Event]:
        if not isinstance(piece, Thinks):
            yield from self._end_thought()
        match piece:
            case Begins():
                yield {"type": "response.in_progress", "response": self.view()}
            case Says():
                yield from self._say(f"msg_{piece.item}", piece.text)
            case Drops():
                self._dropped.add(self._places[f"msg_{piece.item}"])
                yield from self._settle(f"msg_{piece.item}", self._texts[f"msg_{piece.item}"].read(), "incomplete", None)
            case Settles():
                whole = self._answering.status in (Status.COMPLETED, Status.IN_PROGRESS)
                phase = "commentary" if piece.interim else "final_answer"
                yield from self._settle(f"msg_{piece.item}", piece.text, "completed" if whole else "incomplete", phase)
            case Thinks():
                yield from self._think(piece)
            case Calls():
                yield from self._call(piece)
            case Returns():
                yield from self._return(piece)
            case Asks():
                yield from self._ask(piece)
            case Notes():
                yield from self._tell(f"msg_{piece.item}", piece.text if self._answering.over else f"{piece.text}\n\n")
            case Attaches():
                yield from self._tell(f"msg_{piece.item}", wording.attached(piece.parts))

    def rest(self) -> Iterator[Event]:
        """It is over, or nobody continues it for now."""
        yield from self._end_thought()
        for place, item in enumerate(self._items):
            if isinstance(item, CallItem) and item.status == "in_progress":
                item.status = "incomplete"
                yield {"type": "response.output_item.done", "output_index": place, "item": item}
        view = self.view()
        last = view.status if view.status in (Status.COMPLETED, Status.FAILED) else Status.INCOMPLETE
        yield {"type": f"response.{last}", "response": view}

    # the response

    def take(self, pieces: list[Piece]) -> None:
        for piece in pieces:
            for _ in self.events(piece):
                pass

    def body(self) -> ResponseObject:
        return self.view()

    def view(self) -> ResponseObject:
        answering, recited = self._answering, self._recited
        turn, status = answering.turn, answering.status
        metadata = {"session_id": recited.session_id, "message_id": recited.message_id}
        if turn is not None:
            metadata |= {"turn_id": turn.turn_id, "attempt": str(turn.attempt)}
        if waits := " ".join(asked.question_id for asked in answering.questions):
            metadata["waiting_for"] = waits[:LONGEST_METADATA]
        if status is Status.INCOMPLETE and answering.why:
            metadata["why"] = answering.why[:LONGEST_METADATA]
        reason = _incomplete(answering)
        return ResponseObject(
            id=naming.response_id(recited),
            created_at=answering.created_at // 1000,
            status="incomplete" if reason else status,
            model=naming.model(answering),
            output=[self._shown(place, item) for place, item in enumerate(self._items) if place not in self._dropped],
            conversation=shapes.ConversationName(recited.session_id),
            metadata=metadata,
            completed_at=answering.ended_at // 1000 if status is Status.COMPLETED else None,
            error=shapes.ResponseFailure(_FAILED_CODE, answering.why or "The agent failed.") if status is Status.FAILED else None,
            incomplete_details=shapes.Incomplete(reason) if reason else None,
            usage=usage(answering.spent) if answering.over else None,
        )

    def _shown(self, place: int, item: Item) -> Item:
        """With the text that it has so far."""
        if isinstance(item, MessageItem) and item.status == "in_progress":
            text = OutputText(self._texts[item.id].read())
            return MessageItem(id=item.id, status=item.status, content=[text])
        return item

    # items

    def _add(self, id_: str, item: Item) -> Event:
        self._places[id_] = len(self._items)
        self._items.append(item)
        return {"type": "response.output_item.added", "output_index": self._places[id_], "item": item}

    def _say(self, id_: str, text: str) -> Iterator[Event]:
        if id_ not in self._places:
            self._texts[id_] = Growing()
            yield self._add(id_, MessageItem(id=id_, status="in_progress"))
            yield {"type": "response.content_part.added", **self._in(id_), "part": OutputText("")}
        self._texts[id_].add(text)
        self._spaced = False
        yield {"type": "response.output_text.delta", **self._in(id_), "delta": text, "logprobs": []}

    def _settle(self, id_: str, text: str, status: str, phase: str | None) -> Iterator[Event]:
        part, place = OutputText(text), self._places[id_]
        self._items[place] = item = MessageItem(id=id_, status=status, content=[part], phase=phase)
        yield {"type": "response.output_text.done", **self._in(id_), "text": text, "logprobs": []}
        yield {"type": "response.content_part.done", **self._in(id_), "part": part}
        yield {"type": "response.output_item.done", "output_index": place, "item": item}

    def _in(self, id_: str) -> Event:
        return {"item_id": id_, "output_index": self._places[id_], "content_index": 0}

    def _tell(self, id_: str, text: str) -> Iterator[Event]:
        """Words of the gateway, an item of their own. Clients join the texts of all items, so they keep a distance."""
        if id_ in self._places:
            return
        if not self._spaced:
            text = f"\n\n{text}"
        yield from self._say(id_, text)
        self._spaced = text.endswith("\n\n")
        yield from self._settle(id_, text, "completed", "final_answer")

    def _think(self, piece: Thinks) -> Iterator[Event]:
        if self._thinking is None:
            self._thinking = f"rs_{piece.item}.{len(self._items)}"
            self._texts[self._thinking] = Growing()
            yield self._add(self._thinking, ReasoningItem(id=self._thinking))
            yield {"type": "response.reasoning_summary_part.added", **self._of_thought(), "part": SummaryText("")}
        self._texts[self._thinking].add(piece.text)
        yield {"type": "response.reasoning_summary_text.delta", **self._of_thought(), "delta": piece.text}

    def _end_thought(self) -> Iterator[Event]:
        if (id_ := self._thinking) is None:
            return
        text, where = self._texts.pop(id_).read(), self._of_thought()
        self._thinking, place = None, self._places[id_]
        self._items[place] = item = ReasoningItem(id=id_, summary=[SummaryText(text)], status="completed")
        yield {"type": "response.reasoning_summary_text.done", **where, "text": text}
        yield {"type": "response.reasoning_summary_part.done", **where, "part": SummaryText(text)}
        yield {"type": "response.output_item.done", "output_index": place, "item": item}

    def _of_thought(self) -> Event:
        id_ = self._thinking or ""
        return {"item_id": id_, "output_index": self._places[id_], "summary_index": 0}

    def _call(self, piece: Calls) -> Iterator[Event]:
        id_, given = f"mcp_{piece.call_id}", wording.arguments(piece.arguments)
        yield self._add(id_, CallItem(id=id_, name=piece.name, arguments=given, approval_request_id=piece.approval))
        where = {"item_id": id_, "output_index": self._places[id_]}
        yield {"type": "response.mcp_call.in_progress", **where}
        yield {"type": "response.mcp_call_arguments.done", **where, "arguments": given}

    def _return(self, piece: Returns) -> Iterator[Event]:
        id_ = f"mcp_{piece.call_id}"
        place = self._places.get(id_)
        item = self._items[place] if place is not None else None
        if not isinstance(item, CallItem):  # It was called before this response began.
            return
        if piece.outcome is ToolOutcome.DONE:
            item.status, item.output = "completed", piece.result
        else:
            item.status = "failed" if piece.outcome is ToolOutcome.FAILED else "incomplete"
            item.error = shapes.ExecutionError(piece.result)
        if item.status != "incomplete":
            yield {"type": f"response.mcp_call.{item.status}", "item_id": id_, "output_index": place}
        yield {"type": "response.output_item.done", "output_index": place, "item": item}

    def _ask(self, piece: Asks) -> Iterator[Event]:
        """An approval is an item of its own kind, and words besides, for clients that show nothing else."""
        if piece.form == approvals.FORM and piece.question_id not in self._places:
            item = ApprovalItem(id=piece.question_id, name=piece.name, arguments=wording.arguments(piece.arguments))
            yield self._add(piece.question_id, item)
            yield {"type": "response.output_item.done", "output_index": self._places[piece.question_id], "item": item}
        yield from self._tell(f"msg_{piece.question_id}", wording.question(piece))


def numbered(seq: int, events: Iterable[Event], first: int = 0) -> Iterator[Event]:
    """What one event of the log led to."""
    for number, event in enumerate(events, first):
        yield event | {"sequence_number": ROOM * seq + min(number, ROOM - 1)}


def usage(spent: Spent) -> shapes.ResponseUsage:
    return shapes.ResponseUsage(
        spent.input,
        spent.output,
        spent.tokens,
        shapes.CachedTokens(spent.cached, spent.stored),
        shapes.ThoughtTokens(spent.thought),
    )


def _incomplete(answering: Answering) -> str | None:
    """Why it is not whole, although its turn has ended."""
    if answering.status is Status.INCOMPLETE:
        return "interrupted"
    finish = answering.turn.finish if answering.turn and answering.status is Status.COMPLETED and not answering.waiting else "end"
    return {"length": "max_output_tokens", "filtered": "content_filter"}.get(finish)
