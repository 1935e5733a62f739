"""How does a report look and behave? One HTML file with its style, charts and scripts inside.

Gets a RunSummary and the sections made from it; writes the file. The scripts draw its charts.
"""
