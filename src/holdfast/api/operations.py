"""What an operator sees, as the API shows it."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from holdfast.api import chronicle
from holdfast.api.chronicle import End
from holdfast.api.times import rfc3339, rfc3339_or_none
from holdfast.core import keys
from holdfast.core.delivery import DROPPED
from holdfast.core.pairing import LIFE_MS, Pending
from holdfast.core.places import place
from holdfast.core.sessions import Session
from holdfast.ports.overview import Ask, Lane, Life, Mark, Owed, PastPause, Working
from holdfast.ports.pairings import Paired
from holdfast.ports.updates import DeadPlace

TEXT_CHARS = 300
# For so long it is told that a message to a chat was given up.
TOLD_MS = 7 * 24 * 3600 * 1000
BUCKETS = 96


class Phase(msgspec.Struct, kw_only=True):
    kind: str
    name: str | None
    since: str


class WorkingView(msgspec.Struct, kw_only=True):
    """A turn that runs. `phase`: what it does, `model` or `tool`. `last_sign_at`: its newest event. `retiring`: its process finishes its
    turns after another one took over.
    """

    turn_id: str
    session_id: str
    title: str | None
    platform: str
    attempt: int
    phase: Phase
    started_at: str
    last_sign_at: str
    pid: int | None
    retiring: bool


class WorkingList(msgspec.Struct):
    turns: list[WorkingView]


class AttentionItem(msgspec.Struct, kw_only=True):
    """`kind`: approval, question, elicitation, suspended, pending, delivery_unknown, delivery_dead or pairing. `actions`: what can be done
    about it.
    """

    kind: str
    id: str
    session_id: str | None
    title: str | None
    text: str
    since: str
    expires_at: str | None
    rule: str | None
    why: str | None
    actions: list[str]


class Attention(msgspec.Struct):
    items: list[AttentionItem]


class LaneView(msgspec.Struct, kw_only=True):
    """`behind`: what its messages wait for: `turn`, `question`, `pause` or `recovery`."""

    session_id: str
    session_key: str
    title: str | None
    waiting: int
    oldest_at: str
    behind: str


class InboxView(msgspec.Struct, kw_only=True):
    waiting: int
    oldest_at: str | None
    lanes: list[LaneView]


class OwedView(msgspec.Struct, kw_only=True):
    """`part`: which piece of a reply that takes several messages, from 0. `chat` and `thread`: where it goes, by the platform's names."""

    delivery_id: str
    part: int
    chat: str
    thread: str | None
    session_id: str
    title: str | None
    platform: str
    state: str
    tries: int
    at: str
    retry_at: str | None
    error: str | None


class DeadView(msgspec.Struct, kw_only=True):
    """A chat, or a thread of one, in which nothing arrives any more."""

    platform: str
    chat: str
    thread: str | None
    since: str
    why: str


class OutboxView(msgspec.Struct, kw_only=True):
    """`counts`: by platform and state. `dead`: places in which nothing arrives any more."""

    deliveries: list[OwedView]
    counts: dict[str, dict[str, int]]
    dead: list[DeadView]


class PlatformView(msgspec.Struct, kw_only=True):
    """An account on a chat platform. `state`: connecting, connected, away, refused (it does not accept the credentials), or off: it is not
    set up any more, and messages are still owed. `error`: what is wrong now; `last_error`: what was wrong last. `waiting`: updates that are
    stored and not yet part of a conversation; `refused`: those that this process could not read, and `last_refused`: why the newest of all
    that are kept could not be. `outbox`: how many messages, by their state.
    `taken_in`, `delivered`: how many messages people wrote there, and how many arrived, in the last day of the process that serves.
    """

    name: str
    account: str | None = None
    state: str = "off"
    since: str | None = None
    last_update_at: str | None = None
    retry_at: str | None = None
    error: str | None = None
    last_error: str | None = None
    last_error_at: str | None = None
    waiting: int = 0
    refused: int = 0
    last_refused: str | None = None
    last_refused_at: str | None = None
    taken_in: int = 0
    delivered: int = 0
    outbox: dict[str, int]
    dead: list[DeadView]


class PlatformsView(msgspec.Struct, kw_only=True):
    """`readers`: open tabs of the page. `taken_in`: how many messages people wrote there. `counted_since`: from when on this process
    counts, at most a day ago.
    """

    platforms: list[PlatformView]
    readers: int
    taken_in: int
    counted_since: str


class SeriesView(msgspec.Struct, kw_only=True):
    """`series`: by name, the highest number of each step of `step_s` seconds since `since`, null where nothing was measured."""

    since: str
    step_s: int
    series: dict[str, list[float | None]]


class PersonView(msgspec.Struct, kw_only=True):
    """`user`: the id on the platform. `name`: what they call themselves there; anybody can take any name."""

    platform: str
    user: str
    name: str
    at: str


class PeopleView(msgspec.Struct, kw_only=True):
    """`paired`: whom an operator let in. `asking`: strangers with a pairing code that is still valid."""

    paired: list[PersonView]
    asking: list[PersonView]


class LifeView(msgspec.Struct, kw_only=True):
    """A process that served. `until`: until when, null for the one that serves. `end`: `hand_over` to the next one, `stop` (on purpose),
    `crash`, or null while it serves. `ended_at`: when the process itself ended, later than `until` where it finished its turns after a
    hand-over; null while it is not known. `interrupted`: how many turns its end interrupted; `resumed`: how many of them continued, the
    last `took_ms` later.
    """

    pid: int
    version: str | None
    started_at: str
    until: str | None
    ended_at: str | None
    end: str | None
    interrupted: int
    resumed: int
    took_ms: int | None


class TurnCounts(msgspec.Struct, kw_only=True):
    """How turns ended, by time: one number for each `bucket_s` seconds since `since`. `interrupted` counts interruptions."""

    since: str
    bucket_s: int
    completed: list[int]
    failed: list[int]
    other: list[int]
    interrupted: list[int]


class PauseView(msgspec.Struct, kw_only=True):
    """`holder`: who paused the gateway. `ended_at`: null while it `holds`, and where the end was not recorded. `until`: when it ends, or
    would have ended, by itself.
    """

    holder: str
    since: str
    until: str
    ended_at: str | None
    holds: bool


class Timeline(msgspec.Struct, kw_only=True):
    """`pauses`: those that held in these hours, the newest last. `partial`: there was more than is counted here."""

    lives: list[LifeView]
    pauses: list[PauseView]
    turns: TurnCounts
    partial: bool


class Line(msgspec.Struct, kw_only=True):
    """A decision or an end, newest first. `what`: interrupted, resumed, left or ended."""

    at: str
    what: str
    session_id: str
    title: str | None
    turn_id: str | None
    attempt: int
    outcome: str | None
    rule: str | None
    why: str | None


class LogView(msgspec.Struct):
    lines: list[Line]


def platform_of(session: Session) -> str:
    return keys.parse(session.session_key).platform


def working(found: Iterable[Working], pids: Mapping[int, int], serving: int) -> WorkingList:
    return WorkingList(
        [
            WorkingView(
                turn_id=each.session.turn_id or "",
                session_id=each.session.session_id,
                title=each.session.title,
                platform=platform_of(each.session),
                attempt=each.session.attempt,
                phase=Phase(kind=each.phase, name=each.name, since=rfc3339(each.since)),
                started_at=rfc3339(each.started_at),
                last_sign_at=rfc3339(each.signed_at),
                pid=pids.get(each.session.owner or 0),
                retiring=pids.get(each.session.owner or 0, serving) != serving,
            )
            for each in found
        ]
    )


def attention(
    asks: Iterable[Ask],
    suspended: Iterable[Session],
    pending: Iterable[Session],
    owed_to_chats: Sequence[Owed],
    strangers: Iterable[Pending] = (),
    *,
    now: int = 0,
) -> Attention:
    items = [_asked(ask) for ask in asks]
    items += [_held(session, "suspended") for session in suspended]
    items += [_held(session, "pending") for session in pending if session.left and not session.suspended and session.state != "waiting"]
    items += [_undelivered(owed, "delivery_unknown") for owed in owed_to_chats if owed.state in ("unknown", "repeating")]
    items += [_undelivered(owed, "delivery_dead") for owed in owed_to_chats if _is_lost(owed, now)]
    items += [_asking(who) for who in strangers if who.alive(now)]
    return Attention(sorted(items, key=lambda item: item.since))


def _asked(ask: Ask) -> AttentionItem:
    return AttentionItem(
        kind=ask.form,
        id=ask.question_id,
        session_id=ask.session.session_id,
        title=ask.session.title,
        text=ask.text[:TEXT_CHARS],
        since=rfc3339(ask.asked_at),
        expires_at=rfc3339(ask.expires_at),
        rule=None,
        why=None,
        actions=["open"],
    )


def _held(session: Session, kind: str) -> AttentionItem:
    since = session.last_resume_marked_at or session.updated_at
    return AttentionItem(
        kind=kind,
        id=session.session_id,
        session_id=session.session_id,
        title=session.title,
        text="",
        since=rfc3339(since),
        expires_at=None,
        rule=session.rule,
        why=session.why,
        actions=["open", "resume"],
    )


def _is_lost(owed: Owed, now: int) -> bool:
    """Given up lately, and no person has decided so."""
    return owed.state == "dead" and owed.error != DROPPED and owed.at > now - TOLD_MS


def _undelivered(owed: Owed, kind: str) -> AttentionItem:
    return AttentionItem(
        kind=kind,
        id=owed.delivery_id,
        session_id=owed.session.session_id,
        title=owed.session.title,
        text=owed.error or "",
        since=rfc3339(owed.at),
        expires_at=None,
        rule=None,
        why=None,
        actions=["open", "retry", "sent", "drop"],
    )


def _asking(who: Pending) -> AttentionItem:
    return AttentionItem(
        kind="pairing",
        id=f"{who.platform}/{who.user}",
        session_id=None,
        title=None,
        text=who.name[:TEXT_CHARS],
        since=rfc3339(who.made_at),
        expires_at=rfc3339(who.made_at + LIFE_MS),
        rule=None,
        why=None,
        actions=["approve", "deny"],
    )


def inbox(lanes: Sequence[Lane], *, paused: bool) -> InboxView:
    return InboxView(
        waiting=sum(lane.waiting for lane in lanes),
        oldest_at=rfc3339(min(lane.oldest_at for lane in lanes)) if lanes else None,
        lanes=[
            LaneView(
                session_id=lane.session.session_id,
                session_key=lane.session.session_key,
                title=lane.session.title,
                waiting=lane.waiting,
                oldest_at=rfc3339(lane.oldest_at),
                behind=_behind(lane.session, paused=paused),
            )
            for lane in lanes
        ],
    )


def _behind(session: Session, *, paused: bool) -> str:
    match session.state:
        case "waiting":
            return "question"
        case "interrupted":
            return "recovery"
        case "running":
            return "turn"
        case _:
            return "pause" if paused else "turn"


def person(who: Paired | Pending) -> PersonView:
    at = who.at if isinstance(who, Paired) else who.made_at
    return PersonView(platform=who.platform, user=who.user, name=who.name, at=rfc3339(at))


def people(paired: Sequence[Paired], pending: Sequence[Pending], *, now: int) -> PeopleView:
    return PeopleView(paired=[person(who) for who in paired], asking=[person(who) for who in pending if who.alive(now)])


def outbox(owed: Sequence[Owed], dead: Sequence[DeadPlace]) -> OutboxView:
    counts: dict[str, dict[str, int]] = {}
    for each in owed:
        states = counts.setdefault(platform_of(each.session), {})
        states[each.state] = states.get(each.state, 0) + 1
    return OutboxView(
        deliveries=[
            OwedView(
                delivery_id=each.delivery_id,
                part=each.part,
                chat=place(each.session.session_key).chat,
                thread=place(each.session.session_key).thread,
                session_id=each.session.session_id,
                title=each.session.title,
                platform=platform_of(each.session),
                state=each.state,
                tries=each.tries,
                at=rfc3339(each.at),
                retry_at=rfc3339_or_none(each.retry_at or None),
                error=each.error,
            )
            for each in owed
        ],
        counts=counts,
        dead=[dead_place(gone) for gone in dead],
    )


def dead_place(gone: DeadPlace) -> DeadView:
    return DeadView(platform=gone.spot.platform, chat=gone.spot.chat, thread=gone.spot.thread, since=rfc3339(gone.since), why=gone.why)


def timeline(lives: Sequence[Life], pauses: Sequence[PastPause], marks: Sequence[Mark], *, since: int, now: int, partial: bool) -> Timeline:
    bucket = max(1, (now - since) // BUCKETS)
    counts = {name: [0] * BUCKETS for name in ("completed", "failed", "other", "interrupted")}
    for mark in marks:
        place = min(BUCKETS - 1, max(0, (mark.at - since) // bucket))
        if mark.kind == "turn.interrupted":
            counts["interrupted"][place] += 1
        elif mark.kind == "turn.ended":
            outcome = str(mark.fields.get("outcome"))
            counts[outcome if outcome in ("completed", "failed") else "other"][place] += 1
    turns = TurnCounts(since=rfc3339(since), bucket_s=bucket // 1000, **counts)
    served = [_life(each) for each in chronicle.ends(lives, marks)]
    return Timeline(lives=served, pauses=[_pause(each) for each in pauses], turns=turns, partial=partial)


def _pause(each: PastPause) -> PauseView:
    return PauseView(
        holder=each.holder,
        since=rfc3339(each.since),
        until=rfc3339(each.until),
        ended_at=rfc3339_or_none(each.ended_at),
        holds=each.holds,
    )


def _life(each: End) -> LifeView:
    life = each.life
    return LifeView(
        pid=life.pid,
        version=life.version,
        started_at=rfc3339(life.started_at),
        until=rfc3339_or_none(each.until),
        ended_at=rfc3339_or_none(life.ended_at),
        end=each.how,
        interrupted=each.interrupted,
        resumed=each.resumed,
        took_ms=each.took_ms,
    )


def log(marks: Iterable[Mark], titles: Mapping[str, str | None]) -> LogView:
    return LogView(
        [
            Line(
                at=rfc3339(mark.at),
                what=mark.kind.removeprefix("turn."),
                session_id=mark.session_id,
                title=titles.get(mark.session_id),
                turn_id=mark.turn_id,
                attempt=mark.attempt,
                outcome=_text(mark, "outcome") or _text(mark, "reason"),
                rule=_text(mark, "rule"),
                why=_text(mark, "why") or _text(mark, "error"),
            )
            for mark in marks
        ]
    )


def _text(mark: Mark, name: str) -> str | None:
    value = mark.fields.get(name)
    return str(value) if value is not None else None
