"""How are figures, bills and commits drawn? Rows of finished numbers, and Vega-Lite of them.

Gets summaries; gives specifications that hold their rows, and fetch nothing.
"""
