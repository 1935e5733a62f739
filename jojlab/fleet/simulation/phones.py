"""The published statistics of phones that a simulated fleet follows, its apps, and a user's days.

`AndroTrace` is Kim and Won, A Workload Generation Method for Multiple Files (four users, two years
of traces); `ATC'13` is Jeong et al., I/O Stack Optimization for Smartphones, Fig. 2; `PocketData`
is Kennedy et al., TPCTC 2015 (11 phones, 254 phone-days); `DICL` are our counts of the public SQL
traces of DICL/mobile-traces. What has no source is called an assumption.

The names of multi-file transactions are those that AndroTrace found (contact2.db, EmailProvider.db,
History.db, KakaoTalk.db); which databases they join, the other apps and all weights are
assumptions.

The days of a user are points of one quantile function, which goes straight from zero to the median
and to the upper quartile, and by a power from there to the most. The power is what makes the
average the published one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


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


class App(NamedTuple):
    """An app; `joined` are the databases of its multi-file transactions, the first names them."""

    process: str
    databases: tuple[str, ...]
    weight: float
    joined: tuple[str, ...] = ()
    multi_file_weight: float = 0.0


def _paths(package: str, *names: str) -> tuple[str, ...]:
    return tuple(f"/data/{package}/databases/{name}" for name in names)


_CONTACTS = "com.android.providers.contacts"
APPS = (
    App(
        "ndroid.contacts", _paths(_CONTACTS, "contact2.db", "profile.db"), 1.0,
        _paths(_CONTACTS, "contact2.db", "profile.db"), 0.20,
    ),
    App(
        "m.android.email", _paths("com.android.email", "EmailProvider.db", "EmailProviderBody.db"),
        1.0, _paths("com.android.email", "EmailProvider.db", "EmailProviderBody.db"), 0.25,
    ),
    App(
        "android.browser", _paths("com.android.browser", "History.db", "Cookies.db", "Favicons.db"),
        2.0, _paths("com.android.browser", "History.db", "Archived.db", "Thumbnails.db"), 0.20,
    ),
    App(
        "com.kakao.talk", _paths("com.kakao.talk", "KakaoTalk.db", "KakaoTalk2.db"), 3.0,
        _paths("com.kakao.talk", "KakaoTalk.db", "KakaoTalk2.db"), 0.35,
    ),
    App("facebook.katana", _paths("com.facebook.katana", "graph.db", "prefs.db"), 3.0),
    App("twitter.android", _paths("com.twitter.android", "timeline.db"), 1.5),
    App("gle.android.gms", _paths("com.google.android.gms", "gservices.db", "rmq.db"), 2.5),
    App("d.process.media", _paths("com.android.providers.media", "external.db"), 0.5),
)  # fmt: skip


Counts = NDArray[np.int64]
_FEWEST = 8  # fewer days have no quartiles and no maximum of their own
_STEPS = 60  # of a bisection


def daily_counts(user: UserDays, days: int, generator: np.random.Generator) -> Counts:
    """Return the multi-file transactions of each of `days`, in random order.

    From 90 days on, average, median, upper quartile and most are those of `user`, but for rounding.
    Of fewer, the one day with the most weighs more than it did; below 8, days are drawn.
    """
    if days < _FEWEST:
        shares = generator.random(days)
        return _counts(user, shares, _power(user, np.linspace(0, 1, user.days)))
    shares = np.linspace(0, 1, days)
    counts = _counts(user, shares, _power(user, shares))
    generator.shuffle(counts)
    return counts


def _counts(user: UserDays, shares: NDArray[np.float64], power: float) -> Counts:
    lower = np.interp(shares, (0, 0.5, 0.75), (0, user.median, user.upper_quartile))
    beyond = np.clip((shares - 0.75) / 0.25, 0, 1)
    upper = user.upper_quartile + (user.most - user.upper_quartile) * beyond**power
    return np.rint(np.where(shares > 0.75, upper, lower)).astype(np.int64)


def _power(user: UserDays, shares: NDArray[np.float64]) -> float:
    """Return the power that gives the average; the greater it is, the smaller the average."""
    low, high = 0.01, 400.0
    for _ in range(_STEPS):
        middle = (low * high) ** 0.5
        if _counts(user, shares, middle).mean() > user.average:
            low = middle
        else:
            high = middle
    return high
