"""Holdfast as an agent for editors: the Agent Client Protocol on standard input and output, over a running gateway."""
