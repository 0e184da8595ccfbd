"""The HTTP API, the event stream and the built page. Knows the gateway's face; nothing knows this but the composition root."""
