"""Pure decisions and values. Nothing in here knows a clock, a file, a task or a platform."""
