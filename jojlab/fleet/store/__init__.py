"""The server's stored side: devices and tokens, segments that came in, the dataset they make.

docs/fleet.md describes it.
"""
