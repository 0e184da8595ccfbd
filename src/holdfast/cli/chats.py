"""Chat platforms, as far as the command line knows them: an account is tried, and what is said of it. The only module of the command line
that knows the platforms, and of those only their trials.
"""

from holdfast.config.errors import BadConfig
from holdfast.core.errors import Refused, Unavailable

INSTALL = 'Telegram needs its SDK. Install it with `pip install "holdfast[telegram]"`.'


class NoBot(Refused):
    """`wrong_token`: because of the token."""

    code = "no_bot"

    def __init__(self, why: str, *, wrong_token: bool) -> None:
        super().__init__(why)
        self.wrong_token = wrong_token


class TelegramBot:
    """A bot that was found by its token."""

    def __init__(self, token: str, base_url: str) -> None:
        """Raises `NoBot`, `BadConfig`."""
        try:
            from holdfast.platforms.telegram import trial
        except ImportError as error:
            raise BadConfig(INSTALL) from error
        self._trial, self._token, self._base_url = trial, token, base_url
        try:
            self.found = trial.check(token, base_url)
        except Refused as error:
            raise NoBot(str(error), wrong_token=True) from error
        except Unavailable as error:
            raise NoBot(f"{error} Check the network, the proxy and base_url.", wrong_token=False) from error

    def first_person(self, *, within_s: float) -> tuple[str, str, str] | None:
        """The id, the name and the words of somebody who wrote to it; None if nobody did. Raises `NoBot`."""
        try:
            found = self._trial.first_person(self._token, self._base_url, within_s=within_s)
        except Unavailable as error:
            raise NoBot(str(error), wrong_token=False) from error
        return None if found is None else (found.id, found.name, found.text)
