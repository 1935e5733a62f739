"""What did an experiment ask, what did others print of it, and do our figures say the same?

Reads the experiment as its run records it, and the figures of its cases; gives its parts with short
names for cases, its published statements evaluated, and what became of them all.
"""
