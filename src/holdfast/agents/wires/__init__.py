"""The protocols by which models are asked. `providers` chooses; nothing here retries, and nothing here knows a turn."""
