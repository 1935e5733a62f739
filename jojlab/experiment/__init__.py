"""Experiment files: reads, checks and expands them into cases."""
