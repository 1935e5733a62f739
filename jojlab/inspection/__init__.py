"""What lies under a database or a directory of this machine, read without running anything."""
