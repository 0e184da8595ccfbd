"""Who has access: the token, cookies that stand for it, one-time codes that are exchanged for a cookie, and the host names we accept."""

import base64
import hashlib
import hmac
import re
import secrets
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from typing import NamedTuple, NoReturn

from holdfast.core import forwarding
from holdfast.ports.process import Clock
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


class SignIn(NamedTuple):
    """The sign-in of one browser: what its cookie says. The name is not secret; only the signature next to it in the cookie counts."""

    name: str
    until_s: int


class Grant(NamedTuple):
    """What let a request in: the token (known by the key made from it), and a sign-in made with it unless it was the token itself."""

    key: bytes
    sign_in: SignIn | None


class Access:
    """Cookies carry their own proof, so they survive restarts, and a new token ends them all. A cookie that was signed out is remembered by
    its name until it would have expired. A correct credential always passes: the limit on wrong ones protects the log and the machine; it
    does not replace the 256 bits of the token.

    We accept the names of loopback on our port, `hosts`, and the host of `public`; a name without a port is valid for every port. `public`
    is the origin of our pages behind a reverse proxy."""

    def __init__(
        self,
        token: str,
        *,
        clock: Clock,
        port: int,
        hosts: Iterable[str] = (),
        public: str | None = None,
        random: Callable[[int], str] = secrets.token_urlsafe,
    ) -> None:
        self._clock, self._random = clock, random
        self._public = public.encode() if public else None
        self._public_host = forwarding.host(public) if public else ""
        self._hosts = frozenset(_allowed(port, (*hosts, self._public_host) if public else hosts))
        self._codes: OrderedDict[bytes, float] = OrderedDict()
        self._failures: OrderedDict[str, deque[float]] = OrderedDict()
        self._signed_out: frozenset[str] = frozenset()
        self._watched: dict[Callable[[], None], Grant] = {}
        self.use_token(token)

    def use_token(self, token: str) -> None:
        """Use this token from now on. Cookies and codes of another one stop working, and the streams they opened are closed."""
        if not token:
            raise ValueError("an empty token would let everybody in")
        self._token = token.encode()
        self._key = hmac.digest(self._token, b"holdfast cookie", "sha256")
        self._codes.clear()
        self._end_what_is_over()

    def end_sign_ins(self, names: Iterable[str]) -> None:
        """These sign-ins are over for good, and the streams they opened are closed."""
        self._signed_out = self._signed_out.union(names)
        self._end_what_is_over()

    # what stays open

    def good(self, grant: Grant) -> bool:
        """Whether this grant would still let a request in."""
        return hmac.compare_digest(grant.key, self._key) and (grant.sign_in is None or self._lasts(grant.sign_in))

    def watch(self, grant: Grant, ended: Callable[[], None]) -> Callable[[], None]:
        """Calls `ended` once when the grant is over, at once if it already is. Returns a function that stops watching."""
        if not self.good(grant):
            ended()
        else:
            self._watched[ended] = grant

        def forget() -> None:
            self._watched.pop(ended, None)

        return forget

    def _end_what_is_over(self) -> None:
        over = [ended for ended, grant in self._watched.items() if not self.good(grant)]
        for ended in over:
            del self._watched[ended]
            ended()

    def _lasts(self, sign_in: SignIn) -> bool:
        return sign_in.until_s > self._clock.now() // 1000 and sign_in.name not in self._signed_out

    def now(self) -> int:
        return self._clock.now()

    # names

    def check_host(self, host: bytes | None) -> None:
        name = (host or b"").decode("latin-1").lower()
        if name in self._hosts:
            return
        parts = _HOST.fullmatch(name)
        if parts is None or parts[1] not in self._hosts:
            raise Misdirected(name)

    def check_origin(self, origin: bytes | None, host: bytes, scheme: str) -> None:
        """Accepts our own pages, and requests that come from no page. Behind a proxy with TLS our pages are https although we are not."""
        if origin is None:
            return
        own, theirs = host.lower(), origin.lower()
        if theirs == self._public:
            return
        if theirs != b"https://" + own and not (scheme == "http" and theirs == b"http://" + own):
            raise ForeignOrigin(origin.decode("latin-1"))

    def secure(self, scheme: str, host: bytes) -> bool:
        """Whether the browser uses TLS, with us or with the proxy in front of us: then its cookie is `Secure`."""
        public = self._public is not None and self._public.startswith(b"https:") and host.decode("latin-1").lower() == self._public_host
        return scheme == "https" or public

    # credentials

    def check(self, headers: dict[bytes, bytes], client: str) -> Grant:
        """Returns what lets the request in, or raises. Failures are counted per `client`."""
        authorization = headers.get(b"authorization")
        if authorization is not None:
            scheme, _, token = authorization.partition(b" ")
            if scheme.lower() == b"bearer" and hmac.compare_digest(token.strip(), self._token):
                return Grant(self._key, None)
            self._fail(client, "The token in the Authorization header is not this gateway's token. `holdfast token` prints it.")
        found = self._sign_ins(headers)
        for sign_in in found:
            if sign_in is not None and self._lasts(sign_in):
                return Grant(self._key, sign_in)
        if None in found:
            self._fail(client, "The sign-in of this browser has ended. Sign in again.")
        raise NotSignedIn(
            "Sign in first: open the link that `holdfast open` prints, or send the token (`holdfast token`) as a Bearer token."
        )

    def sign_ins(self, headers: dict[bytes, bytes]) -> list[SignIn]:
        """The valid sign-ins among a request's cookies."""
        return [sign_in for sign_in in self._sign_ins(headers) if sign_in is not None and self._lasts(sign_in)]

    def _sign_ins(self, headers: dict[bytes, bytes]) -> list[SignIn | None]:
        cookies = [part.strip() for part in headers.get(b"cookie", b"").split(b";")]
        return [self._genuine(cookie[len(_COOKIE_PREFIX) :]) for cookie in cookies if cookie.startswith(_COOKIE_PREFIX)]

    def _genuine(self, value: bytes) -> SignIn | None:
        """The content of a cookie; None if it was not made with this token."""
        said, _, signature = value.rpartition(b".")
        if not hmac.compare_digest(signature, self._sign(said)):
            return None
        name, _, until = said.decode().partition(".")
        return SignIn(name, int(until))

    def _sign(self, said: bytes) -> bytes:
        return base64.urlsafe_b64encode(hmac.digest(self._key, said, "sha256")).rstrip(b"=")

    # signing in

    def new_code(self) -> str:
        """Valid for one sign-in within five minutes."""
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
                self._fail(client, "This code is wrong, already used, or older than five minutes. `holdfast open` prints a new link.")
        elif not hmac.compare_digest(_bytes(token or ""), self._token):
            self._fail(client, "This is not this gateway's token. `holdfast token` prints it.")
        said = f"{self._random(16)}.{self._clock.now() // 1000 + COOKIE_LIFE_S}".encode()
        return self._set_cookie(said + b"." + self._sign(said), COOKIE_LIFE_S, secure)

    def sign_out(self, ended: Iterable[SignIn], *, secure: bool) -> bytes:
        """The Set-Cookie header that removes the cookie from the browser. The sign-ins end on the server, too."""
        self.end_sign_ins(sign_in.name for sign_in in ended)
        return self._set_cookie(b"", 0, secure)

    def _set_cookie(self, value: bytes, max_age_s: int, secure: bool) -> bytes:
        return b"%s%s; Max-Age=%d; Path=/; HttpOnly; SameSite=Strict%s" % (_COOKIE_PREFIX, value, max_age_s, b"; Secure" if secure else b"")

    def _fail(self, client: str, why: str) -> NoReturn:
        """After too many failures in a minute the client must wait; trying again while waiting does not extend it."""
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
