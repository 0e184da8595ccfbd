"""Telegram: the Bot API, by long polling or a webhook."""
