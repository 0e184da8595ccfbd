"""Drafts, what was seen, what a list shows, and what a search finds. Reads a bounded number of rows each."""

from collections.abc import Sequence
from itertools import islice

from holdfast.core import content
from holdfast.core import events as e
from holdfast.core.delivery import DROPPED
from holdfast.core.errors import NotFound
from holdfast.core.sessions import Session, excerpt
from holdfast.ports.desk import Draft, Glance, Hit
from holdfast.store import queries as q
from holdfast.store import reads
from holdfast.store.log import Finding, number, read
from holdfast.store.tx import Tx

# So many records behind the end of a turn are looked through for what became of sending its answer.
BEHIND = 2000
# Of the search index, before a query gives up looking for further sessions.
MOST_FOUND = 20_000


def glances(tx: Tx, session_ids: Sequence[str]) -> dict[str, Glance]:
    unsure = {session for (session,) in tx.query(q.UNSURE)}
    found = {}
    for session_id in session_ids:
        try:
            session = number(tx, session_id)
        except NotFound:
            continue
        excerpt, spoken = _last_said(tx, session)
        seen = tx.query(q.SEEN, session)
        needs = tx.query(q.FIRST_OPEN, session)
        found[session_id] = Glance(
            excerpt=excerpt,
            unread=spoken > (seen[0][0] if seen else 0),
            needs=needs[0][0] if needs else None,
            delivery="unknown" if session in unsure else "dead" if tx.query(q.LOST, session, DROPPED, session) else None,
        )
    return found


def _last_said(tx: Tx, session: int) -> tuple[str | None, int]:
    """The words, and where something was last said to the user; 0 if nothing was."""
    words, spoken = None, 0
    for item in read(tx, tx.query(q.LAST_SAID, session), {session: ""}, []):
        event = item.event
        if not isinstance(event, (e.MessageWritten, e.MessageAccepted, e.QuestionAsked)):
            continue
        if words is None:
            words = excerpt(content.text(event.content)) or None
        if not spoken and not isinstance(event, e.MessageAccepted) and getattr(event, "role", "assistant") != "user":
            spoken = item.seq
    return words, spoken


def draft(tx: Tx, session_id: str) -> Draft:
    rows = tx.query(q.DRAFT, number(tx, reads.living(tx, session_id).session_id))
    return Draft(*rows[0]) if rows else Draft()


def keep_draft(tx: Tx, session_id: str, text: str, rev: int) -> Draft | None:
    before = draft(tx, session_id)
    if before.rev != rev:
        return before if before.text == text else None
    tx.execute(q.DRAFT_PUT, number(tx, session_id), tx.secrets.text(text))
    return draft(tx, session_id)


def see(tx: Tx, session_id: str, seq: int) -> None:
    session = reads.living(tx, session_id)
    tx.execute(q.SEE, number(tx, session_id), min(max(seq, 0), session.seq))


def found(tx: Tx, query: str, sessions: int, each: int) -> list[Hit]:
    """Grouped before it is limited: one session with many finds does not hide the others."""
    hits: list[Hit] = []
    for session, ids in _groups(tx, query, sessions, each).items():
        row = reads.numbered(tx, reads.name(tx, session))[1]
        if not row.deleted:
            hits += [hit for event_id in ids if (hit := _hit(tx, row, session, event_id)) is not None]
    return hits


def found_in(tx: Tx, session_id: str, query: str, limit: int) -> list[Hit]:
    row = reads.living(tx, session_id)
    session = number(tx, session_id)
    hits: dict[str, Hit] = {}
    for event_id, _ in islice(tx.finds(query, session), MOST_FOUND):
        hit = _hit(tx, row, session, event_id)
        if hit is not None and hit.message_id is not None:
            hits.setdefault(hit.message_id, hit)
        if len(hits) == limit:
            break
    return [*hits.values()]


def _groups(tx: Tx, query: str, sessions: int, each: int) -> dict[int, list[int]]:
    """By session, the one with the newest find first: its newest finds."""
    groups: dict[int, list[int]] = {}
    wanted = sessions * each
    for event_id, session in islice(tx.finds(query), MOST_FOUND):
        if session not in groups and len(groups) == sessions:
            break
        group = groups.setdefault(session, [])
        if len(group) < each:
            group.append(event_id)
            wanted -= 1
        if not wanted:
            break
    return groups


def _hit(tx: Tx, row: Session, session: int, event_id: int) -> Hit | None:
    for item in read(tx, tx.query(q.EVENT_BY_ID, event_id), {session: row.session_id}, []):
        match event := item.event:
            case e.MessageAccepted() | e.MessageWritten() | e.MessageEdited():
                return Hit(session=row, message_id=event.message_id, at=item.at, text=content.outline(event.content))
            case e.QuestionAnswered():
                return Hit(session=row, message_id=event.message_id, at=item.at, text=content.text(event.content))
            case e.SessionCreated() | e.SessionChanged():
                return Hit(session=row, message_id=None, at=item.at, text=row.title or "")
    return None


def turn_records(tx: Tx, session_id: str, turn_id: str, limit: int) -> tuple[e.Page, list[Finding]]:
    session = number(tx, reads.living(tx, session_id).session_id)
    findings: list[Finding] = []
    rows = tx.query(q.RECORDS_OF_TURN, session, turn_id, limit)
    page = e.Page(item for item in read(tx, rows, {session: session_id}, findings) if item.session_id)
    if not page:
        raise NotFound("turn", turn_id)
    sent = {item.event.delivery_id for item in page if isinstance(item.event, e.MessageWritten)} - {None}
    if sent:
        rows = tx.query(q.SENDINGS_AFTER, session, page[0].seq, page[-1].seq + BEHIND, limit)
        changed = read(tx, rows, {session: session_id}, findings)
        page += (item for item in changed if isinstance(item.event, e.DeliveryChanged) and item.event.delivery_id in sent)
        page.sort(key=lambda item: item.seq)
    return page, findings
