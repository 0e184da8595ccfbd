"""An answer as one growing text, as chat completions have it, and next to it what the agent thinks and does."""

from typing import NamedTuple

from holdfast.core.answering import Answering, Status
from holdfast.core.pieces import Asks, Attaches, Calls, Drops, Notes, Piece, Remarks, Says, Thinks, Warns
from holdfast.web.openai import wording

GAP = "\n\n"


class Grown(NamedTuple):
    """What is new: of the answer, and of what stands next to it."""

    content: str = ""
    reasoning: str = ""


class Prose:
    """Give it the pieces in order; it says what to append."""

    def __init__(self) -> None:
        self.content: list[str] = []
        self.reasoning: list[str] = []
        self._item: str | None = None  # The text that grows at the end.
        self._dropped = False
        self._warned = False  # The last words say already what became of the turn.
        self._thought: str | None = None

    def take(self, piece: Piece) -> Grown:
        match piece:
            case Says():
                return self._say(piece)
            case Drops():
                self._dropped = True
            case Notes():
                return self._paragraph(piece.text)
            case Warns():
                self._warned = True
                return self._paragraph(piece.text)
            case Asks():
                return self._paragraph(wording.question(piece))
            case Attaches():
                return self._paragraph(wording.attached(piece.parts))
            case Thinks():
                gap = GAP if self.reasoning and piece.item != self._thought else ""
                self._thought = piece.item
                return self._grow(reasoning=gap + piece.text)
            case Calls():
                return self._aside(wording.call(piece.name, piece.arguments))
            case Remarks():
                return self._aside(piece.text)
        return Grown()

    def take_all(self, pieces: list[Piece]) -> None:
        for piece in pieces:
            self.take(piece)

    def rest(self, answering: Answering) -> Grown:
        """It is over, or nothing more comes until somebody acts."""
        told = [wording.question(asked) for asked in answering.questions] if answering.held else []
        how = None if self._warned else wording.ending(answering)
        return self._paragraph(GAP.join([*told, *([how] if how else [])]))

    def _say(self, piece: Says) -> Grown:
        self._warned = False
        if piece.item == self._item:
            return self._grow(content=piece.text)
        self._item = piece.item
        gaps = [GAP] if self.content else []
        if self._dropped:
            gaps.append(wording.STARTS_OVER + GAP)
            self._dropped = False
        return self._grow(content="".join(gaps) + piece.text)

    def _paragraph(self, text: str) -> Grown:
        if not text:
            return Grown()
        self._item = None
        return self._grow(content=(GAP if self.content else "") + text)

    def _aside(self, text: str) -> Grown:
        self._thought = None
        return self._grow(reasoning=(GAP if self.reasoning else "") + text)

    def _grow(self, *, content: str = "", reasoning: str = "") -> Grown:
        if content:
            self.content.append(content)
        if reasoning:
            self.reasoning.append(reasoning)
        return Grown(content, reasoning)


def finish_reason(answering: Answering) -> str:
    """Why there is no more, in the protocol's words."""
    finish = answering.turn.finish if answering.turn and answering.status is Status.COMPLETED and not answering.waiting else "end"
    return {"length": "length", "filtered": "content_filter"}.get(finish, "stop")
