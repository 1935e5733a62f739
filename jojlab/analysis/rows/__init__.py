"""What do the tables add up to, by whom and what for, and is anything missing?

ask.py asks a question. The shared tables are in shared/ and, where they can be made from some
requests at a time, in sliced/: billed, durations, named_files and so on. The other rooms read them.
"""
