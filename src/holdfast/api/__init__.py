"""The shapes of what Holdfast shows and takes: the web serves them, the command line reads them. No HTTP, no terminal."""
