"""A scripted MCP server as a process of its own, over pipes or HTTP, with every fault a server can have. Standard library only, so that it
starts at once.
"""
