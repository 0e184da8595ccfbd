"""Chat platforms, one module each: translation only."""
