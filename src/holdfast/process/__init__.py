"""One process: how it starts, serves, hands over, is asked to stop, and ends."""
