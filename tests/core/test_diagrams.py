"""What is printed into the documents from the code is what the code says."""

from scripts import diagrams, rooms


def test_the_diagrams_of_the_architecture_are_those_of_the_code() -> None:
    text = diagrams.DOCUMENT.read_text()
    assert diagrams.filled(text) == text, "Run `python -m scripts.diagrams`: a table changed."


def test_the_modules_and_their_imports_are_those_of_the_code() -> None:
    """So that a new arrow between rooms is seen by whoever reads the change."""
    assert rooms.DOCUMENT.read_text() == rooms.document(rooms.modules()), "Run `python -m scripts.rooms`: modules or imports changed."
