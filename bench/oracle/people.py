"""One person with one conversation at a time: says things, stops them, answers questions, begins again, goes back. Chosen by chance."""

import asyncio
import random
from pathlib import Path
from typing import Any

import msgspec

from bench.load import Address, Api
from bench.oracle.account import Account, Kind, Order, Said
from holdfast.agents.demo import HINT

REQUEST_S = 15.0
RETRY_S = 0.1
FAILURES = (OSError, EOFError, TimeoutError)
# Out of a hundred messages, this many are sent once only, whether anybody acknowledges them or not.
IMPATIENT = 0.15
DELETED = 410
ACTS = {
    "say": 50,
    "stop": 12,
    "stop at once": 4,
    "answer": 14,
    "reset": 6,
    "resume": 4,
    "suspend": 2,
    "rename": 2,
    "command": 6,
    "delete": 4,
    "undelete": 3,
}


class Person:
    """`closing`: says nothing more, and ends once what it is doing is acknowledged."""

    def __init__(self, number: int, seed: int, account: Account, lines: Path) -> None:
        self._chance = random.Random(f"person {seed} {number}")
        self._number, self._account, self._lines = number, account, lines
        self._count = 0
        self._session = ""
        self._earlier: list[str] = []
        self.closing = False

    async def run(self, address: Address) -> None:
        async with Api(address) as api:
            await self._begin(api)
            while not self.closing:
                await asyncio.sleep(self._chance.expovariate(2.5))
                act = self._chance.choices(list(ACTS), list(ACTS.values()))[0]
                await self._act(api, act)

    async def _begin(self, api: Api) -> None:
        """A conversation of its own, which nobody else knows."""
        answer = None
        while not isinstance(answer, dict) and not self.closing:
            answer = await self._once(api, "POST", "/api/sessions", {})
        if isinstance(answer, dict):
            self._moved(str(answer["session_id"]))

    async def _act(self, api: Api, act: str) -> None:
        session = self._session
        match act:
            case "say":
                await self._say(api, self._message())
            case "stop":
                await self._order(api, "stop", session, f"/api/sessions/{session}/stop")
            case "stop at once":  # As by somebody who hits the key again and again: one turn is meant.
                await asyncio.gather(*(self._order(api, "stop", session, f"/api/sessions/{session}/stop") for _ in range(8)))
            case "answer":
                await self._answer(api, session)
            case "reset":
                await self._order(api, "reset", session, f"/api/sessions/{session}/reset")
            case "resume" if self._earlier:
                back = self._chance.choice(self._earlier)
                await self._order(api, "resume", back, f"/api/sessions/{back}/resume")
            case "suspend":
                await self._order(api, "suspend", session, f"/api/sessions/{session}/suspend", named=False)
            case "delete":
                self._account.orders.append(Order("delete", session))
                if await self._once(api, "DELETE", f"/api/sessions/{session}") is not None:
                    await self._begin(api)
            case "undelete" if self._earlier:
                await self._once(api, "POST", f"/api/sessions/{self._chance.choice(self._earlier)}/undelete", {})
            case "rename":
                await self._once(api, "PATCH", f"/api/sessions/{session}", {"title": f"title {self._chance.random()}"})
            case "command":
                command = self._chance.choice(["/status", "/sessions", "/stop", "/new", "/help"])
                order = Order("stop" if command == "/stop" else "reset" if command == "/new" else command, session)
                self._account.orders.append(order)
                await self._post(api, session, command, order)

    def _message(self) -> Said:
        self._count += 1
        name = f"p{self._number}n{self._count}"
        kind = self._chance.choices(list(Kind), [40, 25, 12, 15, 5, 3])[0]
        last = self._chance.randint(2, 40)
        text, answer = {
            Kind.COUNT: (f"count {last} 0.0{self._number}{self._count:03d}", " ".join(map(str, range(1, last + 1)))),
            Kind.RUN: (f"run echo {name} >> {self._lines}; sleep {self._chance.uniform(0, 1):.2f}; echo {name}", None),
            Kind.ASK: (f"ask What is {name}?", None),
            Kind.HELLO: (f"hello {name}", f"You said: hello {name}\n\n{HINT}"),
            Kind.FAIL: (f"fail {name}", None),
            Kind.HANG: (f"hang {name}", None),
        }[kind]
        return Said(name=name, kind=kind, text=text, asked_session=self._session, answer=answer)

    async def _say(self, api: Api, said: Said) -> None:
        self._account.said[said.name] = said
        patient = self._chance.random() > IMPATIENT
        body = {"text": said.text, "client_id": said.name}
        while True:
            answer = await self._once(api, "POST", f"/api/sessions/{said.asked_session}/messages", body)
            if isinstance(answer, dict):
                said.message_id, said.session_id = str(answer["message_id"]), str(answer["session_id"])
                self._moved(said.session_id)
                return
            if answer == DELETED:
                return await self._begin(api)
            if answer is not None and answer not in (500, 503, 507):
                self._account.faults.append(f"{said.name} was refused with {answer}")
                return
            if not patient:
                return

    async def _answer(self, api: Api, session: str) -> None:
        shown = await self._once(api, "GET", f"/api/sessions/{session}")
        question = shown.get("question") if isinstance(shown, dict) else None
        if question:
            self._count += 1
            name = f"p{self._number}a{self._count}"
            order = Order("answer", session)
            self._account.orders.append(order)
            answer = await self._once(
                api, "POST", f"/api/questions/{question['question_id']}", {"text": f"it is {name}", "client_id": name}
            )
            order.said = answer if isinstance(answer, dict) else None

    async def _order(self, api: Api, what: str, session: str, path: str, *, named: bool = True) -> None:
        """Repeated under its name until it is answered: it is done once."""
        self._count += 1
        order = Order(what, session)
        self._account.orders.append(order)
        body: dict[str, Any] = {"client_id": f"p{self._number}o{self._count}"} if named else {}
        for _ in range(50):
            answer = await self._once(api, "POST", path, body)
            if isinstance(answer, dict):
                order.said = answer
                if what in ("reset", "resume"):
                    self._moved(str(answer["session_id"]))
                return
            if answer is not None and answer < 500:
                order.refused = str(answer)
                return

    async def _post(self, api: Api, session: str, text: str, order: Order) -> None:
        self._count += 1
        body = {"text": text, "client_id": f"p{self._number}c{self._count}"}
        for _ in range(50):
            answer = await self._once(api, "POST", f"/api/sessions/{session}/messages", body)
            if isinstance(answer, dict):
                order.said = answer
                self._moved(str(answer["session_id"]))
                return
            if answer is not None and answer < 500:
                order.refused = str(answer)
                return

    def _moved(self, session: str) -> None:
        self._account.sessions.add(session)
        if session != self._session:
            if self._session:
                self._earlier.append(self._session)
            self._session = session

    async def _once(self, api: Api, method: str, path: str, body: Any = None) -> dict[str, Any] | int | None:
        """The answer, the status of a refusal, or None where nobody answered."""
        try:
            async with asyncio.timeout(REQUEST_S):
                status, answer = await api.request(method, path, body)
        except FAILURES:
            await asyncio.sleep(RETRY_S)
            return None
        if status < 300:
            return dict(msgspec.json.decode(answer))
        if status >= 500:
            await asyncio.sleep(RETRY_S)
        return status
