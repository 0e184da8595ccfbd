"""What chats are owed, by the log: what was written there is kept once, and what is owed stands there once."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import NamedTuple

from holdfast.core import events as e
from holdfast.core import keys
from holdfast.core.chat_errors import PlaceGone
from holdfast.core.delivery import ASK_MS, MAX_TRIES, REPEAT_LABEL, DeliveryState
from holdfast.core.delivery import key as key_of_delivery
from holdfast.core.plans import deliver
from holdfast.core.turns import Outcome
from holdfast.store.sqlite.connection import fetch
from tests.fakes.platform import rendered
from tests.sim.evidence import Evidence, TurnRecord

LATE = re.compile(r"^\(delayed by [^)]*\) ")
# Where nobody can be reached, or may be told.
UNTOLD = ("R8",)


def check_updates(found: Evidence, kept: Sequence[e.MessageAccepted | e.MessageWritten]) -> None:
    """P1, P6: each is confirmed; of those, the messages to us are accepted once, and nothing else is. What nobody can read is kept as it
    came.
    """
    server = found.world.server
    by_key = Counter(message.dedup_key for message in kept)
    for update in server.updates:
        assert update.dedup_key in server.confirmed or update.ours, f"P1: {update.dedup_key} was never confirmed"
        times = by_key[f"update|{update.dedup_key}"]
        assert times == update.meant, f"P1: {update} was accepted {times} times"
    from_chats = sum(count for key, count in by_key.items() if (key or "").startswith("update|"))
    assert from_chats == sum(update.meant for update in server.updates), "P6: a message nobody wrote was accepted"
    refused = {bytes(body) for (body,) in fetch(found.db, "SELECT body FROM arrived WHERE refused IS NOT NULL")}
    assert refused == set(server.garbage), f"P1: of {server.garbage} these were kept as refused: {refused}"


def a_question_is_answered_only_once_it_was_asked(found: Evidence) -> None:
    """A27: a message of a chat is an answer only if the question had been delivered there when the message was accepted."""
    for session in found.sessions.values():
        if not session.chats:
            continue
        accepted = {event.message_id: item.seq for item, event in session.log.of(e.MessageAccepted)}
        arrived: dict[str, int] = {}
        for item, changed in session.log.of(e.DeliveryChanged):
            if changed.state == DeliveryState.SENT:
                arrived.setdefault(changed.delivery_id, item.seq)
        for _, answered in session.log.of(e.QuestionAnswered):
            if answered.message_id is None:
                continue  # At its own address: the person who did it had read it.
            told = min((seq for name, seq in arrived.items() if name.startswith(f"{answered.question_id}.asked")), default=None)
            assert told is not None and told < accepted[answered.message_id], f"A27: {answered} answers what had not been asked"


def p4_a_finished_answer_is_delivered(found: Evidence) -> None:
    """P4, B11: what is owed to a chat stands there, whole, once; or once more for each send of unknown outcome, and then labelled. Nothing
    else stands there, and nothing is left of what was shown while it was being written.
    """
    server, owed, history = found.world.server, owed_pieces(found), histories(found)
    opened = {key_of_delivery(event.delivery_id): event for _, event in found.log.of(e.DeliveryOpened)}
    into = {target: piece for piece in owed.values() if (target := piece.target) is not None}
    closed = {request.place.chat for request in server.requests if isinstance(request.refused, PlaceGone)}
    too_late = _planned_too_late_to_ask(found)
    for sent in server.sent:
        assert sent.key in owed or sent.key in opened, f"P6: nobody asked for {sent}"
    for name, piece in owed.items():
        states = history[piece.delivery_id, piece.part]
        copies = [sent.text for sent in server.shown if sent.key == name or into.get(sent.name) is piece]
        doubtful = states.count(DeliveryState.SENDING) + states.count(DeliveryState.REPEATING)
        if states[-1:] == [DeliveryState.DEAD] and (doubtful >= MAX_TRIES or piece.chat in closed):
            continue  # Given up, visibly.
        assert states and states[-1] == DeliveryState.SENT, f"P4: {piece} came to rest as {states}"
        assert copies, f"P4: {piece} is recorded as sent and is not there: {states}"
        assert all(bare(copy).strip() == piece.text.strip() for copy in copies), f"P4: {piece} arrived as {copies}"
        plain = [copy for copy in copies if not copy.startswith(REPEAT_LABEL)]
        assert len(plain) <= 1, f"P4: {piece} arrived {len(plain)} times without a label: {states}"
        unknown = states.count(DeliveryState.UNKNOWN)
        asked = server.reconciles and piece.delivery_id not in too_late
        if asked or not (unknown or piece.repeat):
            assert len(copies) == 1 and plain, f"P4: {piece} arrived as {copies}: {states}"
        assert len(copies) <= 1 + unknown, f"P4: {piece} arrived {len(copies)} times: {states}"
    _check_order_of_chats(found, owed)
    _check_nothing_is_left(found, opened, into, closed)
    _check_chats_are_told(found)


def _planned_too_late_to_ask(found: Evidence) -> set[str]:
    """Answers of turns that were held for longer than a platform is asked whether the message arrived that showed their beginning."""
    since = {
        event.delivery_id: item.id for item, event in reversed(found.log.of(e.DeliveryChanged)) if event.state == DeliveryState.UNKNOWN
    }
    when = found.world.when
    return {
        planned.delivery_id
        for item, planned in found.log.of(e.DeliveryPlanned)
        if any(name in since and 1000 * (when(item.id) - when(since[name])) > ASK_MS for name in planned.lost)
    }


class Piece(NamedTuple):
    """A message of ours, as the log says it must stand in its chat. `target`: the message that it was put into."""

    delivery_id: str
    part: int
    text: str
    session_key: str
    place: int
    target: str | None = None
    repeat: bool = False

    @property
    def chat(self) -> str:
        return keys.parse(self.session_key).chat_id


def owed_pieces(found: Evidence) -> dict[str, Piece]:
    """By the key under which it is sent, in the order in which it was written."""
    planned = {event.delivery_id: event for _, event in found.log.of(e.DeliveryPlanned)}
    anew = {(event.delivery_id, event.part) for _, event in found.log.of(e.DeliveryChanged) if event.anew}
    owed: dict[str, Piece] = {}
    for session in found.sessions.values():
        for item, event in session.log.of(e.MessageWritten):
            name = event.delivery_id
            if name is None:
                continue
            pieces = planned[name].pieces if name in planned else (e.Piece(),)
            for part, piece in enumerate(pieces):
                text = rendered(deliver.words(event.content, piece))
                target = None if (name, part) in anew else piece.target
                owed[key_of_delivery(name, part)] = Piece(name, part, text, session.session_key, item.id, target, piece.repeat)
    return dict(sorted(owed.items(), key=lambda each: (each[1].place, each[1].part)))


def histories(found: Evidence) -> dict[tuple[str, int], list[str]]:
    states: dict[tuple[str, int], list[str]] = defaultdict(list)
    for _, changed in found.log.of(e.DeliveryChanged):
        states[changed.delivery_id, changed.part].append(changed.state)
    return states


def bare(text: str) -> str:
    """Without what says that it may be a repeat, or comes late."""
    return LATE.sub("", text.removeprefix(REPEAT_LABEL))


def _check_order_of_chats(found: Evidence, owed: dict[str, Piece]) -> None:
    """In the order of the log, over all conversations of a person in a chat. Where an answer was put into a message that stood there
    already, it stands there; in a group others may have been answered below it by then. What was sent as it is, is in order in any chat.
    """
    into = {piece.target: name for name, piece in owed.items() if piece.target is not None}
    arrived = [(sent, into.get(sent.name, sent.key)) for sent in found.world.server.shown]
    lanes: dict[str, dict[str, None]] = defaultdict(dict)
    for sent, name in arrived:
        if name in owed:
            lanes[owed[name].session_key][name] = None
            if owed[name].target is None:
                lanes[f"the whole of {sent.session_key}"][name] = None
    for chat, names in lanes.items():
        assert list(names) == [name for name in owed if name in names], f"P4: {chat} was answered out of order: {list(names)}"


def _check_nothing_is_left(found: Evidence, opened: dict[str, e.DeliveryOpened], into: dict[str, Piece], closed: set[str]) -> None:
    """E1: what showed an answer while it was being written has become the answer, or is gone; unless its turn still waits for somebody, or
    nobody knew that it had arrived, or its chat was closed to us.
    """
    states = {delivery_id: history[-1] for (delivery_id, _), history in histories(found).items()}
    unfinished = {turn.id for turn in found.turns if turn.end is None}
    for sent in found.world.server.shown:
        live = opened.get(sent.key)
        if live is None or sent.name in into or live.turn_id in unfinished or sent.place.chat in closed:
            continue
        lost = live.delivery_id not in states or states[live.delivery_id] == DeliveryState.DEAD
        lost = lost or any(live.delivery_id in event.lost for _, event in found.log.of(e.DeliveryPlanned))
        assert lost and not found.world.server.reconciles, f"E1: {sent} is left of {live.turn_id}: {states.get(live.delivery_id)}"
    for sent in found.world.server.shown:
        live = opened.get(sent.key)
        if live is not None and live.turn_id in unfinished and states.get(live.delivery_id) == DeliveryState.LIVE:
            assert "orking" not in sent.text, f"E1: {sent} says that work goes on, and its turn waits"


def _check_chats_are_told(found: Evidence) -> None:
    for turn in found.turns:
        if not turn.session.chats:
            continue
        owed = [event for _, event in turn.log.of(e.MessageWritten) if event.delivery_id is not None]
        if turn.answer is not None and (turn.end is None or turn.end.rule not in UNTOLD):
            assert turn.answer in owed, f"P4: the answer of {turn.id} is owed to nobody"
        for _, question in turn.log.of(e.QuestionAsked):
            assert any(question.text in event.text for event in owed), f"P4: the chat was never asked {question.text!r}"
        had_written = (
            turn.end is not None and turn.end.outcome is Outcome.SET_ASIDE and turn.end.still_pending and _written_before_it_was_left(turn)
        )
        if (
            turn.end is not None
            and turn.end.outcome in (Outcome.FAILED, Outcome.SET_ASIDE)
            and turn.end.rule not in UNTOLD
            and not had_written
        ):
            told = any(event.role == "notice" for event in owed)
            assert told, f"P3: the chat was not told that {turn.id} ended as {turn.end.outcome}"


def _written_before_it_was_left(turn: TurnRecord) -> bool:
    """A person who has already written again needs no word on how to go on."""
    left = turn.log.of(e.TurnLeft)[-1][0].seq
    waited = {event.message_id for item, event in turn.session.log.of(e.MessageAccepted) if item.seq < left}
    following = turn.session.turns[turn.session.turns.index(turn) + 1]
    return set(following.started.causes) <= waited


CHAT_PROMISES: tuple[Callable[[Evidence], None], ...] = (
    p4_a_finished_answer_is_delivered,
    a_question_is_answered_only_once_it_was_asked,
)
