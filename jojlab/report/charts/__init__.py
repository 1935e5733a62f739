"""How are figures, bills and commits drawn? As rows of finished numbers, and Vega-Lite for them.

Gets summaries; returns specifications that contain their rows and load nothing.
"""
