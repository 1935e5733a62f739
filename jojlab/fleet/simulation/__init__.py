"""Makes segments of devices that do not exist, with the statistics that were published of phones.

published.py has the figures and their sources, apps.py whose transactions they are, daily.py the
counts of a user's days, commit_rows.py, io_rows.py and file_rows.py the rows of a day,
segment_tables.py its tables, write.py the files.
"""
