"""Workloads on this machine: the agent run in a directory, by the clock on the wall."""
