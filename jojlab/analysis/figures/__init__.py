"""Which numbers tell about a case? Each has a name that ends in its unit, and a value per capture.

Reads transactions, requests, counters and manifest; gives figures by capture, by case (median and
range over its seeds), histograms of latency, and what a live run took as a whole.
"""
