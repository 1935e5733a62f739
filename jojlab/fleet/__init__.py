"""The server's side of a fleet: devices and their tokens, the store, segments that come in, the
dataset that they make, its compaction. docs/fleet.md describes it.
"""
