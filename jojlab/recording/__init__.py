"""Recordings of programs' file system calls: reads their tables, and exports them."""
