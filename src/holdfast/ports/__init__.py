"""Every seam of Holdfast, a page each. A method's docstring is its contract; `tests/conformance/` is the proof."""
