"""What is printed into the documents from the code is what the code says."""

from scripts import diagrams


def test_the_diagrams_of_the_architecture_are_those_of_the_code() -> None:
    text = diagrams.DOCUMENT.read_text()
    assert diagrams.filled(text) == text, "Run `python -m scripts.diagrams`: a table changed."
