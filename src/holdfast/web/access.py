"""Who may ask: the token, the cookies that stand for it, the one-time codes that are exchanged for one, and the names we answer to."""

import base64
import hashlib
import hmac
import re
import secrets
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from typing import NoReturn

from holdfast.ports import Clock
from holdfast.web.errors import ForeignOrigin, Misdirected, NotSignedIn, TooManyTries

COOKIE = "holdfast"
COOKIE_LIFE_S = 30 * 24 * 3600
CODE_LIFE_S = 300.0
MAX_CODES = 100
TRIES = 20
TRIES_S = 60.0
MAX_CLIENTS = 1000

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[^\s:/@\[\]]+)(?::([0-9]{1,5}))?")
_COOKIE_PREFIX = COOKIE.encode() + b"="


class Access:
    """Cookies carry their own proof, so they survive restarts, and a new token ends them all. A right credential always passes: the limit
    on wrong ones spares the log and the machine, it does not replace the 256 bits of the token.

    We answer to the loopback's names on our port, and to `hosts`; one of these without a port is good for every port."""

    def __init__(
        self,
        token: str,
        *,
        clock: Clock,
        port: int,
        hosts: Iterable[str] = (),
        random: Callable[[int], str] = secrets.token_urlsafe,
    ) -> None:
        self._clock, self._random = clock, random
        self._hosts = frozenset(_allowed(port, hosts))
        self._codes: OrderedDict[bytes, float] = OrderedDict()
        self._failures: OrderedDict[str, deque[float]] = OrderedDict()
        self.use_token(token)

    def use_token(self, token: str) -> None:
        """From now on this token counts; cookies made under another one do not."""
        if not token:
            raise ValueError("an empty token would let everybody in")
        self._token = token.encode()
        self._key = hmac.digest(self._token, b"holdfast cookie", "sha256")

    # names

    def check_host(self, host: bytes | None) -> None:
        name = (host or b"").decode("latin-1").lower()
        if name in self._hosts:
            return
        parts = _HOST.fullmatch(name)
        if parts is None or parts[1] not in self._hosts:
            raise Misdirected(name)

    def check_origin(self, origin: bytes | None, host: bytes, scheme: str) -> None:
        """A page of ours, or no page at all. Where TLS ends in front of us its pages are https and we are not."""
        if origin is None:
            return
        own, theirs = host.lower(), origin.lower()
        if theirs != b"https://" + own and not (scheme == "http" and theirs == b"http://" + own):
            raise ForeignOrigin(origin.decode("latin-1"))

    # credentials

    def check(self, headers: dict[bytes, bytes], client: str) -> None:
        """Passes whoever may ask. `client` is whose failures are counted together."""
        authorization = headers.get(b"authorization")
        if authorization is not None:
            scheme, _, token = authorization.partition(b" ")
            if scheme.lower() == b"bearer" and hmac.compare_digest(token.strip(), self._token):
                return
            self._fail(client, "The token in the Authorization header is not the one of this gateway. `holdfast token` prints it.")
        cookies = [part.strip() for part in headers.get(b"cookie", b"").split(b";")]
        genuine = [self._genuine(cookie[len(_COOKIE_PREFIX) :]) for cookie in cookies if cookie.startswith(_COOKIE_PREFIX)]
        if any(until is not None and until > self._clock.now() // 1000 for until in genuine):
            return
        if None in genuine:
            self._fail(client, "The sign-in of this browser is no longer good. Sign in again.")
        raise NotSignedIn(
            "Sign in first: open the address that `holdfast serve` printed, or send the token (`holdfast token`) as a Bearer."
        )

    def _genuine(self, value: bytes) -> int | None:
        """Until when a cookie of ours is good; None for one that we did not make under this token."""
        expires, _, signature = value.partition(b".")
        return int(expires) if hmac.compare_digest(signature, self._sign(expires)) else None

    def _sign(self, expires: bytes) -> bytes:
        return base64.urlsafe_b64encode(hmac.digest(self._key, expires, "sha256")).rstrip(b"=")

    # signing in

    def new_code(self) -> str:
        """Good for one sign-in within five minutes."""
        code = self._random(18)
        while len(self._codes) >= MAX_CODES:
            self._codes.popitem(last=False)
        self._codes[_digest(code)] = self._clock.monotonic() + CODE_LIFE_S
        return code

    def sign_in(self, *, code: str | None = None, token: str | None = None, client: str, secure: bool) -> bytes:
        """The Set-Cookie header for a right code or token."""
        if code is not None:
            until = self._codes.pop(_digest(code), None)
            if until is None or self._clock.monotonic() > until:
                self._fail(client, "This code is wrong, used up or older than five minutes. The token (`holdfast token`) works here too.")
        elif not hmac.compare_digest(_bytes(token or ""), self._token):
            self._fail(client, "This is not the token of this gateway. `holdfast token` prints it.")
        expires = b"%d" % (self._clock.now() // 1000 + COOKIE_LIFE_S)
        return self._set_cookie(expires + b"." + self._sign(expires), COOKIE_LIFE_S, secure)

    def sign_out(self, *, secure: bool) -> bytes:
        """The Set-Cookie header that makes a browser forget."""
        return self._set_cookie(b"", 0, secure)

    def _set_cookie(self, value: bytes, max_age_s: int, secure: bool) -> bytes:
        return b"%s%s; Max-Age=%d; Path=/; HttpOnly; SameSite=Strict%s" % (_COOKIE_PREFIX, value, max_age_s, b"; Secure" if secure else b"")

    def _fail(self, client: str, why: str) -> NoReturn:
        """After too many failures in a minute the answer is to wait; tries while waiting do not make it longer."""
        now = self._clock.monotonic()
        failures = self._failures.get(client)
        if failures is None:
            while len(self._failures) >= MAX_CLIENTS:
                self._failures.popitem(last=False)
            failures = self._failures[client] = deque(maxlen=TRIES)
        self._failures.move_to_end(client)
        if len(failures) == TRIES and now - failures[0] < TRIES_S:
            raise TooManyTries(TRIES_S - (now - failures[0]))
        failures.append(now)
        raise NotSignedIn(why)


def _allowed(port: int, hosts: Iterable[str]) -> Iterable[str]:
    for name in LOOPBACK:
        yield f"{name}:{port}"
        if port in (80, 443):  # Browsers leave these out.
            yield name
    for host in hosts:
        host = host.strip().lower()
        yield f"[{host}]" if host.count(":") > 1 and not host.startswith("[") else host


def _digest(code: str) -> bytes:
    return hashlib.sha256(_bytes(code)).digest()


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
