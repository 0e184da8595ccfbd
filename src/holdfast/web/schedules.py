"""Schedules over HTTP: make them, list them, pause them, remove them."""

from collections.abc import Iterable

from starlette.types import ASGIApp

from holdfast.api import schedules
from holdfast.api.requests import ChangedSchedule, NewSchedule, SchedulesQuery
from holdfast.core.errors import Deleted, DuplicateOtherContent, NotFound
from holdfast.core.reminders import When
from holdfast.core.schedules import ScheduleOver, TooManySchedules
from holdfast.gateway.gateway import Gateway
from holdfast.web.endpoints import Endpoint, Request
from holdfast.web.responses import json_response

OWNER = "owner"


class Schedules:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    def endpoints(self) -> Iterable[Endpoint]:
        path = "/api/schedules"
        yield Endpoint(
            method="POST",
            path=path,
            handle=self.add,
            summary="Start work at a time, once or again and again",
            body=NewSchedule,
            responses={201: schedules.ScheduleView},
            refusals=(NotFound, Deleted, DuplicateOtherContent, TooManySchedules),
        )
        yield Endpoint(
            method="GET",
            path=path,
            handle=self.list,
            summary="Schedules, the next one that is due first",
            query=SchedulesQuery,
            responses={200: schedules.SchedulesView},
            refusals=(NotFound, Deleted),
        )
        yield Endpoint(
            method="PATCH",
            path=f"{path}/{{id}}",
            handle=self.change,
            summary="Pause or continue a schedule",
            body=ChangedSchedule,
            responses={200: schedules.ScheduleView},
            refusals=(NotFound, ScheduleOver),
        )
        yield Endpoint(
            method="DELETE",
            path=f"{path}/{{id}}",
            handle=self.remove,
            summary="Remove a schedule",
            responses={200: schedules.ScheduleView},
            refusals=(NotFound,),
        )

    async def add(self, request: Request) -> ASGIApp:
        wanted: NewSchedule = request.body
        when = When(at=wanted.at, every_s=wanted.every_s, cron=wanted.cron, when=wanted.when, time_zone=wanted.time_zone)
        made = await self._gateway.add_schedule(
            wanted.session_id, wanted.text, when, by=OWNER, missed=wanted.missed, client_id=wanted.client_id
        )
        return json_response(201, schedules.schedule(made))

    async def list(self, request: Request) -> ASGIApp:
        wanted: SchedulesQuery = request.query
        found = await self._gateway.schedules(wanted.session)
        return json_response(200, schedules.SchedulesView([schedules.schedule(each) for each in found]))

    async def change(self, request: Request) -> ASGIApp:
        wanted: ChangedSchedule = request.body
        change = self._gateway.pause_schedule if wanted.paused else self._gateway.continue_schedule
        return json_response(200, schedules.schedule(await change(request.params["id"], by=OWNER)))

    async def remove(self, request: Request) -> ASGIApp:
        return json_response(200, schedules.schedule(await self._gateway.remove_schedule(request.params["id"], by=OWNER)))
