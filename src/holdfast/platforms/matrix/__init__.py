"""Matrix: an account on a homeserver, by its client-server API. Rooms without encryption only."""
