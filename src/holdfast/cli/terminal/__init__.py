"""What people see at a terminal, and what they type there."""
