"""joj bench: workloads on this machine. One file per subcommand, as in the folder above."""
