"""What I/O was made, whether or not its transactions are known?

Reads requests, page_runs, files and counters. Returns the kinds of I/O by count and bytes, the load
of each device, and the points of charts of sector against time.
"""
