"""What does each section of the page say? A chart, its table, and the command for its numbers.

Gets a RunSummary; returns HTML in which all text from data is escaped, and adds the charts and
pictures it needs to the page.
"""
