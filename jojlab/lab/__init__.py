"""The lab: the one place where jobs run. A job (a case, power cuts of one, a self-test) comes in;
what a guest handed out, or why there is nothing, comes out.

    job.py             what is to be run, the key that its results are kept under, and how it is run
    power_cuts.py      jobs that cut the power of a case
    memory_run.py      a case's own run with a memory model
    tree.py            packs files for a guest
    outcome.py         what the agent answers, and which failures are tried again
    workers.py         one job in a guest; jobs in threads here, or on workers of a Dask cluster
    lab.py             jobs through cache and executor, each to its outcome
"""
