"""What the people of the chats see, and what their platform saw, compared with what was said: by what stands at the far side of the wire,
not by what the gateway planned or recorded about its own sends."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from itertools import groupby
from typing import NamedTuple

from holdfast.core import content, keys, notices
from holdfast.core import events as e
from holdfast.core.chat_errors import Limited, PlaceGone
from holdfast.core.delivery import key as key_of_delivery
from holdfast.core.errors import Refused, Unavailable
from tests import words
from tests.fakes.platform import Sent
from tests.sim.evidence import Evidence
from tests.sim.wire import FarSide, Request

REPEATED, LATE = "(may be a repeat) ", re.compile(r"^\(delayed by [^)]*\) ")
# What only says how a text is to look, and what stands between the parts of one that is sent in several.
LOOKS = re.compile(r"[\s*_`~>•#\\-]+")
# Requests that change something, and count.
COUNTED = ("send", "edit", "remove")
EVER, SOON_S = float("inf"), 0.001
# Between the decision to send something and the wire stands its record.
ON_ITS_WAY_S = 1.0
# Nothing is sent in smaller parts than this, as long as there is more.
FEWEST_IN_A_PART = 500
# How a notice begins that the gateway ends.
ENDS = (words.RESTARTING.rstrip("."), words.STOPPING.rstrip("."))


def squeezed(text: str) -> str:
    """The words of it, without the labels at its beginning."""
    return LOOKS.sub("", LATE.sub("", text.removeprefix(REPEATED)))


class _Lane(NamedTuple):
    """A conversation of a chat, with those before it: what was said there, and what stands there."""

    said: list[str]
    shown: list[Sent]


def _lanes(found: Evidence) -> dict[str, _Lane]:
    """In the order of the log, and in the order of the chat."""
    lanes: dict[str, _Lane] = defaultdict(lambda: _Lane([], []))
    lane_of = dict[str, str]()
    key_of = {session.session_id: session.session_key for session in found.sessions.values()}
    for item, event in found.log:
        if isinstance(event, e.MessageWritten) and event.delivery_id is not None:
            text = content.text(event.content)
            lanes[key_of[item.session_id]].said.append(text if squeezed(text) else notices.nothing_said())
            for part in range(2 + len(text) // FEWEST_IN_A_PART):
                lane_of[key_of_delivery(event.delivery_id, part)] = key_of[item.session_id]
        elif isinstance(event, e.DeliveryOpened):
            lane_of[key_of_delivery(event.delivery_id)] = key_of[item.session_id]
    for sent in found.world.server.shown:
        assert sent.key in lane_of, f"P6: nobody asked for {sent}"
        lanes[lane_of[sent.key]].shown.append(sent)
    return lanes


def people_read_what_was_said(found: Evidence) -> None:
    """P1, P4, B11, E1: in each conversation stands all that was said to it, word by word and in order, and nothing else: nothing twice that
    does not say so, no half of an answer, no cursor. What could not be known to have arrived may stand there once more, and so may the
    words so far of a turn that waits.
    """
    server, doubted, closed = found.world.server, _doubted(found), _closed(found.world.server)
    live = {key_of_delivery(event.delivery_id): event.turn_id for _, event in found.log.of(e.DeliveryOpened)}
    waits = {turn.id for turn in found.turns if turn.end is None}
    for lane, (said, shown) in _lanes(found).items():
        _check_repeats(shown, doubted)
        if keys.parse(lane).chat_id in closed:
            continue
        first = list({sent.key: sent for sent in reversed(shown)}.values())[::-1]
        optional = {place for place, sent in enumerate(first) if live.get(sent.key) in waits}
        if not server.reconciles:
            optional |= {place for place, sent in enumerate(first) if sent.key in live and doubted[sent.key]}
        words_said, words_shown = [squeezed(text) for text in said], [squeezed(sent.text) for sent in first]
        assert _fits(words_said, words_shown, optional), f"P4: {lane} was told {said} and shows {first}"


def _fits(said: list[str], shown: list[str], optional: set[int], place: int = 0) -> bool:
    """Whether what stands there from a place on, one after the other, is what was said, apart from what may stand there besides."""
    if not said:
        return all(number in optional for number in range(place, len(shown)))
    if place < len(shown) and shown[place] and said[0].startswith(shown[place]):
        left = said[0][len(shown[place]) :]
        if _fits([left, *said[1:]] if left else said[1:], shown, optional, place + 1):
            return True
    return place < len(shown) and place in optional and _fits(said, shown, optional, place + 1)


def _check_repeats(shown: list[Sent], doubted: Counter[str]) -> None:
    """Once more for each send whose outcome was not known, and then it says so."""
    for key, copies in groupby(sorted(shown, key=lambda sent: (sent.key, sent.number)), key=lambda sent: sent.key):
        texts = [sent.text for sent in copies]
        plain = [text for text in texts if not text.startswith(REPEATED)]
        assert len(plain) <= 1, f"P4: {plain} stand there and do not say that they may be repeats"
        assert len(texts) <= 1 + doubted[key], f"P4: {texts} stand there, and {doubted[key]} sends were in doubt"


def _doubted(found: Evidence) -> Counter[str]:
    """How often it could not be known whether what was sent under a key had arrived: no answer came, or the process that got it died
    before anything else went to that chat, so that it may have had no time to keep it.
    """
    orderly = {span.name for span in found.world.spans if span.orderly}
    last = {(request.process, request.place.spot): request for request in found.world.server.requests if request.what == "send"}
    doubted: Counter[str] = Counter()
    for request in found.world.server.requests:
        if request.what != "send" or _refused(request):
            continue
        died = request.process not in orderly and last[request.process, request.place.spot] is request
        doubted[request.key] += died or not request.answered
    return doubted


def _refused(request: Request) -> bool:
    """It surely did not arrive."""
    return isinstance(request.refused, Unavailable | Refused)


def _closed(server: FarSide) -> set[str]:
    return {request.place.chat for request in server.requests if isinstance(request.refused, PlaceGone)}


def a_chat_that_is_open_again_is_answered(found: Evidence) -> None:
    """P4: what is said after somebody has written there again arrives, however often nothing arrived before."""
    server = found.world.server
    reopened = {chat: end for chat, (_, end) in server.troubles.gone.items()}
    dead = {event.delivery_id for _, event in found.log.of(e.DeliveryChanged) if event.state == "dead"}
    for session in found.sessions.values():
        since = reopened.get(keys.parse(session.session_key).chat_id, EVER)
        heard = [found.world.when(item.id) for item, _ in session.log.of(e.MessageAccepted)]
        back = min((at for at in heard if at >= since), default=EVER)
        for item, event in session.log.of(e.MessageWritten):
            if event.delivery_id in dead and found.world.when(item.id) > back:
                raise AssertionError(f"P4: {event} was given up, though {session.session_key} was open again")


def the_budget_is_kept(found: Evidence) -> None:
    """P8: no process sends more to a chat, or in all, than the platform says that it takes, and nothing while it was asked to wait."""
    server = found.world.server
    rates = server.capabilities.rates
    for process, made in _by(server.requests, lambda request: request.process):
        counted = [request for request in made if request.what in COUNTED]
        _check_rate(counted, rates.account_per_s, rates.account_burst, f"{process} to the account")
        for chat, there in _by(counted, lambda request: request.place.chat):
            _check_rate(there, 1.0 / rates.every_s[there[0].place.shared], rates.burst, f"{process} to {chat}")
        for limited in counted:
            error, told_at = limited.refused, limited.answered_at
            if isinstance(error, Limited):
                meant = [request for request in counted if error.account or request.place.chat == limited.place.chat]
                early = [request.at for request in meant if told_at + ON_ITS_WAY_S < request.at < told_at + error.retry_after_s - SOON_S]
                assert not early, f"P8: {process} was told at {told_at} to wait for {error.retry_after_s} s, and asked again at {early}"


def _check_rate(made: list[Request], per_s: float, burst: float, who: str) -> None:
    left, at = burst, made[0].at if made else 0.0
    for request in made:
        left, at = min(burst, left + per_s * (request.at - at)) - 1.0, request.at
        assert left >= -SOON_S - per_s * ON_ITS_WAY_S, (
            f"P8: {who}: {request.what} at {request.at} is more than {burst} at once and {per_s} a second"
        )


def _by(requests: list[Request], what: Callable[[Request], str]) -> Iterator[tuple[str, list[Request]]]:
    for name, group in groupby(sorted(requests, key=what), key=what):
        yield name, list(group)


def an_end_is_announced_once(found: Evidence) -> None:
    """C10, C12: in a chat whose turn will be interrupted, once for each process that ends; and nowhere else."""
    for session in found.sessions.values():
        told: Counter[str] = Counter()
        asked = 0
        for item, event in session.log.of(e.MessageWritten):
            asked += event.role == "user" and event.text.startswith("/restart")
            if event.role == "notice" and event.text.startswith(ENDS):
                told[found.span(item.id).name] += 1
        for process, times in told.items():
            assert times <= 1 + asked, f"C10: {session.session_key} heard {times} times of the end of {process}"


def who_asked_for_a_restart_is_told_once(found: Evidence) -> None:
    """C11-C13: the command is answered once, as a reply to it, and once more when Holdfast is back or why it is not; whatever is delivered
    again restarts nothing. Nobody else hears of it in a chat where nothing ran.
    """
    restarts = found.world.restarts
    if restarts is None:
        return
    assert all(times == 1 for times in Counter(restarts.begun).values()), f"C11: {restarts.begun} were restarts"
    anchors = {f"update|{update.dedup_key}": update.anchor for update in found.world.server.updates}
    for session in found.sessions.values():
        log = [(item, event) for item, event in session.log.of(e.MessageWritten)]
        for place, (_, event) in enumerate(log):
            if event.role != "user" or event.text != "/restart" or not session.chats:
                continue
            reply = log[place + 1][1]
            outcomes = [told for _, told in log if told.message_id == f"outcome.{event.message_id}"]
            began = event.message_id in restarts.begun
            assert len(outcomes) <= 1, f"C11: {event} came to {outcomes}"
            if began:
                assert reply.text in (words.RESTARTING, words.RESTARTING_INTERRUPTS), f"C11: {event} was answered with {reply}"
            for told in (reply, *outcomes):
                assert told.anchor == anchors[event.dedup_key or ""], f"C11: {told} is no reply to {event}"
    assert not restarts.note(), f"C13: {restarts.note()} still waits"


def nobody_speaks_where_nobody_spoke(found: Evidence) -> None:
    """E5, P6: our first word in a chat comes after somebody has written to us there."""
    written: dict[str, None] = {}
    for update in found.world.server.updates:
        if update.meant:
            written[update.dedup_key.split("|")[2]] = None
    for sent in found.world.server.sent:
        assert sent.place.chat in written, f"P6: nobody has spoken where {sent} stands"


FAR_SIDE_PROMISES: tuple[Callable[[Evidence], None], ...] = (
    people_read_what_was_said,
    a_chat_that_is_open_again_is_answered,
    the_budget_is_kept,
    an_end_is_announced_once,
    who_asked_for_a_restart_is_told_once,
    nobody_speaks_where_nobody_spoke,
)
