"""joj bench: real workloads on this machine's own disk and memory."""
