"""The Bot API on the far side of the wire, as far as bots of ours use it: an HTTP server that keeps what people and bots write."""

from tests.fakes.telegram.server import Shown, TelegramServer

__all__ = ["Shown", "TelegramServer"]
