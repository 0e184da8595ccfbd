"""Signing a browser in and out."""

from collections.abc import Iterable

import msgspec
from starlette.types import ASGIApp

from holdfast.core.errors import BadInput
from holdfast.ports.store import Store
from holdfast.web.access import CODE_LIFE_S, Access
from holdfast.web.bodies import Body, Nothing
from holdfast.web.errors import NotSignedIn, TokenNeeded, TooManyTries
from holdfast.web.operations import Call, Operation
from holdfast.web.replies import Reply, answer


class Credential(Body, frozen=True):
    """One of the two."""

    code: str | None = None
    token: str | None = None


class NewCode(msgspec.Struct):
    """Exchanged for a cookie by one `POST /api/login`, within this many seconds. `/#code=...` behind the address of the page does it."""

    code: str
    expires_in_s: int


class Login:
    def __init__(self, access: Access, store: Store) -> None:
        self._access, self._store = access, store

    def operations(self) -> Iterable[Operation]:
        yield Operation(
            method="POST",
            path="/api/login",
            handle=self.login,
            summary="Exchange a one-time code, or the token, for a cookie",
            body=Credential,
            answers={204: None},
            refusals=(NotSignedIn, TooManyTries),
            open=True,
            inside=False,
        )
        yield Operation(
            method="POST",
            path="/api/login/codes",
            handle=self.new_code,
            summary="A fresh one-time code, for a holder of the token",
            body=Nothing,
            body_optional=True,
            answers={201: NewCode},
            refusals=(TokenNeeded,),
            inside=False,
        )
        yield Operation(
            method="POST",
            path="/api/logout",
            handle=self.logout,
            summary="End the sign-in of this browser, here and on the server",
            body=Nothing,
            body_optional=True,
            answers={204: None},
        )

    async def login(self, call: Call) -> ASGIApp:
        given: Credential = call.body
        if (given.code is None) == (given.token is None):
            raise BadInput("Give either `code` or `token`.")
        cookie = self._access.sign_in(code=given.code, token=given.token, client=call.client, secure=self._secure(call))
        return Reply(204, headers=((b"set-cookie", cookie),))

    async def new_code(self, call: Call) -> ASGIApp:
        """Not for a browser's cookie: a sign-in must not make others that outlive it."""
        if call.grant is None or call.grant.sign_in is not None:
            raise TokenNeeded
        return answer(201, NewCode(self._access.new_code(), int(CODE_LIFE_S)))

    async def logout(self, call: Call) -> ASGIApp:
        """On record first: a sign-in that was ended stays so after a restart and in other processes."""
        ended = self._access.sign_ins(call.headers)
        for sign_in in ended:
            await self._store.sign_out(sign_in.name, until=sign_in.until_s * 1000, now=self._access.now())
        return Reply(204, headers=((b"set-cookie", self._access.sign_out(ended, secure=self._secure(call))),))

    def _secure(self, call: Call) -> bool:
        return self._access.secure(call.scope.get("scheme", "http"), call.headers.get(b"host", b""))
