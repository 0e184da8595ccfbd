"""A server that speaks Slack's Web API and Socket Mode."""

from tests.fakes.slack.server import SlackServer

__all__ = ["SlackServer"]
