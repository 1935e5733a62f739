"""Which rows of the tables count, what do they consist of, whose are they, and is any missing?

Reads requests, page_runs, transactions, files and manifest; gives them back as Ibis tables with
columns more (part, piece, file, cause), for the other rooms to add up.
"""
