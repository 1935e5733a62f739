"""What did an experiment ask, what did others publish about it, and do our figures agree?

Reads the experiment as its run records it, and the figures of its cases. Returns its parts with
short names for cases, its published statements evaluated, and a summary of the verdicts.
"""
