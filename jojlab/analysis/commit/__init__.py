"""What does one commit cost, where does it go, and why?

Reads requests, page_runs, transactions and files. Returns the bill of each case by block type, file
and cause; the classes it falls into; the reasons for the filesystem's part; what the journal
copied; and one typical commit request by request.
"""
