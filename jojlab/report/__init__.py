"""Shows what jojlab/analysis found, in a terminal and as a page; computes nothing.

Each module is about one subject, such as bill.py, durability.py or latency.py: its words, its print
on a terminal, its charts and its section of the page, whose template stands beside it. summary.py
puts a run together for the terminal, page.py for the page. shared/ has what all of them use.
"""
