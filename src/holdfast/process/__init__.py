"""What one process is: its home, its locks, its status, its clock."""
