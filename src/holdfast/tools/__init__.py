"""Tools that agents may use. Each declares what running it twice would do."""
