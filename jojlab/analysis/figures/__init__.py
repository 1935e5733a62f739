"""Which numbers describe a case? Each has a name that ends in its unit, and one value per capture.

Reads transactions, requests, counters and manifest. Returns figures by capture and by case (median
and range over its seeds), latency histograms, and the totals of a live run.
"""
