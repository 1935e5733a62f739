"""Makes segments of devices that do not exist, with the statistics that were published of phones.

phones.py has the figures with their sources, the apps and the counts of a user's days,
day_rows.py the rows of a day, segments.py its tables and files.
"""
