"""Signing a browser in and out."""

from collections.abc import Iterable

from starlette.types import ASGIApp

from holdfast.api.requests import Credential
from holdfast.api.results import NewCode
from holdfast.core.errors import BadInput
from holdfast.ports.store import Store
from holdfast.web.access import CODE_LIFE_S, Access
from holdfast.web.endpoints import Endpoint, Request, command
from holdfast.web.errors import NotSignedIn, TokenNeeded, TooManyTries
from holdfast.web.responses import Response, json_response


class Login:
    def __init__(self, access: Access, store: Store) -> None:
        self._access, self._store = access, store

    def endpoints(self) -> Iterable[Endpoint]:
        yield Endpoint(
            method="POST",
            path="/api/login",
            handle=self.login,
            summary="Exchange a one-time code, or the token, for a cookie",
            body=Credential,
            responses={204: None},
            refusals=(NotSignedIn, TooManyTries),
            open=True,
            inside=False,
        )
        yield command(
            "/api/login/codes",
            self.new_code,
            "A new one-time code; needs the token",
            {201: NewCode},
            refusals=(TokenNeeded,),
            inside=False,
        )
        yield command("/api/logout", self.logout, "End the sign-in of this browser, here and on the server", {204: None})

    async def login(self, request: Request) -> ASGIApp:
        given: Credential = request.body
        if (given.code is None) == (given.token is None):
            raise BadInput("Give either `code` or `token`.")
        cookie = self._access.sign_in(code=given.code, token=given.token, client=request.client, secure=self._secure(request))
        return Response(204, headers=((b"set-cookie", cookie),))

    async def new_code(self, request: Request) -> ASGIApp:
        """Not with a browser's cookie: a sign-in must not create others that outlive it."""
        if request.grant is None or request.grant.sign_in is not None:
            raise TokenNeeded
        return json_response(201, NewCode(self._access.new_code(), int(CODE_LIFE_S)))

    async def logout(self, request: Request) -> ASGIApp:
        """Recorded first: a sign-in that ended stays ended after a restart and in other processes."""
        ended = self._access.sign_ins(request.headers)
        for sign_in in ended:
            await self._store.sign_out(sign_in.name, until=sign_in.until_s * 1000, now=self._access.now())
        return Response(204, headers=((b"set-cookie", self._access.sign_out(ended, secure=self._secure(request))),))

    def _secure(self, request: Request) -> bool:
        return self._access.secure(request.scope.get("scheme", "http"), request.headers.get(b"host", b""))
