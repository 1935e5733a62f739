"""What does a terminal show? Tables on standard output, progress on standard error.

Gets summaries, bills, comparisons, profiles and rows of queries; prints them with rich. Piped text
is never cut off.
"""
