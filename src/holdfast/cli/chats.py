"""Chat platforms, as far as the command line knows them: an account is tried, and what is said of it. The only module of the command line
that knows the platforms, and of those only their trials.
"""

from collections.abc import Callable, Mapping

from holdfast.config import chats
from holdfast.config.errors import BadConfig
from holdfast.core.errors import Refused, Unavailable
from holdfast.ports.trials import Person, Trial


class NoBot(Refused):
    """`wrong_account`: because of what it was reached with."""

    code = "no_bot"

    def __init__(self, why: str, *, wrong_account: bool) -> None:
        super().__init__(why)
        self.wrong_account = wrong_account


class Bot:
    """An account that answered."""

    def __init__(self, platform: str, account: Mapping[str, str]) -> None:
        """Raises `NoBot`, `BadConfig`."""
        try:
            self._trial = _TRIALS[platform]()
        except ImportError as error:
            raise BadConfig(chats.install(platform)) from error
        self._account = account
        try:
            chats.check_shapes(platform, {name: value for name, value in account.items() if value})
        except BadConfig as error:
            raise NoBot(str(error), wrong_account=True) from error
        try:
            self.found = self._trial.check(account)
        except Refused as error:
            raise NoBot(str(error), wrong_account=True) from error
        except Unavailable as error:
            address = "homeserver" if "homeserver" in account else "base_url"
            raise NoBot(f"{error} Check the network, the proxy and {address}.", wrong_account=False) from error

    def first_person(self, *, within_s: float) -> Person | None:
        """Somebody who wrote to it; None if nobody did. Raises `NoBot`."""
        try:
            return self._trial.first_person(self._account, within_s=within_s)
        except (Refused, Unavailable) as error:
            raise NoBot(str(error), wrong_account=False) from error


def _telegram() -> Trial:
    from holdfast.platforms.telegram import trial

    return trial


def _slack() -> Trial:
    from holdfast.platforms.slack import trial

    return trial


def _discord() -> Trial:
    from holdfast.platforms.discord import trial

    return trial


def _matrix() -> Trial:
    from holdfast.platforms.matrix import trial

    return trial


# Loaded when one is tried: an SDK may be missing, and takes its time.
_TRIALS: dict[str, Callable[[], Trial]] = {"telegram": _telegram, "slack": _slack, "discord": _discord, "matrix": _matrix}


def log_in_to_matrix(homeserver: str, *, user: str, password: str, token: str, device: str) -> dict[str, str]:
    """What an account is reached with, by an access token or else by a password, as the same `device` as before. Raises `NoBot`."""
    from holdfast.platforms.matrix import trial

    try:
        found = trial.discover(homeserver)
        if not token:
            token = trial.log_in(found, user, password, device=device).token
        device, since = trial.here(found, token)
    except Refused as error:
        raise NoBot(str(error), wrong_account=True) from error
    except Unavailable as error:
        raise NoBot(f"{error} Check the network, the proxy and the homeserver's address.", wrong_account=False) from error
    return {"homeserver": found, "token": token, "device_id": device, "since": since}
