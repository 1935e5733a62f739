"""What does one commit cost, where does it go, and why?

Reads requests, page_runs, transactions and files; gives the bill of each case by block type, file
and cause, the classes that it falls into, the reasons for the filesystem's part of it, what the
journal copied, and one typical commit request by request.
"""
