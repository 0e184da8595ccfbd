"""Holdfast: an AI agent behind chats and a web page, and the conversation holds."""

__version__ = "0.1.0"
