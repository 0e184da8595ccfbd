"""What the page's own tests hold it to is what the server shows now."""

from tests.browser.stories import FILE, stories


def test_the_stories_that_the_page_is_tested_with_are_those_of_this_server() -> None:
    """P7: `npm test` in page/ folds their events and compares with what the server shows."""
    assert FILE.read_text() == stories(), "Write them with `python -m tests.browser.stories`, and run `npm test` in page/."
