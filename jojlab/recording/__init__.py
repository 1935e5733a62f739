"""Recordings of programs' file system calls and SQL: reads their tables, and exports them; writes
scripts of SQL that others recorded for our workloads.
"""
