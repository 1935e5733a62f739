"""Answers questions from the tables of schema/ alone: one question per file, one kind of question
per room.

Each room uses only those before it:

    rows      asking in SQL, the tables that questions share, and whether anything is missing
    figures   the named numbers of a case: throughput, latency, writes, counters
    commit    one commit: its bill, the reasons for it, and a typical one request by request
    traffic   the I/O itself: of which kinds it was, and where on the device it went
    study     what an experiment asked, what others published, and whether our figures agree
    run       a whole run: all of the above, the short answer, and differences from another run
"""
