"""A server that speaks Discord's REST API and its gateway, for tests."""

from tests.fakes.discord.server import DiscordServer

__all__ = ["DiscordServer"]
