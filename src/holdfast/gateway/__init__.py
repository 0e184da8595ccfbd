"""What Holdfast does: intake, lanes, turns, recovery, delivery. Everything here runs on asyncio and knows no platform by name."""
