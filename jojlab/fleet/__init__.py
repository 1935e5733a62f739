"""A fleet of devices whose commits are collected for months: docs/fleet.md describes it.

Rooms, each above those it uses: store (what the server keeps, and its checks), server (HTTP),
simulation (segments of devices that do not exist), study (the questions, by DuckDB or Spark),
report (terminal and page). demo.py runs a whole fleet on one machine.
"""
