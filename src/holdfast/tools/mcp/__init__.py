"""Tools of MCP servers. The protocol's own library is loaded when the first server is started, and by `link`, `stdio` and `http` alone."""
