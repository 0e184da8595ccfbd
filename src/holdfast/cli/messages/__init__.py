"""Sending a message and following its answer."""
