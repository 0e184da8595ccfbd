"""Slack: an app with a bot, by Socket Mode or over HTTP."""
