"""Any log: the same conversation whether it grows or is loaded, whole or in pages, in time or late, and readable whatever is damaged."""

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.core import events as e
from holdfast.core.events import Logged
from holdfast.core.history import History, causes
from holdfast.core.messages import Message, Turn
from holdfast.core.transcript import Transcript
from tests.core.logs import STEPS, Log, Writer, fold, story


def comparable(message: Message) -> tuple[object, ...]:
    calls = [(call.call_id, call.step, call.outcome, call.content) for call in message.tool_calls]
    decided = (message.state, message.rule, message.decision, message.attempt)
    return (message.id, message.role, message.content, message.turn_id, message.status, decided, calls, message.parts, message.answer)


def said(transcript: Transcript) -> object:
    """Everything a conversation says, apart from where in the log it was found."""
    messages = []
    for message in transcript.messages:
        calls = [msgspec.structs.replace(call, seq=0) for call in message.tool_calls]
        messages.append((msgspec.structs.replace(message, seq=0, accepted=0, tool_calls=calls, made_of=None), message.answer))
    questions = [msgspec.structs.replace(question, call=None) for question in transcript.questions]
    return messages, transcript.turns, questions, list(transcript.queued)


def lasting(turn: Turn) -> Turn:
    """Without its last sign of life and its progress, which pieces give and which count only while it is open."""
    return msgspec.structs.replace(turn, signed_at=None, spoke=False)


@settings(max_examples=200, derandomize=True, database=None, deadline=None)
@given(steps=STEPS)
def test_a_conversation_whose_turns_are_over_is_the_same_without_its_pieces(steps: list[str]) -> None:
    """P7: what grew on one page is what loads on another, in the same order, part by part, also once the journal is pruned."""
    log = story([*steps, "end"])
    grown, loaded = fold(log), fold(log.records())
    assert [comparable(message) for message in loaded.messages] == [comparable(message) for message in grown.messages]
    assert list(map(lasting, loaded.turns)) == list(map(lasting, grown.turns))
    assert list(loaded.queued) == list(grown.queued)


@settings(max_examples=200, derandomize=True, database=None, deadline=None)
@given(steps=STEPS, more=STEPS)
def test_an_agent_is_given_the_same_of_a_conversation_that_is_read_from_where_its_summary_ends(steps: list[str], more: list[str]) -> None:
    """Behind a summary nothing is missing: what people said, what waits, what is asked, and everything about the turns that it leaves."""
    for number in range(len(begun(steps).found.turns) - 1):
        writer = begun(steps)
        earlier = writer.found.compacted
        compacted = e.ContextCompacted(through=max(number + 1, earlier.event.through if earlier else 0), summary="s")
        behind = writer.found.recall(compacted)
        writer.add(msgspec.structs.replace(compacted, recall=behind))
        for step in more:
            writer.step(step)
        whole, short = writer.found, Transcript(behind).extend(writer.log.items[behind:])
        kept = [turn for turn in whole.turns if turn.generation > compacted.through]
        assert behind > 0 and list(map(lasting, short.turns))[-len(kept) :] == list(map(lasting, kept))
        assert list(History(short)) == list(History(whole)) and causes(short) == causes(whole)
        assert (short.calls, short.approvals, short.begun, short.request) == (whole.calls, whole.approvals, whole.begun, whole.request)
        assert (short.answer_text, short.questions, short.queued) == (whole.answer_text, whole.questions, whole.queued)


def begun(steps: list[str]) -> Writer:
    """In the middle of a turn, behind these."""
    writer = Writer()
    for step in [*steps, "resume", "end", "say", "start"]:
        writer.step(step)
    return writer


@settings(max_examples=150, derandomize=True, database=None, deadline=None)
@given(steps=STEPS, data=st.data())
def test_a_conversation_that_was_read_in_the_middle_of_a_turn_continues_from_the_records(steps: list[str], data: st.DataObject) -> None:
    """P7: a process that keeps what it has read of a conversation, and then reads only what is new, knows what one knows that reads all."""
    log = story([*steps, "end"])
    read = data.draw(st.integers(0, len(log.items)))
    known = fold(log.items[:read])
    known.extend(item for item in log.records() if item.seq > known.seq)
    loaded = fold(log.records())
    assert [comparable(message) for message in known.messages] == [comparable(message) for message in loaded.messages]
    assert list(map(lasting, known.turns)) == list(map(lasting, loaded.turns))
    assert (list(known.queued), known.seq) == (list(loaded.queued), loaded.seq)
    assert list(History(known)) == list(History(loaded))


@settings(max_examples=120, derandomize=True, database=None, deadline=None)
@given(steps=STEPS)
def test_parts_keep_their_ids_while_an_answer_grows(steps: list[str]) -> None:
    """P7: an id stands for the same call or message for ever, and for the same place of the text; reading on the way changes nothing."""
    log, found, stands = story(steps), Transcript(), dict[str, object]()
    for item in log.items:
        found.apply(item)
        for message in found.messages:
            for part in message.answer:
                what = getattr(part, "call_id", None) or getattr(part, "message_id", None) or "text"
                assert stands.setdefault(part.id, what) == what
    whole = fold(log)
    assert said(found) == said(whole)


def delayed(log: Log, data: st.DataObject) -> list[Logged]:
    """The log where leases that are over reached it late: their last pieces stand behind what later leases, or later turns, wrote."""
    items = list(log.items)
    newest = max((item.epoch for item in items if item.epoch is not None), default=0)
    for epoch in range(1, newest):
        own = [item for item in items if item.epoch == epoch and item.event.stream]
        late = own[data.draw(st.integers(0, len(own))) :]
        items = [item for item in items if item not in late]
        place = max((place for place, item in enumerate(items) if item.epoch == epoch), default=0) + 1
        for item in late:
            place = data.draw(st.integers(place, len(items)))
            items.insert(place, item)
            place += 1
    return [msgspec.structs.replace(item, seq=seq) for seq, item in enumerate(items, 1)]


@settings(max_examples=400, derandomize=True, database=None, deadline=None)
@given(steps=STEPS, data=st.data())
def test_what_an_earlier_lease_wrote_and_what_reached_the_log_late_stands_where_it_belongs(steps: list[str], data: st.DataObject) -> None:
    """P2, P7: in its place in its own turn, as if it had come in time."""
    log = story(steps)
    assert said(fold(delayed(log, data))) == said(fold(log))


@settings(max_examples=120, derandomize=True, database=None, deadline=None)
@given(steps=STEPS, data=st.data())
def test_any_log_with_any_damage_folds(steps: list[str], data: st.DataObject) -> None:
    log = story(steps)
    lost = data.draw(st.sets(st.integers(1, max(1, len(log.items)))))
    found = fold(log.without(*lost))
    assert len([message for message in found.messages if message.role == "notice" and message.id.startswith("notice.")]) == len(
        lost & {item.seq for item in log.items}
    )
    ids = [message.id for message in found.messages]
    assert len(ids) == len(set(ids))
