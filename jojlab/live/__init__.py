"""Runs the agent on this machine: workloads in a directory, in real time, and traces of disks."""
