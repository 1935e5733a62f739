"""Answers from the tables of schema/ alone: one question a file, questions of one kind a room.

Each room builds on those before it, never on those after:

    rows      which rows of the tables count, whose bytes they are, and whether any is missing
    figures   the named numbers of a case: throughput, latency, writes, counters
    commit    one commit: its bill, the reasons for it, and a typical one request by request
    traffic   the I/O as such: of which kinds it was, and where on the device it went
    study     what an experiment asked and others printed, and whether ours says the same
    run       a whole run: all of the above at once, the short answer, and what differs in another
"""
