"""Whatever people say, wherever they say it: a message goes to the inbox, a command to the gateway is carried out and answered. Both are
on disk when `take` returns (P1)."""

import msgspec

from holdfast import time_zones
from holdfast.core import busy, commands, content, keys, model_choice, notices, processes, reminders, resets
from holdfast.core.approvals import APPROVE, DENY, ONCE, SESSION
from holdfast.core.busy import Mode
from holdfast.core.commands import Command
from holdfast.core.content import BytesPart
from holdfast.core.errors import BadInput, CannotEdit, Deleted, NotFound, Taken
from holdfast.core.events import MessageAccepted
from holdfast.core.model_choice import UnknownModel
from holdfast.core.plans.accept import Accepted
from holdfast.core.plans.answer import Answer
from holdfast.core.plans.command import ALL, Action, Aside, Choose, Forget, Judge, Remind, Reset, Resume, Say, Stop
from holdfast.core.plans.edit import Edit, Edited
from holdfast.core.recitals import Recital
from holdfast.core.restarts import By, Chat
from holdfast.core.sessions import Session
from holdfast.gateway.admission import Admissions
from holdfast.gateway.announcements import Announcements
from holdfast.gateway.host import Host
from holdfast.gateway.lanes import Lanes
from holdfast.gateway.safe_mode import SafeMode
from holdfast.gateway.schedules import Wishes
from holdfast.gateway.settings import Settings
from holdfast.gateway.stage import Stage
from holdfast.gateway.tally import Tally
from holdfast.ports.inbox import Terms
from holdfast.ports.store import Store

LISTED = 20
SEARCHED = 1000
# How the id of a question begins.
QUESTION = "q_"
ALWAYS = "always"
MAX_TEXT = 6 * 1024 * 1024


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """`on_page`: written where everything that is stored can be read, also if it is for a chat. `mode`: None for that of its chat.
    `recital`: what its client recited with it. `sender_name`: what its sender is called.
    """

    text: str
    attached: tuple[BytesPart, ...] = ()
    sender: str
    dedup_key: str | None
    anchor: str | None = None
    on_page: bool = False
    mode: Mode | None = None
    reply_to: str | None = None
    recital: Recital | None = None
    sender_name: str = ""


class Acceptance:
    def __init__(
        self,
        *,
        store: Store,
        host: Host,
        lanes: Lanes,
        stage: Stage,
        safe_mode: SafeMode,
        admissions: Admissions,
        announcements: Announcements,
        wishes: Wishes,
        settings: Settings,
        tally: Tally,
    ) -> None:
        self._store, self._clock, self._ids, self._lanes = store, host.clock, host.ids, lanes
        self._stage, self._safe_mode, self._admissions, self._announcements = stage, safe_mode, admissions, announcements
        self._wishes, self._tally = wishes, tally
        self._policies, self._busy_modes = settings.resets, settings.busy
        self._max_waiting, self._models = settings.max_waiting, settings.models

    async def take(self, session: Session, said: Said) -> Accepted:
        """Raises `LaneFull` for a message too many, `DuplicateOtherContent` for a key that was used for other words."""
        command = commands.parse(said.text)
        sends = command is not None and command.name in commands.SENDING
        if command is not None and not sends and said.attached:
            raise BadInput(f"/{command.name} is a command to the gateway and takes no attachments. Send them with a message.")
        if command is not None and command.name == "restart":
            return await self._restart(session, said)
        if command is not None and not (sends and command.argument):
            return await self.answer(session, said, await self._action(session, command, said))
        if command is not None:
            said = msgspec.structs.replace(said, text=command.argument, mode=Mode(command.name))
        # A message that says what else it is for is no answer to a question.
        answers = command is None and said.mode in (None, Mode.QUEUE)
        accepted = await self._accept(session, said, answers=answers)
        self._lanes.look(accepted.session_id)
        if not accepted.duplicate and not accepted.refused:  # A message that is delivered again may have been answered long ago.
            await self.tell_that_it_waits(accepted.session_id, said.anchor)
        return accepted

    async def tell_that_it_waits(self, session_id: str, anchor: str | None = None) -> None:
        """While nothing is answered, senders are told once that their message is saved (C22)."""
        since = self._stage.held_since
        if since is not None:
            await self._store.tell_once(session_id, notice_id=f"held.{since}", content=notices.kept(), anchor=anchor, at=self._clock.now())

    async def answer(self, session: Session, said: Said, action: Action, *, message_id: str | None = None) -> Accepted:
        """Words that start no turn, with what they lead to and what is said to them."""
        message_id = message_id or self._ids.new("m")
        aside = Aside(
            message_id=message_id,
            content=said.text,
            sender=said.sender,
            dedup_key=said.dedup_key,
            anchor=said.anchor,
            recital=said.recital,
        )
        accepted = await self._store.command(session.session_id, aside, action, at=self._clock.now())
        self._count(session, accepted)
        self._lanes.look(session.session_id)
        self._lanes.look(accepted.session_id)
        return accepted

    async def edit(self, session_id: str, message_id: str, text: str, *, by: str, dedup_key: str | None) -> Edited:
        """Changes the words of a message; what is attached to it stays. Raises `CannotEdit`."""
        while True:
            session = await self._store.session(session_id)
            if session.deleted:
                raise Deleted(session_id, undoable=True)
            transcript = await self._store.transcript(session)
            message = transcript.find(message_id)
            if message is None:
                raise NotFound("message", message_id)
            if message.role != "user" or message.status == "command":
                raise CannotEdit(message_id, "only what a person wrote to the agent can be")
            if text or not content.attached(message.content):
                check_text(text)
            edit = Edit(
                message_id=message_id,
                text=text,
                by=by,
                seq=message.seq,
                turn_id=message.turn_id,
                waits=message_id in transcript.queued,
                dedup_key=dedup_key,
            )
            try:
                edited = await self._store.edit(session_id, edit, at=self._clock.now())
            except Taken:
                continue
            self._lanes.look(session_id)
            return edited

    async def _restart(self, session: Session, said: Said) -> Accepted:
        """Noted before it is on record, begun after: killed in between, the next process has to tell the one who asked that it is back,
        or is asked again. The same words again, also after the restart, are the same request: it restarts once.
        """
        refusal = self._announcements.refusal(session.session_key, said.sender)
        if refusal is not None:
            return await self.answer(session, said, Say(refusal))
        session = await self._store.current_session(session.session_key) or session
        chat = Chat(session_key=session.session_key, session_id=session.session_id, anchor=said.anchor)
        request = self._announcements.request(By.CHAT, chat=chat, id=self._ids.new("m"))
        accepted = await self.answer(session, said, Say(self._announcements.reply(chat)), message_id=request.id)
        if accepted.duplicate:
            self._announcements.withdraw(request)
        else:
            self._announcements.begin(request)
        return accepted

    async def _accept(self, session: Session, said: Said, *, answers: bool) -> Accepted:
        now, key = self._clock.now(), keys.parse(session.session_key)
        policy = resets.policy_for(self._policies, key.platform, key.chat_type)
        message = MessageAccepted(
            message_id=self._ids.new("m"),
            content=content.of([*content.parts(said.text), *said.attached]),
            sender=said.sender,
            dedup_key=said.dedup_key,
            anchor=said.anchor,
            mode=said.mode or busy.mode_for(self._busy_modes, session.session_key),
            recital=said.recital,
            sender_name=said.sender_name,
        )
        terms = Terms(
            fresh=self.fresh(),
            max_waiting=self._max_waiting,
            answers=answers,
            on_page=said.on_page,
            reply_to=said.reply_to,
            operator=self._operates(session, said),
            resets=resets.boundaries(policy, now=now, offset_s=self._clock.offset_s(now)),
        )
        accepted = await self._store.accept(session.session_id, message, terms, at=now)
        self._count(session, accepted)
        return accepted

    def _count(self, session: Session, accepted: Accepted) -> None:
        if not accepted.duplicate and not accepted.refused:
            self._tally.accepted(keys.parse(session.session_key).platform)

    def _operates(self, session: Session, said: Said) -> bool:
        """People on the page may do everything, in the conversation of a chat, too."""
        return said.on_page or self._announcements.operates(session.session_key, said.sender)

    def fresh(self) -> tuple[str, str]:
        """Names for a session that may have to be begun."""
        return self._ids.new("s"), self._ids.new("l")

    async def _action(self, session: Session, command: Command, said: Said) -> Action:
        sender = said.sender
        match command.name:
            case "stop":
                return Stop(sender, saw=session.turn_id if session.current and session.open_turn else None)
            case "approve" | "deny":
                return self._judge(command, sender, operator=self._operates(session, said))
            case "new":
                return Reset(self.fresh(), sender)
            case "resume":
                return await self._resume(session, command.argument, sender)
            case "sessions":
                listed = await self._store.conversations(session.session_key, limit=LISTED)
                return Say(notices.sessions(listed))
            case "status":
                return Say(await self._status(session))
            case "remind":
                return await self._remind(session, command.argument, sender, operator=self._operates(session, said))
            case "model":
                return self._model(session, command.argument)
            case name if name in commands.SENDING:
                return Say(notices.send_what(name))
            case "help":
                return Say(notices.help_text())
            case _:
                return Say(notices.unknown_command(command.name))

    async def _status(self, session: Session) -> str:
        told = notices.status(session, safe_mode=self._safe_mode.on, waits=self._admissions.queue)
        known = await self._store.processes(session.session_id) if session.processes else []
        runs = processes.running(known, now=self._clock.now())
        return f"{told}\n{runs}" if runs else told

    def _model(self, session: Session, wanted: str) -> Action:
        if not wanted:
            return Say(model_choice.listed(self._models, session.model))
        try:
            return Choose(model_choice.pick(wanted, self._models))
        except UnknownModel as error:
            return Say(str(error))

    async def _remind(self, session: Session, words: str, sender: str, *, operator: bool) -> Action:
        """`/remind [list]`, `/remind remove ID`, `/remind WHEN TEXT`."""
        first, _, rest = words.partition(" ")
        if words in ("", "list"):
            listed = await self._store.schedules(session.session_key)
            return Say(reminders.listed([(each, time_zones.zone_or_utc(each.timing.time_zone)) for each in listed]))
        if first in ("remove", "cancel", "delete"):
            return Forget(rest.strip(), sender, operator=operator)
        try:
            timing, text = self._wishes.read(words)
            added = self._wishes.made(text, timing, sender=sender)
        except BadInput as error:
            return Say(str(error))
        return Remind(added, self._wishes.policy.limit, reminders.made(added.schedule_id, timing, time_zones.zone(timing.time_zone)))

    def _judge(self, command: Command, sender: str, *, operator: bool) -> Action:
        """`/approve [id or all] [always]`, `/deny [id or all] [reason]`. An approval with other words approves nothing: it may mean another
        call, or none.
        """
        word, _, rest = command.argument.partition(" ")
        named = word == ALL or word.startswith(QUESTION)
        rest = rest.strip() if named else command.argument
        if command.name == "deny":
            said = Answer(by=sender, verdict=DENY, scope=ONCE, reason=rest, operator=operator)
        elif rest in ("", ALWAYS):
            said = Answer(by=sender, verdict=APPROVE, scope=SESSION if rest else ONCE, operator=operator)
        else:
            return Say(notices.approve_unclear(rest))
        return Judge(answer=said, which=word if named else "")

    async def _resume(self, session: Session, wanted: str, sender: str) -> Action:
        """By number or id. Without either it is decided in the transaction, where nothing can change in between."""
        if not wanted:
            return Resume(None, sender, waits=self._admissions.queue)
        for number, other in await self._store.conversations(session.session_key, limit=SEARCHED):
            if wanted in (str(number), other.session_id):
                return Resume(other.session_id, sender, waits=self._admissions.queue)
        return Say(notices.no_such_conversation(wanted))


def check_text(text: str, *, may_be_empty: bool = False) -> None:
    """Raises `BadInput`."""
    if not text.strip() and not may_be_empty:
        raise BadInput("The text is empty. Write something.")
    if len(text.encode("utf-8", "surrogatepass")) > MAX_TEXT:
        raise BadInput(f"The text is longer than {MAX_TEXT // 1024 // 1024} MiB. Send it in parts.")
