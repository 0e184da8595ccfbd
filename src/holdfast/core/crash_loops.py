"""How long a start waits before it resumes anything, given how many earlier starts crashed."""

# Older crashes say nothing about this start.
WINDOW_MS = 10 * 60 * 1000
FROM = 3
FIRST_S, MOST_S = 2.0, 30.0


def wait_s(deaths: int) -> float:
    """2 s after the third death within the window, doubled for each further one, at most 30 s (C26). Messages are answered at once; but a
    resumed turn may be what kills the process, and a crash loop must not spin.
    """
    return min(MOST_S, FIRST_S * 2.0 ** min(deaths - FROM, 10)) if deaths >= FROM else 0.0
