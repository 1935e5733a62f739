"""The figures that a made fleet has: what was published of phones, and what we assume beside it.

`AndroTrace` is Kim and Won, A Workload Generation Method for Multiple Files (four users, two years
of traces); `ATC'13` is Jeong et al., I/O Stack Optimization for Smartphones, Fig. 2; `PocketData`
is Kennedy et al., TPCTC 2015 (11 phones, 254 phone-days); `DICL` are our counts of the public SQL
traces of DICL/mobile-traces. What has no source is called an assumption.
"""

from __future__ import annotations

from typing import NamedTuple


class UserDays(NamedTuple):
    """A user of AndroTrace: multi-file transactions a day (table 2), days observed (table 1)."""

    user: str
    average: float
    median: float
    upper_quartile: float
    most: float
    days: int


# AndroTrace, tables 1 and 2. Days are those from the first to the last date, both counted.
USERS = (
    UserDays("User 1", 118.8, 117.5, 148.3, 296, 97),
    UserDays("User 2", 59.3, 51, 70, 353, 302),
    UserDays("User 3", 27, 25, 37, 271, 400),
    UserDays("User 4", 43.9, 23, 62.3, 575, 534),
)

# Statements that write, a phone and day: PocketData, 9.4 + 1.2 + 1.0 million on 254 phone-days.
WRITING_STATEMENTS = 45_700
# Such statements in a transaction: DICL, 18,831 in 2,855 of five apps.
STATEMENTS_A_TRANSACTION = 6.6
COMMITS = WRITING_STATEMENTS / STATEMENTS_A_TRANSACTION
# Pages that a transaction changes: DICL, Facebook's WAL frames (mean 3.94, median 4, most 11).
PAGES = 3.94

# Shares of the writes (requests) that reach the device: ATC'13, Fig. 2.
FS_JOURNAL = 0.30
FS_METADATA = 0.10
SQLITE_OF_DATA = 0.90
SYNC = 0.70
RANDOM = 0.75
SMALL = 0.64

# The filesystem's journal of one commit on ext4, bytes: ATC'13, Fig. 4; WAL: one block and commit.
FILESYSTEM_BYTES = {"delete": 24 << 10, "truncate": 16 << 10, "persist": 8 << 10, "wal": 8 << 10}
# Nanoseconds of a commit: ATC'13, 39 inserts/s by TRUNCATE and 92 by WAL on ext4; AndroTrace, three
# files by PERSIST take four times as long as one.
COMMIT_NS = {"delete": 25_600_000, "truncate": 25_600_000, "persist": 25_600_000, "wal": 10_900_000}
MULTI_FILE_TIMES = 4

# Assumptions from here on.
SPREAD = 0.5  # of the logarithm of a day's commits, and of a commit's time
WAL_SHARE = 0.6  # of the commits of one database
REQUESTS_A_COMMIT = 5  # writes that reach the device
READS_A_WRITE = 0.4  # "write IOs are dominant" (AndroTrace, INFLOW'15), without a number
DISK_BYTES = 64 << 30
SMALL_BYTES, LARGE_BYTES = 4096, 48 << 10  # of a request that is small, and of one that is not
# Share of a day's activity in each hour from midnight on: asleep, awake, in the evening.
HOURS = (1, 1, 1, 1, 1, 1, 2, 4, 6, 5, 5, 5, 7, 6, 5, 5, 5, 6, 7, 8, 8, 7, 5, 3)
