"""One file per subcommand of joj."""
