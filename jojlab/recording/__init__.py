"""Recordings of calls and SQL: reads their tables, exports them, and writes scripts of SQL."""
