"""How commands reach conversations: through the running gateway, or in the store of a home folder without one."""
