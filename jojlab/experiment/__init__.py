"""Experiments: reads and checks their files, and expands them into cases that can be run."""
