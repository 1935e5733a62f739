"""What does a run say as a whole?

Reads the results of all other rooms. Returns the summary that terminal and report show, the short
answer (cost, where it goes, risks, what is cheaper), and the differences between two runs.
"""
