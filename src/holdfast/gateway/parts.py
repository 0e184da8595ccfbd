"""The parts of a gateway, each built whole from what it needs, in this order: what a part needs stands above it."""

import asyncio

from holdfast.gateway.acceptance import Acceptance
from holdfast.gateway.admission import Admissions
from holdfast.gateway.announcements import Announcements
from holdfast.gateway.attempts import Means
from holdfast.gateway.background import Background
from holdfast.gateway.branching import Branching
from holdfast.gateway.budget import Budget
from holdfast.gateway.clicks import Clicks
from holdfast.gateway.connections import Connections
from holdfast.gateway.delivery import Deliveries
from holdfast.gateway.edges import Edges
from holdfast.gateway.feed import Feed
from holdfast.gateway.fetching import Fetching
from holdfast.gateway.hand_over import HandOver
from holdfast.gateway.host import Host
from holdfast.gateway.housekeeping import Housekeeping
from holdfast.gateway.intake import Intake
from holdfast.gateway.journal import Journal
from holdfast.gateway.lanes import Lanes
from holdfast.gateway.lifecycle import Lifecycle, Works
from holdfast.gateway.links import Link
from holdfast.gateway.meaning import Meaning
from holdfast.gateway.neighbours import Neighbours
from holdfast.gateway.news import Newsroom
from holdfast.gateway.pausing import Pausing
from holdfast.gateway.people import People
from holdfast.gateway.permissions import Permissions
from holdfast.gateway.recollections import Recollections
from holdfast.gateway.recovery import Recovery
from holdfast.gateway.runner import Runner
from holdfast.gateway.safe_mode import SafeMode
from holdfast.gateway.schedules import Alarm, Wishes
from holdfast.gateway.settings import Settings
from holdfast.gateway.shipping import Shipping
from holdfast.gateway.soundness import Soundness
from holdfast.gateway.spooling import Spooling
from holdfast.gateway.stage import Stage
from holdfast.gateway.startup import Startup
from holdfast.gateway.stopping import Stopping
from holdfast.gateway.strangers import Strangers
from holdfast.gateway.streaming import Streams
from holdfast.gateway.sweep import Sweep
from holdfast.gateway.tally import Tally
from holdfast.gateway.teller import Teller
from holdfast.gateway.titles import Titles
from holdfast.ports.store import Store


class Parts:
    def __init__(self, store: Store, host: Host, edges: Edges, settings: Settings) -> None:
        self._store, self._host, self._edges, self._settings = store, host, edges, settings
        self.stage, self.safe_mode, self.tally = Stage(host.clock), SafeMode(), Tally(host.clock)
        self.feed = Feed(store, edges.encode)
        self.people = People(store, settings.policies)
        self.links = {name: Link(platform, self.people.policy(name), host.clock) for name, platform in edges.platforms.items()}
        self.neighbours = Neighbours(store=store, liveness=host.liveness, tools=edges.tools)
        self.admissions = Admissions(store=store, host=host, resumes_at_once=settings.resumes_at_once)
        self.teller = Teller(store=store, host=host, platforms=frozenset(edges.platforms), homes=settings.home_channels)
        self._build_journals()
        self._build_turns()
        self._build_sweep()
        self._build_people()
        self._build_chats()
        self._build_ends()
        self._build_life()

    def _build_journals(self) -> None:
        """What writes turns down, and what recovers them from what was written."""
        store, host, edges, settings = self._store, self._host, self._edges, self._settings
        due = asyncio.Event()
        self.spooling = Spooling(
            spool=edges.spool,
            store=store,
            host=host,
            due=due,
            turn_bytes=settings.spool_turn_bytes,
            all_bytes=settings.spool_all_bytes,
            limits=settings.late_journals,
        )
        self.shipping = Shipping(store=store, spool=edges.spool, host=host, limits=settings.late_journals, keep_s=settings.keep_streams_s)
        self.journal, self.newsroom = Journal(store, host, self.spooling, due), Newsroom(store, store)
        self.recovery = Recovery(
            store=store,
            host=host,
            platforms=frozenset(edges.platforms),
            people=self.people,
            settings=settings,
            safe_mode=self.safe_mode,
            teller=self.teller,
            tally=self.tally,
            shipping=self.shipping,
        )

    def _build_turns(self) -> None:
        """What runs turns."""
        store, host, edges, settings = self._store, self._host, self._edges, self._settings
        budget = Budget(settings.limits, store)
        self.titles = None
        if edges.titler is not None:
            self.titles = Titles(
                store=store,
                host=host,
                stage=self.stage,
                safe_mode=self.safe_mode,
                neighbours=self.neighbours,
                budget=budget,
                titler=edges.titler,
            )
        # What turns end with holds pieces, too; what is shown of a turn that is over does not.
        self.recollections, self.shown = (Recollections(store, host.clock.monotonic, whole=whole) for whole in (False, True))
        self.runner = Runner(
            store=store,
            means=Means(
                agents=edges.agents,
                tools=edges.tools,
                permissions=Permissions(settings.policy, store, self.people, host.secrets),
                budget=budget,
                teller=self.teller,
                host=host,
                tally=self.tally,
            ),
            journal=self.journal,
            newsroom=self.newsroom,
            admissions=self.admissions,
            stage=self.stage,
            safe_mode=self.safe_mode,
            recollections=self.recollections,
        )
        self.lanes = Lanes(
            store=store,
            host=host,
            stage=self.stage,
            recovery=self.recovery,
            admissions=self.admissions,
            neighbours=self.neighbours,
            newsroom=self.newsroom,
            runner=self.runner,
            safe_mode=self.safe_mode,
            budget=budget,
            recollections=self.recollections,
            agent_processes=edges.agent_processes,
        )

    def _build_sweep(self) -> None:
        """What looks after turns and processes that nobody looks after."""
        store, host, edges, settings = self._store, self._host, self._edges, self._settings
        self.sweep = Sweep(
            store=store,
            host=host,
            lanes=self.lanes,
            runner=self.runner,
            recovery=self.recovery,
            admissions=self.admissions,
            neighbours=self.neighbours,
            newsroom=self.newsroom,
            stage=self.stage,
            safe_mode=self.safe_mode,
            idle_timeout_s=settings.turn_idle_timeout_s,
            agent_processes=edges.agent_processes,
        )
        self.background = None
        if edges.keepers is not None:
            self.background = Background(store=store, host=host, keepers=edges.keepers, lanes=self.lanes, settings=settings)

    def _build_people(self) -> None:
        """What speaks with people."""
        store, host, edges, settings = self._store, self._host, self._edges, self._settings
        self.announcements = Announcements(
            store=store,
            host=host,
            people=self.people,
            runner=self.runner,
            stage=self.stage,
            teller=self.teller,
            restarts=edges.restarts,
            window_s=settings.drain_timeout_s,
        )
        self.branching = Branching(store=store, host=host, profile=settings.profile)
        self.wishes = Wishes(host, settings.schedules)
        self.alarm = Alarm(
            store=store,
            host=host,
            stage=self.stage,
            safe_mode=self.safe_mode,
            lanes=self.lanes,
            platforms=frozenset(edges.platforms),
            people=self.people,
        )
        self.acceptance = Acceptance(
            store=store,
            host=host,
            lanes=self.lanes,
            stage=self.stage,
            safe_mode=self.safe_mode,
            admissions=self.admissions,
            announcements=self.announcements,
            wishes=self.wishes,
            settings=settings,
            tally=self.tally,
        )

    def _build_chats(self) -> None:
        """What speaks with chat platforms."""
        store, host, edges, settings, links = self._store, self._host, self._edges, self._settings, self.links
        self.deliveries = Deliveries(store=store, host=host, links=links, files=edges.files, tally=self.tally)
        self.streams = Streams(store=store, host=host, links=links, deliveries=self.deliveries, feed=self.feed, manners=settings.manners)
        self.strangers = Strangers(store=store, host=host, links=links, profile=settings.profile)
        meaning = Meaning(
            store=store,
            host=host,
            acceptance=self.acceptance,
            people=self.people,
            strangers=self.strangers,
            deliveries=self.deliveries,
            fetching=Fetching(edges.files),
            clicks=Clicks(store=store, host=host, lanes=self.lanes, people=self.people),
            profile=settings.profile,
        )
        self.intake = Intake(store=store, host=host, meaning=meaning, deliveries=self.deliveries, links=links)
        self.connections = Connections(
            host=host,
            stage=self.stage,
            links=links,
            agents=edges.agents,
            titler=edges.titler,
            tools=edges.tools,
            intake=self.intake,
        )

    def _build_ends(self) -> None:
        """What pauses it, stops it and hands it over."""
        store, host, edges, settings = self._store, self._host, self._edges, self._settings
        self.pausing = Pausing(store=store, host=host, stage=self.stage, lanes=self.lanes, sweep=self.sweep)
        self.stopping = Stopping(
            store=store,
            host=host,
            stage=self.stage,
            lanes=self.lanes,
            runner=self.runner,
            connections=self.connections,
            deliveries=self.deliveries,
            streams=self.streams,
            announcements=self.announcements,
            feed=self.feed,
            background=self.background,
            edges=edges,
            drain_timeout_s=settings.drain_timeout_s,
        )
        self.hand_over = HandOver(
            store=store,
            host=host,
            stage=self.stage,
            lanes=self.lanes,
            runner=self.runner,
            sweep=self.sweep,
            connections=self.connections,
            deliveries=self.deliveries,
            streams=self.streams,
            feed=self.feed,
            pausing=self.pausing,
            stopping=self.stopping,
        )

    def _build_life(self) -> None:
        """What leads it from its start to its end."""
        store, host, edges, settings = self._store, self._host, self._edges, self._settings
        soundness = Soundness(
            store=store,
            host=host,
            stage=self.stage,
            safe_mode=self.safe_mode,
            admissions=self.admissions,
            lanes=self.lanes,
            sweep=self.sweep,
        )
        housekeeping = Housekeeping(
            store=store,
            host=host,
            lanes=self.lanes,
            tools=edges.tools,
            agent_processes=edges.agent_processes,
            settings=settings,
            recollections=(self.recollections, self.shown),
            shipping=self.shipping,
        )
        self.lifecycle = Lifecycle(
            host=host,
            stage=self.stage,
            startup=Startup(
                store=store, host=host, settings=settings, sweep=self.sweep, admissions=self.admissions, safe_mode=self.safe_mode
            ),
            works=self._works(housekeeping, soundness),
            connections=self.connections,
            pausing=self.pausing,
            announcements=self.announcements,
            stopping=self.stopping,
        )

    def _works(self, housekeeping: Housekeeping, soundness: Soundness) -> Works:
        """What is done all the time, each in a task of its own."""
        return {
            "journal": self.journal.run,
            "late journals": self.shipping.run,
            "news": self.newsroom.run,
            "feed": self.feed.run,
            "sweep": self.sweep.run,
            **({"background processes": self.background.run} if self.background is not None else {}),
            **({"titles": self.titles.run} if self.titles is not None else {}),
            "deliveries": self.deliveries.run,
            "schedules": self.alarm.run,
            "streams": self.streams.run,
            "search index": housekeeping.index,
            "housekeeping": housekeeping.tidy,
            "purge": housekeeping.purge,
            "soundness": soundness.prove,
            "after safe mode": soundness.after_safe_mode,
        }
