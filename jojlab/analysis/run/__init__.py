"""What does a run say as a whole?

Reads what all other rooms found; gives the summary that terminal and report show, the short answer
(cost, where it goes, risks, what is cheaper), and what differs between two runs.
"""
