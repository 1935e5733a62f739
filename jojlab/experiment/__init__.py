"""Experiments: reads and checks their files, expands them into cases, and runs those."""
