"""What I/O was made, whether or not anybody knows the transactions behind it?

Reads requests, page_runs, files and counters; gives its kinds by count and bytes, the load of each
device, and the points of pictures of sector against time.
"""
