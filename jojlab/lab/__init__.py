"""The lab: the one place where jobs run. A job (a case, power cuts of one, a self-test) comes in;
what a guest handed out, or why there is nothing, comes out.

    job.py             what is to be run, and the key that its results are kept under
    power_cuts.py      jobs that cut the power of a case
    attribution.py     jobs that test the attribution
    answers.py         what the agent answers to the latter two
    options.py         how jobs are run
    work.py            runs one job in a guest of this machine
    processes.py       work in processes of this machine
    cluster.py         work on the workers of a Dask cluster
    tries.py           which failures are tried again
    lab.py             jobs through cache and executor, each to its outcome
"""
