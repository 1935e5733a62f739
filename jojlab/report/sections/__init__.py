"""What does each section of the page say? A chart, its table, and the command for its numbers.

Gets a RunSummary; gives HTML in which all that comes from data is escaped, and puts the charts and
pictures it needs among the page's.
"""
