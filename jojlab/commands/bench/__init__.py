"""joj bench: workloads on this machine. One file per subcommand."""
