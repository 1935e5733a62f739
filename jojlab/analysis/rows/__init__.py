"""Which rows of the tables count, what do they consist of, whose are they, and is any missing?

Reads requests, page_runs, transactions, files and manifest. Returns them as Ibis tables with
additional columns (part, piece, file, cause), for the other rooms to add up.
"""
