"""Makes segments of devices that do not exist, with the statistics that were published of phones.

published.py has the figures and their sources, apps.py whose transactions they are, daily.py the
counts of a user's days, tables.py the rows of a day, write.py the files.
"""
