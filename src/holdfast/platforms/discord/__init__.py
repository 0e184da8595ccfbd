"""Discord: its REST API and its gateway, a WebSocket over which events come."""
