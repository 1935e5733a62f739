"""A script in MobiGen's format that replays are tested with: two threads, nine calls."""

SCRIPT = """\
1 0 open "/data/app/x.db" O_RDWR|O_CREAT|O_LARGEFILE 53
1 100 pread 53 4096 4096
1 200 pwrite 53 8192 1024
2 300 open /data/data O_WRONLY|O_CREAT|O_TRUNC|O_LARGEFILE 36
2 400 write 36 4
2 500 write 36 4
1 600 fsync 53 0
1 700 access "/data/app/x.db-wal" -1
1 20000 close 53 0
"""
CALLS, WRITTEN_BYTES = 9, 1032
# What follows the script and cannot be replayed; and what is said of it.
LEFT_OUT = "1 20100 ioctl 53 1\n2 20200 write 99 10\n"
LEFT_OUT_REASONS = (
    "1 call of ioctl left out: such calls are not replayed",
    "1 call of write left out: its descriptor is one that no recorded call opened",
)
NO_SCRIPT = "1 0 close 3\n1 1 pwrite 3 x 10\n"
NO_SCRIPT_REASON = 'line 2, offset: "x" is no whole number'
